"""Arguments to words: what is passed, and what is refused with a sentence."""

import json

import pytest

from haft.sources.cli.arguments import Refused, words_of
from haft.sources.cli.spec import commands_of


def command(parameters, **more):
    (one,) = commands_of({"program": "x", "commands": [{"name": "do it", "parameters": parameters, **more}]}, "here")
    return one


ALL = command(
    {
        "path": {},
        "count": {"option": "--count", "type": "integer"},
        "ratio": {"option": "--ratio", "type": "number"},
        "level": {"option": "-v", "by": "count"},
        "all": {"option": "--all", "off": "--some", "type": "boolean"},
        "how": {"option": "--how", "choices": ["fast", "slow"]},
        "many": {"option": "--many", "many": True},
        "data": {"option": "--data", "type": "object"},
        "text": {"by": "stdin"},
    }
)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, []),
        ({"count": 5}, ["--count=5"]),
        ({"count": -5}, ["--count=-5"]),
        ({"count": 5.0}, ["--count=5"]),
        ({"count": "5"}, ["--count=5"]),
        ({"count": 10**30}, [f"--count={10**30}"]),
        ({"ratio": 0.5}, ["--ratio=0.5"]),
        ({"ratio": 1}, ["--ratio=1"]),
        ({"level": 0}, []),
        ({"level": 3}, ["-v", "-v", "-v"]),
        ({"all": True}, ["--all"]),
        ({"all": False}, ["--some"]),
        ({"all": "yes"}, ["--all"]),
        ({"all": ""}, ["--some"]),
        ({"how": "slow"}, ["--how=slow"]),
        ({"many": []}, []),
        ({"many": "one"}, ["--many=one"]),
        ({"many": ["", 2, True]}, ["--many=", "--many=2", "--many=true"]),
        ({"data": {"a": [1, "ü"]}}, ['--data={"a": [1, "\\u00fc"]}']),
    ],
)
def test_values_become_words(given, words):
    assert words_of(ALL, {"path": "p", **given}) == (["do", "it", *words, "--", "p"], b"")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "the arguments must be one JSON object"),
        ("x", "the arguments must be one JSON object"),
        ({}, "`path` is missing: it is required"),
        ({"path": None}, "`path` is missing"),
        ({"path": "p", "pth": 1}, "there is no parameter `pth`; there are: path, count"),
        ({"path": "a\0b"}, "`path` has a NUL"),
        ({"path": "\ud800"}, "`path` has half of a character"),
        ({"path": ["a"]}, "`path` must be one string"),
        ({"path": {"a": 1}}, "`path` must be one string"),
        ({"path": "p", "count": "many"}, "`count` must be a whole number, not `many`"),
        ({"path": "p", "count": 1.5}, "`count` must be a whole number, not `1.5`"),
        ({"path": "p", "count": True}, "`count` must be a whole number"),
        ({"path": "p", "count": 10**400}, "`count` must be a whole number, not `1000"),
        ({"path": "p", "count": float("inf")}, "`count` must be a whole number"),
        ({"path": "p", "count": float("nan")}, "`count` must be a whole number"),
        ({"path": "p", "ratio": "half"}, "`ratio` must be a number, not `half`"),
        ({"path": "p", "ratio": False}, "`ratio` must be a number"),
        ({"path": "p", "level": 101}, "`level` must be from 0 to 100"),
        ({"path": "p", "level": -1}, "`level` must be from 0 to 100"),
        ({"path": "p", "all": "perhaps"}, "`all` must be true or false, not `perhaps`"),
        ({"path": "p", "all": []}, "`all` must be true or false"),
        ({"path": "p", "how": "never"}, "`how` must be one of fast, slow, not `never`"),
        ({"path": "p", "many": ["a", ["b"]]}, "`many` must be one string"),
        ({"path": "p", "many": ["a\0"]}, "`many` has a NUL"),
        ({"path": "p", "text": ["a"]}, "`text` must be one string"),
    ],
)
def test_what_cannot_be_passed_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(Refused) as refused:
        words_of(ALL, given)
    assert sentence in str(refused.value)


def test_a_text_for_stdin_is_no_word():
    assert words_of(ALL, {"path": "p", "text": "ü\n"}) == (["do", "it", "--", "p"], "ü\n".encode())
    one = command({"data": {"by": "stdin", "type": "object"}})
    words, stdin = words_of(one, {"data": {"a": [1]}})
    assert words == ["do", "it"] and json.loads(stdin) == {"a": [1]}


def test_a_value_goes_to_stdin_where_a_position_before_it_is_absent():
    one = command({"name": {"required": False}, "message": {"required": False, "or_stdin": True}})
    assert words_of(one, {"name": "a", "message": "-m"}) == (["do", "it", "--", "a", "-m"], b"")
    assert words_of(one, {"message": "-m"}) == (["do", "it"], b"-m")
    assert words_of(one, {"name": "a"}) == (["do", "it", "--", "a"], b"")


def test_words_that_lead_stand_before_the_values():
    parameters = {"revision": {"default": ""}, "paths": {"many": True, "lead": ["--"]}}
    one = command(parameters, end_of_options="--end-of-options", words=["log"])
    passed = {
        (): ["log"],
        ("revision",): ["log", "--end-of-options", "-r"],
        ("paths",): ["log", "--", "-p", "q"],
        ("revision", "paths"): ["log", "--end-of-options", "-r", "--", "-p", "q"],
    }
    for names, words in passed.items():
        given = {"revision": "-r", "paths": ["-p", "q"]}
        assert words_of(one, {name: given[name] for name in names})[0] == words
    assert words_of(one, {"paths": []})[0] == ["log"]


def test_an_option_of_several_letters_and_one_dash_takes_the_next_word():
    one = command({"name": {"option": "-name"}}, words=[])
    assert words_of(one, {"name": "*.py"})[0] == ["-name", "*.py"]
    with pytest.raises(Refused, match="`name` may not begin with `-`"):
        words_of(one, {"name": "-delete"})


def test_no_value_slides_into_the_place_of_another():
    one = command({"a": {"required": False}, "b": {"required": False}, "c": {"required": True}}, words=[])
    assert words_of(one, {"c": "3"})[0] == ["--", "3"]
    assert words_of(one, {"a": "1", "b": "2", "c": "3"})[0] == ["--", "1", "2", "3"]
    with pytest.raises(Refused, match="`a` is missing: the program would read `b`"):
        words_of(one, {"b": "2", "c": "3"})


def test_nothing_stands_before_many_or_behind_them_unsaid():
    one = command({"mode": {"required": False}, "files": {"required": True, "many": True}}, words=[])
    with pytest.raises(Refused, match="`mode` is missing: the program would read `files`"):
        words_of(one, {"files": ["x", "y"]})
    assert words_of(one, {"mode": "m", "files": ["x"]})[0] == ["--", "m", "x"]
    one = command({"files": {"many": True, "required": False}, "to": {"required": False}}, words=[])
    with pytest.raises(Refused, match="would read the last of `files` as"):
        words_of(one, {"files": ["x", "y"]})
    with pytest.raises(Refused, match="`files` is missing"):
        words_of(one, {"to": "x"})


def test_a_short_option_does_not_grow_into_a_longer_one():
    one = command({"n": {"option": "-n"}, "name": {"option": "-name", "type": "boolean"}}, words=[])
    assert words_of(one, {"n": "ame"})[0] == ["-n", "ame"]
    with pytest.raises(Refused):
        words_of(one, {"n": "-ame"})


def test_what_a_parser_takes_for_something_else_is_refused():
    one = {**command({"many": {"many": True}}, words=[]), "refused": ["--", "@"]}
    for value in ("--", "@file"):
        with pytest.raises(Refused, match="would not read it as a value"):
            words_of(one, {"many": ["a", value]})
    assert words_of(one, {"many": ["--x", "a@b"]})[0] == ["--", "--x", "a@b"]


@pytest.mark.parametrize("value", [None, [None], "1.5", " 9007199254740993.0", 1e25, "1e400", "nan", 10**2000])
def test_no_number_arrives_as_another(value):
    one = command({"i": {"type": "integer", "many": True}}, words=[])
    if value is None:
        assert words_of(one, {"i": value})[0] == []
        return
    with pytest.raises(Refused):
        words_of(one, {"i": value if isinstance(value, list) else [value]})
    assert words_of(one, {"i": ["9007199254740993", 3.0, -4]})[0] == ["--", "9007199254740993", "3", "-4"]
