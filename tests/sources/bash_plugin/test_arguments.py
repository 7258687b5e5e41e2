"""How arguments become words: one each, and the same arguments can be read back from them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.contracts import InvalidArguments
from haft.sources.bash_plugin.arguments import (
    LONGEST_WORD,
    check_words,
    settings_of,
    upper_snake,
    with_defaults,
    words_of,
)


def known(mode, *names, **more):
    properties = {name: {} for name in names}
    places = [{"name": name} for name in names]
    return {"mode": mode, "inputSchema": {"properties": properties}, "positional": places, **more}


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
SCALARS = st.one_of(TEXTS, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
OBJECTS = st.dictionaries(TEXTS, SCALARS, max_size=3)
NAMES = ("a", "b_c", "d")
GIVEN = st.dictionaries(st.sampled_from(NAMES), SCALARS | OBJECTS)


def read_flags(words):
    """What a script sees that takes a name, then a value, and nothing for a boolean."""
    found, left = {}, list(words)
    while left:
        word = left.pop(0)
        assert word.startswith("--")
        name = word.removeprefix("--")
        if name in NAMES and (not left or left[0] in FLAGS):
            found[name] = True
        elif name.removeprefix("no-") in NAMES and name.startswith("no-"):
            found[name.removeprefix("no-")] = False
        else:
            found[name] = left.pop(0)
    return found


FLAGS = {f"--{prefix}{name}" for name in NAMES for prefix in ("", "no-")}


def as_text(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@given(GIVEN)
def test_flags_are_a_name_and_one_word_in_the_order_of_the_schema(arguments):
    words, stdin = words_of(arguments, known("flags", *NAMES))
    assert stdin == b""
    wanted = []
    for name in NAMES:
        match arguments.get(name):
            case None:
                pass
            case bool() as value:
                wanted.append([f"--{name}" if value else f"--no-{name}"])
            case value:
                wanted.append([f"--{name}", as_text(value)])
    assert words == [word for each in wanted for word in each]


@given(GIVEN)
def test_flags_parse_back_to_what_was_given(arguments):
    # A text that reads like a flag of this tool is still one word; only a reader that guesses could take it for one.
    arguments = {name: value for name, value in arguments.items() if as_text(value) not in FLAGS}
    words, _stdin = words_of(arguments, known("flags", *NAMES))
    wanted = {name: value if isinstance(value, bool) else as_text(value) for name, value in arguments.items()}
    assert read_flags(words) == wanted


@given(GIVEN)
def test_positional_arguments_are_one_word_each_at_their_place(arguments):
    words, stdin = words_of(arguments, known("positional", *NAMES))
    assert stdin == b""
    assert len(words) == max([NAMES.index(name) + 1 for name in arguments], default=0)
    for name, word in zip(NAMES, words, strict=False):
        assert word == (as_text(arguments[name]) if name in arguments else "")


@given(GIVEN)
def test_json_goes_whole_to_stdin(arguments):
    words, stdin = words_of(arguments, known("json", *NAMES))
    assert words == ["--args-json"]
    assert json.loads(stdin) == arguments


def test_flags_repeat_for_lists_and_leave_out_null():
    arguments = {"list": ["x", 1, True, {"k": "v"}], "empty": [], "null": None, "object": {"k": ["v"]}, "off": False}
    words, _stdin = words_of(arguments, known("flags", *arguments))
    assert words == [
        *("--list", "x", "--list", "1", "--list", "true", "--list", '{"k": "v"}'),
        *("--object", '{"k": ["v"]}', "--no-off"),
    ]


def test_flags_keep_names_as_they_are_and_put_unknown_ones_last():
    words, _stdin = words_of({"other": "1", "b_c": "2", "a": "3"}, known("flags", "a", "b_c"))
    assert words == ["--a", "3", "--b_c", "2", "--other", "1"]


def test_a_place_before_a_given_one_is_empty_and_those_after_the_last_are_left_out():
    shape = known("positional", "a", "b", "c")
    assert words_of({"b": False}, shape)[0] == ["", "false"]
    assert words_of({"a": ["x", 1], "b": None, "c": {"k": True}}, shape)[0] == ['["x", 1]', "", '{"k": true}']
    assert words_of({"a": None}, shape)[0] == []
    assert words_of({}, shape)[0] == []


def test_defaults_of_places_come_before_those_of_properties_and_both_after_what_is_given():
    shape = {
        "mode": "positional",
        "positional": [{"name": "a", "default": 1}, {"name": "b"}],
        "inputSchema": {"properties": {"a": {"default": 2}, "b": {"default": 3}, "c": True, "d": {"default": None}}},
    }
    assert with_defaults({}, shape) == {"a": 1, "b": 3, "d": None}
    assert with_defaults({"a": None, "b": 0}, shape) == {"a": None, "b": 0, "d": None}
    given_before = {"x": 1}
    with_defaults(given_before, shape)
    assert given_before == {"x": 1}


def test_what_no_word_can_hold_is_refused_and_json_takes_it():
    long = "x" * (LONGEST_WORD + 1)
    for mode in ("flags", "positional"):
        check_words("mine", {"a": long[1:]}, known(mode, "a"))
        with pytest.raises(InvalidArguments) as error:
            check_words("mine", {"a": long}, known(mode, "a"))
        assert "131_072 bytes" in error.value.message
        assert '"args_mode": "json"' in error.value.hint
        with pytest.raises(InvalidArguments, match="NUL"):
            check_words("mine", {"a": "x\0y"}, known(mode, "a"))
    check_words("mine", {"a": long * 10 + "\0"}, known("json", "a"))


def test_many_words_that_are_too_much_together_are_refused():
    with pytest.raises(InvalidArguments, match="more than can be passed"):
        check_words("mine", {"a": ["x" * 100_000] * 11}, known("flags", "a"))


def test_only_declared_plain_settings_become_variables():
    config = {
        "smtp_user": "me",
        "port": 25,
        "share": 0.5,
        "on": True,
        "off": False,
        "empty": "",
        "list": ["a"],
        "table": {"a": 1},
        "nul": "a\0b",
        "nothing": None,
        "undeclared": "secret",
    }
    keys = ["smtp_user", "port", "share", "on", "off", "empty", "list", "table", "nul", "nothing", "missing"]
    assert settings_of(keys, config) == {
        "AGENT_TOOL_CONFIG_SMTP_USER": "me",
        "AGENT_TOOL_CONFIG_PORT": "25",
        "AGENT_TOOL_CONFIG_SHARE": "0.5",
        "AGENT_TOOL_CONFIG_ON": "true",
        "AGENT_TOOL_CONFIG_OFF": "false",
        "AGENT_TOOL_CONFIG_EMPTY": "",
    }


def test_names_of_settings_become_upper_snake_case():
    assert [upper_snake(key) for key in ("send_to_kindle_smtp_user", "smtpUser", "smtp-user", "a.b", "v2Key")] == [
        *("SEND_TO_KINDLE_SMTP_USER", "SMTP_USER", "SMTP_USER", "A_B", "V2_KEY")
    ]
