"""What `schema` may print, and what is said of everything else."""

import json

import pytest

from haft.sources.bash_plugin.schema import BadSchema, read_schema

FUNCTION = {"name": "mine", "description": " Does it. ", "parameters": {"type": "object", "properties": {"a": {}}}}
GOOD = {"id": "mine", "version": "0.1.0", "args_mode": "flags", "tools": [{"type": "function", "function": FUNCTION}]}


def said(**changes):
    return json.dumps({name: value for name, value in {**GOOD, **changes}.items() if value is not ...}).encode()


def function(**changes):
    merged = {name: value for name, value in {**FUNCTION, **changes}.items() if value is not ...}
    return [{"type": "function", "function": merged}]


def test_a_schema_is_kept_in_one_form():
    known = read_schema(b" \n" + said(config_keys=["user", "smtp-host"]) + b"\n")
    digest = known.pop("digest")
    assert known == {
        "name": "mine",
        "version": "0.1.0",
        "mode": "flags",
        "description": "Does it.",
        "inputSchema": FUNCTION["parameters"],
        "positional": [],
        "configKeys": ["user", "smtp-host"],
    }
    assert read_schema(said(config_keys=["user", "smtp-host"]))["digest"] == digest
    assert read_schema(said())["digest"] != digest


def test_what_may_be_left_out_is_left_out():
    known = read_schema(said(tools=function(description=..., parameters=...)))
    assert (known["description"], known["inputSchema"]) == ("", {"type": "object", "properties": {}})


def test_places_are_kept_in_their_order():
    places = [{"name": "b", "required": True}, {"name": "a", "default": 1}]
    parameters = {"type": "object", "properties": {"a": {}, "b": {}}}
    known = read_schema(said(args_mode="positional", positional=places, tools=function(parameters=parameters)))
    assert known["positional"] == places


POSITIONAL = {"args_mode": "positional"}
NESTED = json.loads('{"a":' * 200 + "1" + "}" * 200)
WRONG = {
    "nothing": (b"", "`schema` prints nothing", "print one JSON object to stdout and nothing else"),
    "noise before": (b"hello\n" + said(), "`schema` does not print JSON", "print one JSON object"),
    "noise after": (said() + b"\nbye", "`schema` does not print JSON", "print one JSON object"),
    "two objects": (said() + said(), "`schema` does not print JSON", "print one JSON object"),
    "too deep": (b"[" * 100_000, "`schema` does not print JSON", "print one JSON object"),
    "a list": (b"[]", "`schema` does not print a JSON object", "print one JSON object"),
    "no UTF-8": (b'{"id": "\xff"}', "its schema is not UTF-8 (byte 8)", "print UTF-8"),
    "half a character": (b'{"id": "\\ud800"}', "its schema", "print valid Unicode"),
    "no number": (b'{"id": NaN}', "its schema", ""),
    "no id": (said(id=...), "its schema has no `id`", 'add `"id"'),
    "empty id": (said(id=""), "its schema has no `id`", 'add `"id"'),
    "no version": (said(version=...), "its schema has no `version`", 'add `"version": "0.1.0"`'),
    "a number as version": (said(version=1), "its schema has no `version`", "add"),
    "no mode": (said(args_mode=...), "its `args_mode` is null", "write one of flags, positional, json"),
    "unknown mode": (said(args_mode="stdin"), 'its `args_mode` is "stdin"', "write one of flags, positional, json"),
    "a list as mode": (said(args_mode=["json"]), 'its `args_mode` is ["json"]', "write one of"),
    "no tools": (said(tools=...), "its schema has 0 tools", "one file is one tool"),
    "two tools": (said(tools=function() * 2), "its schema has 2 tools", "put each into a file of its own"),
    "no function": (said(tools=[{"type": "function"}]), "its tool is not a function", "write {"),
    "another type": (said(tools=[{"type": "x", "function": FUNCTION}]), "its tool is not a function", "write {"),
    "no object": (said(tools=["mine"]), "its tool is not a function", "write {"),
    "another name": (
        said(tools=function(name="other")),
        'its `id` is `mine` and its function is called "other"',
        "give both the same name",
    ),
    "no name": (said(tools=function(name=...)), "its function is called null", "give both the same name"),
    "bad name": (
        said(id="my tool", tools=function(name="my tool")),
        "`my tool` cannot be the name of a tool",
        "use 1 to 64 letters, digits, `_` and `-`",
    ),
    "long name": (said(id="a" * 65, tools=function(name="a" * 65)), "cannot be the name of a tool", "use 1 to 64"),
    "description": (said(tools=function(description=7)), "its description is not a text", "make it"),
    "parameters": (said(tools=function(parameters=[])), "its `parameters` are not a JSON Schema", "fix"),
    "string": (said(tools=function(parameters={"type": "string"})), "of the type `object`", "fix"),
    "properties": (said(tools=function(parameters={"properties": []})), "are not an object", "fix"),
    "type": (said(tools=function(parameters={"properties": {"a": {"type": "txt"}}})), "", "fix its `parameters`"),
    "deep": (said(tools=function(parameters={"properties": {"a": NESTED}})), "too complex", ""),
    "no places": (said(**POSITIONAL), "`positional` is not a list of names", 'write [{"name": "path"}, …]'),
    "odd places": (said(**POSITIONAL, positional=["a"]), "`positional` is not a list of names", "write"),
    "twice": (said(**POSITIONAL, positional=[{"name": "a"}] * 2), "names a parameter twice", "name each once"),
    "too few places": (said(**POSITIONAL, positional=[]), "has no place for `a`", "name every parameter in it"),
    "keys": (
        said(config_keys="user"),
        "its `config_keys` are not a list of names",
        'write `"config_keys": ["my_key"]`',
    ),
    "odd keys": (said(config_keys=[1]), "its `config_keys` are not a list of names", "write"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_schema_that_breaks_the_contract_is_told_what_is_wrong_and_how_to_mend_it(name):
    printed, message, cure = WRONG[name]
    with pytest.raises(BadSchema) as error:
        read_schema(printed)
    assert message in error.value.message
    assert cure in error.value.cure
    assert len(str(error.value)) < 600
