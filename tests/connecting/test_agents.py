"""The facts about agents."""

import pytest

from haft.connecting import AGENTS, Place, agent_named, agent_of_program
from haft.contracts import BadUsage


def test_every_agent_of_the_issue_is_known():
    assert list(AGENTS) == ["claude-code", "codex", "opencode", "gemini", "antigravity", "cursor", "vscode", "amp"]


def test_an_agent_is_found_by_the_program_that_people_start():
    assert agent_of_program("/usr/local/bin/claude") is AGENTS["claude-code"]
    assert agent_of_program("vim") is None


def test_an_unknown_agent_is_an_error_with_the_near_miss():
    with pytest.raises(BadUsage) as error:
        agent_named("claude-cod")
    assert "claude-code" in error.value.hint


def test_a_place_follows_the_variable_of_its_agent():
    place = AGENTS["codex"].user_servers
    assert place.resolve({"HOME": "/users/u"}) == "/users/u/.codex/config.toml"
    assert place.resolve({"HOME": "/users/u", "CODEX_HOME": "/elsewhere"}) == "/elsewhere/config.toml"
    servers = AGENTS["claude-code"].user_servers
    assert servers.resolve({"HOME": "/users/u", "CLAUDE_CONFIG_DIR": "/c"}) == "/c/.claude.json"


def test_a_place_in_a_project_is_relative_to_the_workspace():
    assert Place(".mcp.json").resolve({}, "/work") == "/work/.mcp.json"
