"""Markdown files of types: what counts, and that every file gives a type or a reason."""

import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from haft.agents import AgentType, TypeFile, parse_definition, type_of_file
from sampling import MORE


def read(text):
    return type_of_file(TypeFile("/etc/agents/finder.md", None, text.encode()))


def usable(text):
    found = read(text)
    assert found.problem is None and found.state == "ready"
    return found.type


def problem(text):
    found = read(text)
    assert found.type is None and found.state == "broken" and not found.is_usable
    return found.problem


def test_a_file_of_claude_code_is_read_as_it_is():
    found = usable(
        "---\n"
        "name: finder\n"
        "description: Use this agent when: something is lost. Examples: <example>user: 'where?'</example>\n"
        "tools: Read, Grep, Glob, LS, Bash(git log:*), WebFetch, mcp__git, mcp__github__get_pr\n"
        "disallowedTools: [Write, 'Bash(rm:*)']\n"
        "model: sonnet\n"
        "maxTurns: 4\n"
        "permissionMode: bypassPermissions\n"
        "mcpServers:\n- slack\n- local:\n    command: evil\n"
        "hooks:\n  PreToolUse:\n    - matcher: Bash\n"
        "isolation: worktree\n"
        "color: blue\n"
        "---\n\nYou find things.\n"
    )
    assert found.description == "Use this agent when: something is lost. Examples: <example>user: 'where?'</example>"
    assert found.prompt == "You find things."
    assert found.tools == (
        *("read_file", "search", "find_files", "list_directory"),
        *("Bash(git log:*)", "WebFetch", "mcp__git__*", "mcp__github__get_pr"),
    )
    assert found.disallowed == ("write_file", "shell")
    assert (found.model, found.budget, found.isolation) == ("sonnet", {"cycles": 4}, "layer")
    assert found.notes == (
        "no effect in haft: `permissionMode`, `mcpServers`, `hooks`, `color`",
        "`Bash(rm:*)` in `disallowedTools` disallows all calls of `shell`",
        "its isolation `worktree` is read as `layer`",
    )
    assert (found.readonly, found.restricted, found.provenance) == (False, True, "user")


def test_the_keys_of_haft():
    found = usable(
        "---\nname: finder\ndescription: >\n  Finds\n  things.\nreadonly: true\nrestricted: false\n"
        "temperature: 0\noutput_tokens: 800\nmaxTurns: 9\nlimits:\n  cycles: 3\n  seconds: 1.5\n  cost: 0.25\n"
        "output:\n  type: object\n  properties:\n    found: {type: array, items: {type: string}}\n---\n"
    )
    assert found.description == "Finds things." and found.prompt == "" and found.tools == ()
    assert (found.readonly, found.restricted, found.temperature, found.output_tokens) == (True, False, 0.0, 800)
    assert found.budget == {"cycles": 3, "seconds": 1.5, "cost": 0.25}
    assert found.output["properties"]["found"] == {"type": "array", "items": {"type": "string"}}
    deep = {"type": "object", "properties": {f"p{number}": {"type": ["string"]} for number in range(60)}}
    long = usable(f"---\nname: finder\ndescription: Finds.\noutput: {json.dumps(deep, indent=1)}\n---\n")
    assert long.output == deep, "JSON may be longer and deeper than YAML"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("name: finder", "it has no `description`; say what it is for, and when to use it"),
        ("description: Finds.", "it has no `name`; add `name: …`"),
        ("name: Finder One\ndescription: F.", "`Finder One` is not a valid name; use at most 64 characters of a-z"),
        ("name: explore\ndescription: F.", "`explore` is a built-in type, which cannot be replaced; use another name"),
        ("name: work\ndescription: F.", "`work` is a built-in type"),
        ("name: finder\nname: other\ndescription: F.", "`name` stands there twice"),
        ("name: finder\ndescription: F.\ntools: []", "its `tools` name no tool"),
        ("name: finder\ndescription: F.\ntools:", "its `tools` name no tool"),
        ("name: finder\ndescription: F.\ntools: {a: b}", "its `tools` must be names of tools"),
        ("name: finder\ndescription: F.\nmaxTurns: many", "its `maxTurns` must be a whole number, at least 1"),
        ("name: finder\ndescription: F.\nmaxTurns: 0", "its `maxTurns` must be a whole number, at least 1"),
        ("name: finder\ndescription: F.\nlimits: 5", "its `limits` must be a table"),
        ("name: finder\ndescription: F.\nlimits: {token: 5}", "there is no limit `token`; did you mean `tokens`?"),
        ("name: finder\ndescription: F.\nlimits: {cost: 0}", "its limit `cost` must be more than 0"),
        ("name: finder\ndescription: F.\nlimits: {cost: .nan}", "the value of `limits` cannot be represented in JSON"),
        ("name: finder\ndescription: F.\nlimits: 2020-13-45", "the value of `limits` cannot be represented in JSON"),
        ("name: finder\ndescription: F.\nlimits: [1", "the value of `limits` is not valid YAML"),
        ("name: finder\ndescription: F.\nreadonly: maybe", "its `readonly` must be true or false"),
        ("name: finder\ndescription: F.\nisolation: none", "its `isolation` must be `workspace` or `layer`"),
        ("name: finder\ndescription: F.\ntemperature: 3", "its `temperature` must be a number from 0 to 2"),
        ("name: finder\ndescription: F.\noutput: text", "its `output` must be a JSON Schema"),
        ("name: finder\ndescription: F.\noutput: {type: thing}", "its `output` cannot be used: "),
        ("name: finder\ndescription: F.\noutput: {default: 2020-01-01}", "write dates as text"),
        ("name: finder\ndescription: F.\noutput: &a {x: *a}", "uses an alias, which haft does not support"),
        ("finder\nname: finder", "`finder` is not `KEY: VALUE`"),
    ],
)
def test_a_wrong_value_makes_the_definition_unusable_with_a_reason(keys, said):
    assert said in problem(f"---\n{keys}\n---\nPrompt.\n")


def test_what_is_no_definition_at_all():
    assert "it has no front matter at its top" in problem("# Notes\n")
    assert "it has no front matter at its top" in problem("---\nname: finder\n")
    assert "it is larger than" in problem("---\nname: finder\n---\n" + "x" * 200_000)
    assert type_of_file(TypeFile("/a/b.md", None, b"\xff")).problem == "it is not UTF-8 (byte 0); save it as UTF-8"
    assert "is not a text" in problem("---\nname: \0\n---\n")


def test_unknown_keys_are_said_with_the_near_miss():
    found = usable("---\nname: finder\ndescription: F.\ndisalowedTools: Bash\nzzz: 1\n---\n")
    assert found.disallowed == ()
    assert found.notes == (
        "there is no key `disalowedTools`; did you mean `disallowedTools`?",
        "there is no key `zzz`",
    )


KEYS = (
    "name",
    "description",
    "tools",
    "disallowedTools",
    "model",
    "maxTurns",
    "limits",
    "output",
    "isolation",
    "hooks",
)
MARKS = [
    "*",
    "{",
    "}",
    "[",
    "]",
    "-",
    ":",
    "'",
    '"',
    "#",
    "<<",
    "~",
    "%",
    "@",
    "`",
    "&a",
    "*a",
    "|",
    ">",
    "---",
    "1e999",
    "0x",
    "true",
    "2020-01-01",
    "!!python/object:os.system",
]
WORDS = [
    "Read, Grep",
    "Bash(a:*)",
    "tokens: 5",
    "{type: object}",
    "\n  ",
    "\n- ",
    "\n---\n",
    "\r\n",
    "\t",
    "\u202e",
    ": ",
]
PIECES = some.sampled_from([*(f"\n{key}: " for key in KEYS), *MARKS, *WORDS])


@settings(max_examples=100 * MORE, deadline=None)
@given(some.lists(some.one_of(PIECES, some.text(max_size=6)), max_size=25).map("".join))
def test_every_file_gives_a_type_or_a_reason(inner):
    text = f"---\nname: finder\ndescription: F.{inner}\n---\nPrompt"
    data = text.encode("utf-8", "surrogatepass")
    found = type_of_file(TypeFile("/a/b.md", None, data))
    if found.type is None:
        assert found.problem and "\n" not in found.problem and re.match(r"its |it |`|there ", found.problem)
        return
    assert isinstance(found.type, AgentType) and found.problem is None
    assert re.fullmatch("[a-z0-9-]{1,64}", found.type.name)
    assert all(isinstance(one, str) and one for one in (*found.type.tools, *found.type.disallowed, *found.type.notes))
    assert all(number > 0 for number in found.type.budget.values())
    json.dumps([found.type.output, found.type.budget])


@settings(max_examples=100 * MORE, deadline=None)
@given(some.binary(max_size=200))
def test_bytes_never_raise(data):
    assert parse_definition(data).problem is not None


VALUES = some.recursive(
    some.none() | some.booleans() | some.integers(-5, 10**6) | some.text("abc", max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text("abc", min_size=1), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50 * MORE, deadline=None)
@given(VALUES)
def test_a_key_alone_has_the_value_that_yaml_gives_it(value):
    text = yaml.safe_dump({"limits": value}, allow_unicode=True)
    assert parse_definition(f"---\n{text}---\n".encode()).keys == {"limits": value}
