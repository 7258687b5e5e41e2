"""Names of MCP tools."""

from hypothesis import given
from hypothesis import strategies as st

from haft.contracts import is_tool_name
from haft.sources.mcp.names import listed_name, server_of


def test_names_say_the_server_and_the_tool():
    assert listed_name("files", "read.file") == "mcp__files__read_file"
    assert listed_name("files") == "mcp__files"


@given(st.text(min_size=1), st.text(min_size=1))
def test_every_name_is_valid(server, tool):
    assert is_tool_name(listed_name(server, tool))


def test_long_names_differ_if_their_ends_do():
    one, other = listed_name("s", "x" * 80 + "1"), listed_name("s", "x" * 80 + "2")
    assert len(one) == len(other) == 64 and one != other


def test_a_name_belongs_to_the_longest_server_that_fits():
    servers = ["a", "a_", "ab"]
    assert server_of("mcp__a__x", servers) == "a"
    assert server_of("mcp__ab__x", servers) == "ab"
    assert server_of("mcp__ab", servers) == "ab"
    assert server_of("mcp__c__x", servers) is None
    assert server_of("shell", servers) is None
