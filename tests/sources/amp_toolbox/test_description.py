"""What executables say of themselves, read as their writers meant it; and every way in which it cannot be read."""

import contextlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from haft.schema import validator_for
from haft.sources.amp_toolbox.description import LONGEST_NAME, MOST_PARAMETERS, Unreadable, read_description


def described(**facts):
    return read_description(json.dumps({"name": "x", "description": "It does.", **facts}).encode())


def text(*lines):
    """Read as text; a description is added where the lines have none."""
    more = () if any("description:" in line for line in lines) else ("description: It does.",)
    return read_description("\n".join((*lines, *more)).encode())


def properties(description):
    return dict(description.input_schema.get("properties", {}))


def required(description):
    return list(description.input_schema.get("required", []))


# JSON.


def test_compact_arguments_are_type_and_description_and_none_is_required():
    read = described(args={"workspace": ["string", "the directory"], "patterns": ["string", "optional test patterns"]})
    assert (read.name, read.description, read.form) == ("x", "It does.", "json")
    assert properties(read) == {
        "workspace": {"type": "string", "description": "the directory"},
        "patterns": {"type": "string", "description": "optional test patterns"},
    }
    assert required(read) == []
    assert validator_for(read.input_schema).is_valid({})


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("string", "string"),
        ("boolean", "boolean"),
        ("bool", "boolean"),
        ("integer", "integer"),
        ("int", "integer"),
        ("number", "number"),
        ("array", "array"),
        ("object", "object"),
    ],
)
def test_compact_arguments_have_every_type_and_its_short_names(said, kind):
    read = described(args={"a": [said, "words"]})
    assert properties(read) == {"a": {"type": kind, "description": "words"}}


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (["string", "what it is"], "string", "what it is"),
        (["string"], "string", None),
        (["string", ""], "string", None),
        (["string?", "what it is"], "string", "what it is"),
        ("string", "string", None),
        ("string what it is", "string", "what it is"),
        ("int? how many", "integer", "how many"),
        ("the file to read", "string", "the file to read"),
    ],
)
def test_compact_arguments_are_read_generously(said, kind, words):
    expected = {"type": kind} if words is None else {"type": kind, "description": words}
    assert properties(described(args={"a": said})) == {"a": expected}


def test_a_compact_argument_may_be_a_schema():
    schema = {"type": "array", "items": {"type": "string"}, "description": "files"}
    assert properties(described(args={"files": schema})) == {"files": schema}


def test_an_input_schema_passes_through_whole_and_wins_over_args():
    schema = {
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": {"type": "string"}, "description": "List of files to process"},
            "deep": {"$ref": "#/$defs/deep"},
            "mode": {"enum": ["a", "b", None], "default": "a", "x-own": {"kept": True}},
        },
        "$defs": {"deep": {"type": "object", "properties": {"n": {"type": "number", "minimum": -1.5}}}},
        "required": ["files"],
        "additionalProperties": {"type": "string"},
    }
    assert dict(described(inputSchema=schema).input_schema) == schema
    assert dict(described(inputSchema=schema, args={"other": ["string", "x"]}).input_schema) == schema


def test_without_args_and_without_input_schema_there_are_no_parameters():
    for read in (described(), described(args={}), described(args=None), described(inputSchema=None)):
        assert properties(read) == {}
        assert validator_for(read.input_schema).is_valid({})


def test_meta_is_kept_and_other_keys_do_not_matter():
    read = described(meta={"owner": "me", "deep": [1, {"a": None}]}, version=3, tags=["x"])
    assert read.meta == {"owner": "me", "deep": [1, {"a": None}]}
    assert described(meta="words").meta == {}


def test_json_may_be_spread_out_and_begin_with_a_byte_order_mark():
    said = b'\xef\xbb\xbf\r\n  {\r\n  "name": "x",\r\n  "description": " It does. "\r\n}\r\n\r\n'
    read = read_description(said)
    assert (read.name, read.description, read.form) == ("x", "It does.", "json")


def test_a_description_may_be_missing_in_json():
    assert read_description(b'{"name": "x"}').description == ""


@pytest.mark.parametrize("said", [b"name: x\n", b"name: x\npath: string a file\n", b"name: x\ndescription:\n"])
def test_a_tool_in_text_without_a_description_cannot_be_used(said):
    with pytest.raises(Unreadable, match="it has no line `description:` with a text"):
        read_description(said)


# Text.


def test_text_in_the_protocols_own_words():
    read = text(
        "name: tool_name",
        "description: What the tool does and when to use it.",
        "param1: string description of param1",
        "param2: string? optional parameter (note the ?)",
        "param3: string (optional) another way to mark optional",
        "param4: string optional and a third",
    )
    assert (read.name, read.form) == ("tool_name", "text")
    assert read.description == "What the tool does and when to use it."
    assert list(properties(read)) == ["param1", "param2", "param3", "param4"]
    assert required(read) == ["param1"]
    assert properties(read)["param1"] == {"type": "string", "description": "description of param1"}
    assert properties(read)["param2"] == {"type": "string", "description": "optional parameter (note the ?)"}


def test_lines_may_be_indented_and_have_blanks_around_and_at_the_end():
    read = read_description(b"\n\n    name:   x  \t\n\tdescription:  It does.   \n    a  : string  the first \n  \n")
    assert (read.name, read.description) == ("x", "It does.")
    assert properties(read) == {"a": {"type": "string", "description": "the first"}}


def test_several_description_lines_are_lines_of_one_description():
    assert text("name: x", "description: One: first.", "a: string", "description: Two.").description == (
        "One: first.\nTwo."
    )


def test_the_second_name_is_a_parameter():
    read = text("name: greet", "description: Greets.", "name: string who is greeted")
    assert read.name == "greet"
    assert properties(read) == {"name": {"type": "string", "description": "who is greeted"}}
    assert required(read) == ["name"]


@pytest.mark.parametrize(
    "words",
    [
        "string? the file",
        "string (optional) the file",
        "string optional the file",
        "string Optional: the file",
        "string (Optional) the file",
        "string?",
        "string optional",
        "(optional) the file",
        "optional file",
    ],
)
def test_each_mark_makes_a_parameter_optional(words):
    read = text("name: x", f"path: {words}")
    assert required(read) == []
    assert properties(read)["path"]["type"] == "string"


@pytest.mark.parametrize("words", ["string", "string the file", "string what is not optional", "", "the file"])
def test_without_a_mark_it_is_required(words):
    assert required(text("name: x", f"path: {words}")) == ["path"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("string", "string"),
        ("boolean", "boolean"),
        ("bool", "boolean"),
        ("number", "number"),
        ("integer", "integer"),
        ("int", "integer"),
        ("array", "array"),
        ("object", "object"),
    ],
)
def test_text_has_every_type(said, kind):
    assert properties(text("name: x", f"a: {said} words")) == {"a": {"type": kind, "description": "words"}}
    assert required(text("name: x", f"a: {said}? words")) == []


def test_a_type_may_be_followed_by_a_tab():
    assert properties(text("name: x", "a: integer\thow many")) == {"a": {"type": "integer", "description": "how many"}}


def test_an_unknown_first_word_is_no_type_and_all_of_it_is_description():
    read = text("name: x", "path: the file: its path", "other: filename? what")
    assert properties(read) == {
        "path": {"type": "string", "description": "the file: its path"},
        "other": {"type": "string", "description": "filename? what"},
    }


def test_lines_without_a_colon_and_lines_that_name_nothing_are_passed_over():
    read = text("Starting up", "name: x", "", "---", ": nothing", "  : nothing either", "description: It does.", "Done")
    assert (read.name, read.description, properties(read)) == ("x", "It does.", {})


def test_text_may_end_its_lines_as_windows_does_and_begin_with_a_byte_order_mark():
    read = read_description(b"\xef\xbb\xbfname: x\r\ndescription: It does.\r\na: string? one\r\n")
    assert (read.name, read.description) == ("x", "It does.")
    assert properties(read) == {"a": {"type": "string", "description": "one"}}


def test_json_that_is_no_object_is_text():
    with pytest.raises(Unreadable, match="no line `name:`"):
        read_description(b'"name: x"')
    with pytest.raises(Unreadable, match="no line `name:`"):
        read_description(b"42")


# What cannot be read.


def unfolding(levels):
    """A schema of a few lines that refers twice to the next line, again and again."""
    both = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}, {"$ref": f"#/$defs/{n + 1}"}]} for n in range(levels)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": {**both, str(levels): {}}}


def nested(depth):
    schema = {}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def tool(**facts):
    return json.dumps({"name": "x", "description": "d", **facts}).encode()


UNREADABLE = {
    "it is not UTF-8": b"name: \xff\xfe",
    "it is UTF-16": "name: x".encode("utf-16"),
    "it is empty": b"",
    "it is blank": b" \r\n\t\n",
    "it is only a byte order mark": b"\xef\xbb\xbf",
    "it is a JSON array": b'[{"name": "x"}]',
    "its JSON breaks off": b'{"name": "x",',
    "its JSON has a comma too many": b'{"name": "x",}',
    "its JSON has single quotes": b"{'name': 'x'}",
    "something follows its JSON": b'{"name": "x"}\nready',
    "there are two objects": b'{"name": "x"}\n{"name": "y"}',
    "its JSON holds NaN": b'{"name": "x", "meta": {"n": NaN}}',
    "its JSON holds Infinity": b'{"name": "x", "meta": {"n": -Infinity}}',
    "its JSON holds a number without end": b'{"name": "x", "meta": {"n": 1e999}}',
    "its JSON is nested without end": b'{"name": ' + b"[" * 200_000,
    "its JSON is nested deeply": b'{"name": "x", "meta": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "its JSON is an array nested deeply": b"[" * 100_000 + b"]" * 100_000,
    "it holds half a character": b'{"name": "x", "description": "\\ud800"}',
    "it holds half a character in a key": b'{"name": "x", "meta": {"\\udfff": 1}}',
    "it has no name": b'{"description": "d"}',
    "its name is no text": b'{"name": 3}',
    "its name is blank": b'{"name": "  "}',
    "its name is very long": json.dumps({"name": "x" * (LONGEST_NAME + 1)}).encode(),
    "its description is no text": b'{"name": "x", "description": ["d"]}',
    "its description is a book": tool(description="d" * 200_000),
    "its args are a list": tool(args=[["a", "string"]]),
    "an argument is a number": tool(args={"a": 1}),
    "an argument is an empty list": tool(args={"a": []}),
    "an argument has too many words": tool(args={"a": ["string", "words", "more"]}),
    "an argument's type is no word": tool(args={"a": [["string"], "words"]}),
    "an argument's description is no text": tool(args={"a": ["string", 5]}),
    "an argument is a schema of no known type": tool(args={"a": {"type": "strong"}}),
    "its schema is a list": tool(inputSchema=[]),
    "its schema is text": tool(inputSchema="object"),
    "its schema is of another type": tool(inputSchema={"type": "array", "items": {}}),
    "its schema is of no known type": tool(inputSchema={"type": "objekt"}),
    "its properties are a list": tool(inputSchema={"type": "object", "properties": ["a"]}),
    "a property is text": tool(inputSchema={"type": "object", "properties": {"a": "string"}}),
    "a property is of no known type": tool(inputSchema={"type": "object", "properties": {"a": {"type": "int"}}}),
    "its required ones are text": tool(inputSchema={"type": "object", "required": "a"}),
    "a pattern is no regular expression": tool(
        inputSchema={"type": "object", "properties": {"a": {"type": "string", "pattern": "(["}}}
    ),
    "a reference leads nowhere": tool(inputSchema={"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}}),
    "a reference leads to another host": tool(
        inputSchema={"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}}
    ),
    "a reference leads to a file": tool(
        inputSchema={"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}
    ),
    "its dialect is unknown": tool(inputSchema={"$schema": "https://example.com/dialect", "type": "object"}),
    "its references unfold without end": tool(inputSchema=unfolding(30)),
    "its schema is nested too deeply": tool(inputSchema=nested(100)),
    "it has too many parameters": tool(args={f"a{n}": ["string"] for n in range(MOST_PARAMETERS + 1)}),
    "its text has too many parameters": b"name: x\n" + b"".join(b"a%d: string\n" % n for n in range(501)),
    "its text has no name": b"description: d\na: string",
    "its text is an error message": b"bash: jq: command not found\n",
    "its text has a name without a word": b"name:\ndescription: d",
    "its text is a page": b"<html><body>Not Found</body></html>",
}


@pytest.mark.parametrize("said", UNREADABLE.values(), ids=UNREADABLE)
def test_it_cannot_be_read_and_says_why_and_how_to_mend_it(said):
    with pytest.raises(Unreadable) as error:
        read_description(said)
    assert error.value.message and error.value.cure
    assert str(error.value).isprintable() and len(str(error.value)) < 700


def test_what_is_wrong_is_named():
    def why(said):
        with pytest.raises(Unreadable) as error:
            read_description(said)
        return str(error.value)

    assert "byte 6" in why(b"name: \xff")
    assert "printed nothing" in why(b"")
    assert "JSON array" in why(b"[]")
    assert "line 1" in why(b'{"name": "x",')
    assert "NaN" in why(b'{"name": NaN}')
    assert "lone surrogate" in why(b'{"name": "\\udc00"}')
    assert "`args.a`" in why(tool(args={"a": 1}))
    assert "array" in why(tool(inputSchema={"type": "array"}))
    assert "500" in why(tool(args={f"a{n}": ["string"] for n in range(501)}))
    assert "expand" in why(tool(inputSchema=unfolding(30)))
    assert "`name:`" in why(b"description: d") and "description: d" in why(b"description: d")


@pytest.mark.parametrize("depth", [50, 90, 200, 400, 600, 800, 900, 950, 990, 1100, 3000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_any_depth_of_nesting_is_read_or_is_unreadable(depth, brackets):
    start, end = ("[", "]") if brackets == "[]" else ('{"a":', "}")
    said = '{"name": "x", "meta": {"m": ' + start * depth + "1" + end * depth + "}}"
    only_unreadable(said.encode())


def test_references_in_a_circle_are_read():
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "$defs": {"node": {"type": "object", "properties": {"children": {"items": {"$ref": "#/$defs/node"}}}}},
    }
    assert dict(described(inputSchema=tree).input_schema) == tree


# Anything at all.


def only_unreadable(said):
    with contextlib.suppress(Unreadable):
        read = read_description(said)
        assert read.name.strip() and read.form in ("json", "text")
        json.dumps([read.name, read.description, read.input_schema, read.meta], allow_nan=False).encode()
        validator_for(read.input_schema).is_valid({})


@given(st.binary(max_size=300))
@example(b"name:\x00")
@example(b"\xef\xbb\xbf{")
def test_no_bytes_do_more_than_be_unreadable(said):
    only_unreadable(said)


lines = st.tuples(
    st.sampled_from(["name", "description", "a", " b ", "", "\u2028", "日本"]),
    st.sampled_from([":", "", " : ", ": string", ": int? ", ": (optional)"]),
    st.text(max_size=12),
).map("".join)


@given(st.lists(lines, max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_no_lines_do_more_than_be_unreadable(said, end):
    only_unreadable(end.join(said).encode("utf-8", "surrogatepass"))


keywords = st.sampled_from(
    ["type", "properties", "required", "items", "$ref", "$id", "$defs", "$schema", "allOf", "enum", "pattern", "not"]
)
words = st.sampled_from(["object", "string", "#", "#/properties", "#/$defs/a", "", "(", "http://x/y", "a", "#a%zz"])
values = st.recursive(
    words | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords | words, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["name", "description", "args", "inputSchema", "meta"]), values))
def test_no_json_does_more_than_be_unreadable(facts):
    only_unreadable(json.dumps({"name": "x", **facts}).encode())


def test_whatever_one_tool_says_the_others_are_listed(box):
    """What is read is read for many at once: one that is nested deeply, or floods, must not take the others with it."""
    box.tool("good", "#!/bin/sh\nprintf 'name: good\\ndescription: d\\n'\n")
    deep = "printf '{\"name\": \"deep\", \"meta\": '; printf '[%.0s' {1..700}; printf ']%.0s' {1..700}; printf '}'"
    box.tool("deep", f"#!/usr/bin/env bash\n{deep}\n")
    box.tool("flood", "#!/bin/sh\nyes 'name: flood'\n")
    box.tool("bytes", "#!/bin/sh\nprintf 'name: \\377'\n")
    box.tool("noisy", "#!/bin/sh\nyes noise | head -c 300000 >&2\necho 'why it failed' >&2\nexit 4\n")
    listed = {one["name"]: one for one in box.haft("tools", "list", "--all", "--json").json}
    states = {name.removeprefix("tb__"): one["state"] for name, one in listed.items() if name.startswith("tb__")}
    assert states == {"good": "ready", "deep": "broken", "flood": "broken", "bytes": "broken", "noisy": "broken"}
    assert "exited 4" in listed["tb__noisy"]["reason"] and "why it failed" in listed["tb__noisy"]["reason"]
