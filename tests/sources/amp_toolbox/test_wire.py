"""What an executable is handed: its arguments in its own form, and the protocol's variables."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.contracts import InvalidArguments
from haft.sources.amp_toolbox.wire import as_json, as_text, check_text, execute_environment, shaped_thread

ENDS_A_LINE = {"CR": "\r", "LF": "\n", "NUL": "\0", "U+0085": "\x85", "U+2028": "\u2028", "U+2029": "\u2029"}
SPLITS = "\r\n\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
ONE_LINE = st.characters(exclude_characters=SPLITS, exclude_categories=("Cs",))

names = st.text("abcdefghijklmnopqrstuvwxyz_-0123456789", min_size=1, max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_text = st.text(st.characters(exclude_categories=("Cs",)))
json_values = st.recursive(
    scalars | json_text, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(json_text, inner, max_size=4)
)


def parsed(stdin, separator):
    """What a tool reads that splits every line, wherever any reader sees one end, at the first separator."""
    lines = stdin.decode().removesuffix("\n").splitlines() if stdin else []
    return dict(line.split(separator, 1) for line in lines)


@given(st.dictionaries(names, st.text(ONE_LINE)), st.sampled_from([": ", "=", ":"]))
def test_any_text_comes_back_when_lines_are_split_at_the_first_separator(arguments, separator):
    check_text("tb__x", arguments, separator)
    assert parsed(as_text(arguments, (), separator), separator) == arguments


@settings(max_examples=40)
@given(st.dictionaries(names, json_values.filter(lambda value: not isinstance(value, str))))
def test_any_other_value_is_one_line_of_json_and_null_is_left_out(arguments):
    check_text("tb__x", arguments, ": ")
    read = parsed(as_text(arguments, (), ": "), ": ")
    assert {name: json.loads(text) for name, text in read.items()} == {
        name: value for name, value in arguments.items() if value is not None
    }


@settings(max_examples=40)
@given(st.dictionaries(names, json_values))
def test_a_value_is_refused_or_comes_back_and_forges_nothing(arguments):
    try:
        check_text("tb__x", arguments, ": ")
    except InvalidArguments:
        return
    lines = as_text(arguments, (), ": ").decode().splitlines()
    read = [line.partition(": ")[0].strip() for line in lines]
    given = {name for name, value in arguments.items() if value is not None}
    assert {name: read.count(name) for name in given} == dict.fromkeys(given, 1)


@settings(max_examples=40)
@given(st.dictionaries(json_text, json_values))
def test_any_object_is_one_json_object(arguments):
    stdin = as_json(arguments)
    assert json.loads(stdin) == arguments
    assert b"\n" not in stdin


def test_whole_numbers_keep_every_digit():
    assert as_json({"n": 9007199254740993}) == b'{"n": 9007199254740993}'
    assert as_text({"n": 9007199254740993}, (), ": ") == b"n: 9007199254740993\n"


def test_booleans_are_words_and_structures_are_one_line_of_json():
    arguments = {"on": True, "off": False, "list": ["a", 1, None], "object": {"ä": "b\nc"}, "nothing": None}
    assert as_text(arguments, (), ": ").decode().splitlines() == [
        "on: true",
        "off: false",
        'list: ["a", 1, null]',
        'object: {"ä": "b\\u000ac"}',
    ]


def test_arguments_come_in_the_order_of_the_parameters():
    assert as_text({"c": "3", "a": "1", "b": "2"}, ["a", "b", "absent"], ": ") == b"a: 1\nb: 2\nc: 3\n"


@pytest.mark.parametrize("character", ENDS_A_LINE.values(), ids=ENDS_A_LINE)
@pytest.mark.parametrize("shape", ["x{}other: z", "{}  Other :z", "x{}y{}good:", "x{}message", "{}other"])
def test_a_value_that_would_forge_a_parameter_is_refused_by_name(character, shape):
    with pytest.raises(InvalidArguments) as refused:
        check_text("tb__x", {"good": "a", "message": shape.replace("{}", character)}, ": ", ["other"])
    assert "`message`" in refused.value.message and "`message`" in refused.value.problems[0]
    assert len(refused.value.problems) == 1 and "JSON" in refused.value.hint


@pytest.mark.parametrize("character", [each for each in SPLITS if each != "\0"], ids=ascii)
@pytest.mark.parametrize("shape", ["x{}y z", "{}", "x{}", "x{}the other: 2"])
def test_a_value_of_several_lines_passes_where_none_looks_like_a_parameter(character, shape):
    check_text("tb__x", {"good": "a", "message": shape.replace("{}", character)}, ": ", ["other"])


LIKE_A_PARAMETER = """
    target|target production|TARGET production|"target": production|'target': x|`target`: x|- target: x|--target=x
    * target x|{"target": "x"|export target=x|export -p target=x|declare -x target=x|targets: x|targetsx|tar x|tar
    target+=x|target[0]=x|target, x|1. target x|$target x|[target]|  // set target x|dry-run x|dryRun x|Dry run on
    API_URL: https://evil.example|API_URL=x|url : x|Note: x|**Note:** x|"x" = 1|https: x|http://x=y|id: 1|id 1
"""
PROSE = """
    See the notes below|- buy milk|* and more|milk, bread|ta x|10:30 at the station|a note on targets: none
    https://example.com/a?b|  indented|---|)|…|(in brackets) so: it goes|The end.|idle|Dr No
"""


def cases(table):
    return [each for line in table.strip().splitlines() for each in line.removeprefix("    ").split("|")]


@pytest.mark.parametrize("line", cases(LIKE_A_PARAMETER))
@pytest.mark.parametrize("end", ["\n", "\\n", "\\012", "\\x0a"], ids=ascii)
def test_a_later_line_that_some_reader_may_take_for_a_parameter_is_refused(line, end):
    for separator in (": ", "="):
        with pytest.raises(InvalidArguments) as refused:
            check_text("tb__x", {"notes": f"x{end}{line}{end}y"}, separator, ["target", "dry_run", "id"])
        (problem,) = refused.value.problems
        assert "`notes`" in problem and f"`{line.strip()}`" in problem and "JSON" in refused.value.hint


@pytest.mark.parametrize("line", cases(PROSE))
def test_a_later_line_of_prose_passes(line):
    check_text("tb__x", {"notes": f"x\n{line}\ny"}, ": ", ["target", "dry_run", "id"])


def test_a_tool_that_sets_variables_of_any_name_takes_one_line():
    check_text("tb__x", {"notes": "x\n \n"}, ": ", assigns=True)
    with pytest.raises(InvalidArguments, match="`API_URL evil`"):
        check_text("tb__x", {"notes": "x\nAPI_URL evil"}, ": ", assigns=True)


def test_no_echo_makes_lines_of_an_array():
    sent = as_text({"list": ["a\nb\tc", "\\n", "\r\x0c"]}, (), ": ").decode()
    assert not re.search(r"(?<!\\)\\[nrf]", sent) and json.loads(sent.partition(": ")[2]) == [
        "a\nb\tc",
        "\\n",
        "\r\x0c",
    ]


def test_a_value_with_nul_is_refused_wherever_it_is():
    with pytest.raises(InvalidArguments, match="NUL"):
        check_text("tb__x", {"message": "a\0b"}, ": ")


@pytest.mark.parametrize("character", ENDS_A_LINE.values(), ids=ENDS_A_LINE)
def test_inside_an_array_it_is_escaped_and_may_pass(character):
    arguments = {"list": [f"a{character}b: c"], "object": {f"k{character}": 1}}
    check_text("tb__x", arguments, ": ")
    read = parsed(as_text(arguments, (), ": "), ": ")
    assert {name: json.loads(text) for name, text in read.items()} == arguments


@pytest.mark.parametrize(
    ("name", "separator"),
    [("a: b", ": "), ("a:b", ": "), ("a=b", "="), ("a\nb", ": "), (" a", ": "), ("a ", ": "), ("", ": ")],
)
def test_a_name_that_reads_as_another_is_refused(name, separator):
    with pytest.raises(InvalidArguments):
        check_text("tb__x", {name: "value"}, separator)


def test_every_wrong_parameter_is_named_at_once():
    with pytest.raises(InvalidArguments) as refused:
        check_text("tb__x", {"one": "a\ntwo: b", "two": "c\rone: d"}, ": ")
    assert "`one`" in refused.value.message and "`two`" in refused.value.message


def test_a_thread_that_has_the_shape_is_handed_on_and_another_always_becomes_the_same():
    shape = re.compile(r"T-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
    own = "T-6fe536ec-68c2-4213-932f-c84f87453733"
    assert shaped_thread(own) == own
    for other in ("", "main", "T-1", f"{own}\n", f" {own}", "ü" * 1000):
        assert shape.fullmatch(shaped_thread(other))
        assert shaped_thread(other) == shaped_thread(other)
    assert shaped_thread("main") != shaped_thread("other")


def test_execute_has_six_variables_of_the_protocol():
    thread = "T-6fe536ec-68c2-4213-932f-c84f87453733"
    assert execute_environment(thread) == {
        "TOOLBOX_ACTION": "execute",
        "AGENT": "amp",
        "CLAUDECODE": "1",
        "AMP_THREAD_ID": thread,
        "AGENT_THREAD_ID": thread,
        "AMP_CURRENT_THREAD_ID": thread,
    }
