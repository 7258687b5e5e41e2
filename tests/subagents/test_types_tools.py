"""Which tools a type gets."""

import pytest

from haft.agents import BUILTIN_TYPES, EXPLORE, WORK, AgentType, allowed_tools, chosen_model
from haft.builtin import builtin_tools
from haft.contracts import BadConfig, Listing, ToolSpec

TOOLS = [
    *(Listing(tool.spec) for tool in builtin_tools()),
    *(Listing(ToolSpec(name, "mcp", "", {})) for name in ("mcp__git__log", "mcp__git__push", "tb__one", "task")),
    Listing(ToolSpec("tb__two", "amp-toolbox", "", {}), "disabled", "`tb__two` in `tools.disable` (haft.toml)"),
]


def given(*tools, disallowed=()):
    return allowed_tools(AgentType("a", "", tools=tools, disallowed=disallowed), TOOLS)


def test_the_builtin_types_get_all_their_tools_and_never_task():
    for one in BUILTIN_TYPES:
        assert allowed_tools(one, TOOLS).names == one.tools and allowed_tools(one, TOOLS).left_out == ()
    assert "task" not in (*WORK.tools, *EXPLORE.tools) and WORK.disallowed == ("task",)
    assert WORK.restricted and EXPLORE.readonly and EXPLORE.restricted


def test_a_type_that_names_no_tools_gets_those_of_explore():
    assert given().names == EXPLORE.tools
    assert given(disallowed=("search",)).names == ("read_file", "list_directory", "find_files")


def test_patterns_names_and_what_is_disallowed():
    assert given("mcp__git__*").names == ("mcp__git__log", "mcp__git__push")
    assert given("mcp__*", disallowed=("*push",)).names == ("mcp__git__log",)
    assert given("tb__*").names == ("tb__one",), "one of them is disabled"
    assert given("*_file", "read_file").names == ("edit_file", "read_file", "write_file")
    assert "task" not in given("*").names and len(given("*").names) == 10
    assert given("task", "search").names == ("task", "search"), "only its own name stands for it"
    assert given("*", "task", disallowed=("task",)).left_out == (("task", "the type disallows it"),)


def test_what_is_left_out_has_a_reason():
    found = given(
        "read_file", "tb__two", "raed_file", "Bash(git:*)", "WebSearch", "zzz*", "search", disallowed=("search",)
    )
    assert found.names == ("read_file",)
    assert dict(found.left_out) == {
        "tb__two": "it is disabled: `tb__two` in `tools.disable` (haft.toml)",
        "raed_file": "there is no such tool; did you mean `read_file`?",
        "Bash(git:*)": "a type cannot allow only some calls of a tool; name `shell`, and write a rule for its calls",
        "WebSearch": "haft has no such tool",
        "zzz*": "there is no such tool",
        "search": "the type disallows it",
    }


def test_no_tool_left_is_an_error():
    agent = AgentType("lost", "", tools=("WebSearch", "tb__two"))
    with pytest.raises(BadConfig) as caught:
        allowed_tools(agent, TOOLS).require(agent)
    assert (
        "the sub-agent `lost` has no tools: `WebSearch`: haft has no such tool; `tb__two`: it" in caught.value.message
    )
    allowed_tools(WORK, TOOLS).require(WORK)


def test_models_go_through_the_short_names():
    short = {"sonnet": "anthropic:one", "inherit": "openai:two"}
    assert chosen_model("sonnet", "a:b", short).name == "anthropic:one"
    assert chosen_model("", "a:b", short).name == "a:b"
    assert (
        chosen_model("inherit", "a:b", {}).name == "a:b" and chosen_model("inherit", "a:b", short).name == "openai:two"
    )
    assert chosen_model("x:y", "a:b", short).name == "x:y"
    other = chosen_model("opus", "a:b", short)
    assert other.name == "a:b" and "`opus` has no entry in `subagents.models`" in other.note
