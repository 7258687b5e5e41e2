"""What programs of three libraries say of themselves, and that every value arrives as it was given."""

import argparse
import json
import sys

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.sources.cli import introspector
from haft.sources.cli.arguments import Refused, words_of
from haft.sources.cli.schema import schema_of
from haft.sources.cli.spec import commands_of

VALUES = [
    "two words",
    'it\'s "quoted" `so` $HOME \\',
    "two\nlines\r\n",
    "-x",
    "--name=other",
    "grüße 日本 🙂",
    "",
    "a\tb",
    "a=b",
    "=",
    "*",
    "x" * 100_000,
]


def arrived(program, command, arguments):
    """What the program got, in this process."""
    words, stdin = words_of(command, arguments)
    assert stdin == b""
    if program.library == "argparse":
        return vars(program.found().parse_args(words))
    if program.library == "click":
        done = CliRunner().invoke(program.found, words, catch_exceptions=False)
    else:
        from typer.testing import CliRunner as TyperRunner

        done = TyperRunner().invoke(program.found, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


@pytest.fixture(params=["click", "argparse", "typer"])
def program(request, programs):
    return programs[request.param]


@pytest.fixture
def say(program):
    """A call of the command that takes everything; `key` is argparse's own."""
    command = program.commands()["say"]
    more = {"key": "k"} if program.library == "argparse" else {}
    return lambda **arguments: arrived(program, command, {**more, **arguments})


def test_every_command_is_found_and_hidden_ones_are_not(programs):
    assert list(programs["click"].commands()) == ["remote-add", "remote-deep-set-it", "say"]
    assert list(programs["argparse"].commands()) == ["say", "remote-add", "run"], "an alias is no second command"
    assert sorted(programs["typer"].commands()) == ["remote-add", "say"]


def test_descriptions_are_those_of_the_program(program):
    commands = program.commands()
    about = {"click": "Say something.\n\nAs often as wanted.", "argparse": "Say 100% of something.", "typer": None}
    assert commands["say"]["description"] == (about[program.library] or "Say something.")
    assert commands["remote-add"]["description"] == "Add one."
    assert commands["remote-add"]["words"] == ["remote", "add"]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_each_text_arrives_as_given(say, value):
    given = {"text": value, "rest": [value, "b", value], "name": value, "tag": [value, value]}
    got = say(**given)
    assert {name: got[name] for name in given} == given


@pytest.mark.parametrize("value", ["=5", "5", "a b", "", "x=y"])
def test_each_text_arrives_by_a_short_option(programs, value):
    for library in ("click", "argparse"):
        command = programs[library].commands()["say"]
        given = {"text": "t", "short": value, **({"key": "k"} if library == "argparse" else {})}
        assert arrived(programs[library], command, given)["short"] == value


@pytest.mark.parametrize("option", ["pair", "pairs"])
def test_a_value_that_would_be_taken_for_an_option_is_refused(programs, option):
    command = programs["argparse"].commands()["say"]
    with pytest.raises(Refused, match=f"`{option}` may begin with `-`"):
        words_of(command, {"text": "t", "key": "k", option: ["-x", "1"]})


def test_a_program_that_counts_its_values_takes_whatever_they_begin_with(programs):
    for library in ("click", "typer"):
        command = programs[library].commands()["say"]
        got = arrived(programs[library], command, {"text": "t", "pair": ["--name", -1]})
        assert (got["pair"], got["text"], got["name"]) == (["--name", -1], "t", "nobody")


@pytest.mark.parametrize("values", [[], ["a"], ["a", "1", "b"], "a"])
def test_what_is_counted_is_given_whole(program, values):
    command = program.commands()["say"]
    more = {"key": "k"} if program.library == "argparse" else {}
    with pytest.raises(Refused, match="`pair` takes 2 values, not "):
        words_of(command, {"text": "t", "pair": values, **more})
    pair = schema_of(command)["properties"]["pair"]
    assert (pair["minItems"], pair["maxItems"]) == (2, 2)


def test_numbers_flags_counts_and_choices(say, program):
    got = say(text="t", times=-7, scale=0.25, loud=False, dry=True, level=3, colour="blue")
    assert {name: got[name] for name in ("times", "scale", "loud", "dry", "level", "colour")} == {
        "times": -7, "scale": 0.25, "loud": False, "dry": True, "level": 3, "colour": "blue"
    }  # fmt: skip
    assert say(text="t", loud=True, dry=False, level=0)["loud"] is True
    assert say(text="t", times="12")["times"] == 12, "a number as text"
    assert say(text="t", times=2.0)["times"] == 2, "a whole number"


def test_what_is_absent_has_the_programs_own_default(say):
    got = say(text="t")
    assert (got["name"], got["times"], got["loud"], got["dry"], got["level"]) == ("nobody", 3, True, False, 0)
    assert say(text="t", name=None, times=None) == got, "null is absent"


def test_values_that_belong_together(programs):
    got = arrived(programs["click"], programs["click"].commands()["say"], {"text": "t", "pair": ["a b", 2]})
    assert got["pair"] == ["a b", 2]
    got = arrived(
        programs["typer"], programs["typer"].commands()["say"], {"text": "t", "pair": ["a b", 2], "numbers": [1, 2]}
    )
    assert (got["pair"], got["numbers"]) == (["a b", 2], [1, 2])
    given = {"text": "t", "key": "k", "pair": ["a", ""], "pairs": ["c", "d"], "more": ["-e", "f"], "rest": ["-g"]}
    got = arrived(programs["argparse"], programs["argparse"].commands()["say"], given)
    assert (got["pair"], got["pairs"], got["more"], got["rest"]) == (["a", ""], [["c", "d"]], ["-e", "f"], ["-g"])


@pytest.mark.parametrize("library", ["click", "argparse"])
def test_options_that_set_one_value_have_the_names_of_the_options(programs, library):
    command = programs[library].commands()["say"]
    names = [one["name"] for one in command["parameters"]]
    assert {"upper", "lower", "no_frame"} <= set(names) and not {"case", "frame"} & set(names)
    more = {"text": "t", **({"key": "k"} if library == "argparse" else {})}
    assert arrived(programs[library], command, {**more, "lower": True})["case"] == "lower"
    assert arrived(programs[library], command, {**more, "no_frame": True})["frame"] is False
    assert arrived(programs[library], command, more)["frame"] is True


def test_exclusive_options_say_so_and_the_program_decides(programs):
    command = programs["argparse"].commands()["say"]
    helps = {one["name"]: one["help"] for one in command["parameters"]}
    assert helps["lower"] == "Softly. Not together with --upper."
    assert helps["key"] == "Not together with --key-file."
    assert helps["name"] == "Whose it is (nobody)."
    words, _ = words_of(command, {"text": "t", "key": "a", "key_file": "b"})
    with pytest.raises(SystemExit) as ended:
        programs["argparse"].found().parse_args(words)
    assert ended.value.code == 2


def test_the_rest_of_a_line_is_passed_without_a_mark(programs):
    command = programs["argparse"].commands()["run"]
    assert arrived(programs["argparse"], command, {"words": ["a", "b c"]})["words"] == ["a", "b c"]
    with pytest.raises(Refused, match="may not begin with `-`"):
        words_of(command, {"words": ["-a"]})


def test_what_a_program_would_ask_for_is_required_because_nobody_answers(programs):
    command = programs["click"].commands()["remote-deep-set-it"]
    required = [one["name"] for one in command["parameters"] if one["required"]]
    assert required == ["word", "yes"]
    assert arrived(programs["click"], command, {"word": "w", "yes": True, "first": "f"})["first"] == "f"


def test_a_value_is_never_taken_for_the_one_before_it(programs):
    command = programs["click"].commands()["remote-deep-set-it"]
    with pytest.raises(Refused, match="`first` is missing: the program would read `second`"):
        words_of(command, {"word": "w", "yes": True, "second": "s"})


def test_schemas_say_what_there_is(programs):
    for library in programs:
        schema = schema_of(programs[library].commands()["say"])
        properties = schema["properties"]
        assert "hidden" not in properties and "version" not in properties
        assert properties["times"] == {"type": "integer", "description": "3 by default"}
        assert properties["scale"]["type"] == "number"
        assert properties["loud"]["type"] == properties["dry"]["type"] == "boolean"
        assert properties["level"]["type"] == "integer"
        assert properties["rest"] == {"type": "array", "items": {"type": "string"}}
        assert properties["colour"] == {"type": "string", "enum": ["red", "blue"]}
        assert properties["name"]["description"].startswith("Whose it is")
        assert schema["required"] == ["text"] and schema["additionalProperties"] is False
    assert schema_of(programs["argparse"].commands()["say"])["properties"]["size"] == {
        "type": "integer", "enum": [1, 2, 4],
    }  # fmt: skip
    assert "enum" not in schema_of(programs["argparse"].commands()["say"])["properties"]["port"], "too many to list"
    click_say = schema_of(programs["click"].commands()["say"])["properties"]
    assert click_say["day"]["enum"] == ["MONDAY", "SUNDAY"] and click_say["sure"]["type"] == "boolean"
    typer_say = schema_of(programs["typer"].commands()["say"])["properties"]
    assert typer_say["numbers"]["items"] == {"type": "integer"}
    assert typer_say["size"]["enum"] == ["small", "large"]


def test_enumerations_arrive(programs):
    got = arrived(programs["click"], programs["click"].commands()["say"], {"text": "t", "day": "SUNDAY", "sure": False})
    assert (got["day"], got["sure"]) == ("SUNDAY", False)
    got = arrived(
        programs["typer"], programs["typer"].commands()["say"], {"text": "t", "colour": "blue", "size": "large"}
    )
    assert (got["colour"], got["size"]) == ("blue", "large")
    got = arrived(programs["argparse"], programs["argparse"].commands()["say"], {"text": "t", "key": "k", "size": 4})
    assert got["size"] == 4


def test_a_single_command_and_one_that_is_loaded_when_it_is_wanted():
    class Lazy(click.Group):
        def list_commands(self, context):
            return ["later"]

        def get_command(self, context, name):
            return click.Command("later", params=[click.Argument(["what"])])

    assert [one["name"] for one in introspector.commands("click", Lazy("lazy"))] == ["later"]
    (alone,) = introspector.commands("click", click.Command("alone"))
    assert (alone["name"], alone["words"]) == ("alone", [])
    (parser,) = introspector.commands("argparse", argparse.ArgumentParser(prog="only"))
    assert (parser["name"], parser["words"]) == ("only", [])


@pytest.mark.parametrize(
    ("form", "found", "sentence"),
    [
        ("click", 5, "it is a int, not a click or typer command"),
        ("argparse", 5, "it is a int, neither a parser nor a function that returns one"),
        ("argparse", sys.exit, "the function returned no parser: SystemExit"),
        ("argparse", dict, "it is a dict, neither a parser nor a function that returns one"),
    ],
)
def test_what_is_no_program_is_named(form, found, sentence):
    with pytest.raises(introspector.Unreadable, match=sentence):
        list(introspector.commands(form, found))


def test_groups_that_hold_themselves_are_refused():
    group = click.Group("round")
    group.add_command(group, "again")
    with pytest.raises(introspector.Unreadable, match="too deep"):
        list(introspector.commands("click", group))


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@settings(max_examples=150)
@given(
    text=TEXT,
    rest=st.lists(TEXT),
    name=TEXT,
    tag=st.lists(TEXT, min_size=1),
    times=st.integers(-(10**12), 10**12),
    scale=st.floats(-1e300, 1e300),
    loud=st.booleans(),
    level=st.integers(0, 5),
)
def test_whatever_is_given_to_a_click_program_arrives(programs, **arguments):
    command = programs["click"].commands()["say"]
    got = arrived(programs["click"], command, arguments)
    assert {name: got[name] for name in arguments} == arguments


@settings(max_examples=100)
@given(
    option=st.sampled_from(["-n", "--name", "-name"]),
    value=TEXT,
    end=st.sampled_from(["--", "", "--end-of-options"]),
    placed=TEXT,
)
def test_a_value_is_joined_or_refused_but_never_an_option(option, value, end, placed):
    parameters = {"o": {"option": option}, "p": {"by": "position"}}
    told = {"program": "x", "end_of_options": end, "commands": [{"name": "c", "parameters": parameters}]}
    (command,) = commands_of(told, "here")
    try:
        words, _ = words_of(command, {"o": value, "p": placed})
    except Refused:
        assert value.startswith("-") or (placed.startswith("-") and not end)
        return
    assert words[-1] == placed
    assert words[1] in (f"--name={value}", f"-n{value}", option)
