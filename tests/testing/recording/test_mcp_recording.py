"""Calls of MCP tools are recorded with their answers, and replayed without the server."""

import sys
from pathlib import Path

import pytest

from haft.testing.reading import read_scenario_file

sys.path.insert(0, str(Path(__file__).parent))
from mcp_over_http import telling_server

pytestmark = pytest.mark.takes_turns

HEADER = "value-of-a-header-77"
CALLER = '''"""Calls an MCP tool."""
from haft import Context, tool


@tool
async def ask_twice(context: Context, word: str) -> str:
    """Ask the server twice."""
    outcomes = [await context.call("mcp__far__tell", {"word": each}) for each in (word, word * 2)]
    return " | ".join(each.output.strip() for each in outcomes)
'''


@pytest.fixture
def far(past, tmp_path):
    """A server in the user's own configuration, with a secret header."""
    config = tmp_path / "config/haft/haft.toml"
    config.parent.mkdir(parents=True)
    with telling_server() as url:
        header = f'headers = {{Authorization = "Bearer {HEADER}"}}'
        config.write_text(f'[providers.far]\ntype = "http"\nurl = "{url}"\n{header}\n')
        past.config = config
        yield past
    config.write_text("")


def test_a_call_of_a_remote_server_is_replayed_without_it(far):
    assert far.call("mcp__far__tell", {"word": "hello"}).output == "hello, [secret removed by haft]\n"
    recorded = far.record(to="tell.scenario.yaml")
    text = Path(recorded.path).read_text()
    assert HEADER not in text
    (scenario,) = read_scenario_file(recorded.path)
    (server,) = scenario.mcp
    assert (server.name, [each["name"] for each in server.tools]) == ("far", ["tell"])
    assert not scenario.network
    assert any("the answers of the MCP server far are recorded" in note for note in recorded.notes)
    assert far.replay(recorded).passed


def test_the_mcp_calls_that_a_tool_makes_are_recorded(far):
    far.write("functions/ask.py", CALLER)
    far.config.write_text(f'plugins = ["python:{far.workspace}/functions/ask.py"]\n{far.config.read_text()}')
    outcome = far.call("ask_twice", {"word": "ab"})
    assert outcome.status == "done", outcome
    recorded = far.record(to="ask.scenario.yaml")
    (scenario,) = read_scenario_file(recorded.path)
    assert [each.args for each in scenario.mcp[0].answers] == [{"word": "ab"}, {"word": "abab"}]
    assert HEADER not in Path(recorded.path).read_text()
    assert far.replay(recorded).passed
