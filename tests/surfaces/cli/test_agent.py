"""`haft agent list`, `show` and `check`, and `haft trust` for types of sub-agents."""

import pytest

from haft.agents import DEFAULT_PROMPT

REVIEWER = """---
name: reviewer
description: Reviews a change. Use before a commit.
tools: Read, Grep, WebSearch
model: sonnet
color: blue
---
You review changes.
"""


@pytest.fixture
def folder(haft):
    folder = haft.workspace / ".agents" / "agents"
    folder.mkdir(parents=True)
    (folder / "reviewer.md").write_text(REVIEWER)
    return folder


def by_name(said):
    return {one["name"]: one for one in said.json["types"]}


def test_types_are_listed_while_sub_agents_are_off(haft, folder):
    (folder / "broken.md").write_text("nothing")
    said = haft("agent", "list")
    assert said.code == 0 and "sub-agents are not enabled: `subagents.enabled` is false (default)" in said.err
    rows = {line.split()[0]: line for line in said.out.splitlines()}
    assert ".agents/agents/reviewer.md" in rows["reviewer"] and "untrusted" in rows["reviewer"]
    assert "broken" in rows["broken"] and "it has no front matter at its top" in rows["broken"]
    assert "built in" in rows["explore"] and "read_file, list_directory, search, find_files" in rows["explore"]
    assert haft("agent", "list", "-q").err == ""
    assert haft("agent", "list", "--json").json["enabled"] is False
    assert haft("agent", "list", "--json", HAFT_SUBAGENTS_ENABLED="1").json["enabled"] is True


def test_a_type_of_the_workspace_waits_for_trust_in_its_bytes(haft, folder, terminal):
    off = haft("trust", "--yes")
    assert off.code == 2 and "sub-agents are not enabled: set `subagents.enabled`" in off.err
    on = {"HAFT_SUBAGENTS_ENABLED": "true"}
    assert haft("trust", **on).code == 3, "there is no terminal to ask at"
    refused = haft("agent", "show", "reviewer")
    assert refused.code == 2 and "nobody trusts it yet" in refused.err
    asked = terminal("trust", COLUMNS="200", **on)
    asked.until("Trust this file as it is now? [y/N] ")
    assert "│ You review changes." in asked.seen
    asked.type("y\n")
    assert asked.end() == 0 and "reviewer.md is trusted as it is now" in asked.seen
    assert by_name(haft("agent", "list", "--json"))["reviewer"]["state"] == "ready"
    again = haft("trust", "--json", **on).json
    assert (again["trusted"], again["changed"], again["agents"]) == (True, False, [])

    (folder / "reviewer.md").write_text(REVIEWER + "More.\n")
    (folder / "other.md").write_text(REVIEWER.replace("name: reviewer", "name: other"))
    assert by_name(haft("agent", "list", "--json"))["reviewer"]["state"] == "untrusted"
    trusted = haft("trust", "--yes", "--json", **on).json
    assert [path.rpartition("/")[2] for path in trusted["agents"]] == ["other.md", "reviewer.md"]
    assert by_name(haft("agent", "list", "--json"))["reviewer"]["state"] == "ready"
    assert haft("trust", "--revoke").code == 0
    assert by_name(haft("agent", "list", "--json"))["reviewer"]["state"] == "untrusted"


def test_a_file_and_types_are_trusted_together_and_each_keeps_its_trust(haft, folder):
    (haft.workspace / "haft.toml").write_text("[subagents]\nenabled = true\n")
    first = haft("trust", "--yes", "--json").json
    assert first["widens"][0]["name"] == "subagents.enabled" and len(first["agents"]) == 1
    assert haft("agent", "list", "--json").json["enabled"] is True
    (haft.workspace / "haft.toml").write_text('[subagents]\nenabled = true\nmodel = "a:b"\n')
    assert by_name(haft("agent", "list", "--json"))["reviewer"]["state"] == "ready"
    assert haft("trust", "--yes").code == 0
    assert by_name(haft("agent", "list", "--json"))["reviewer"]["state"] == "ready"


def test_show_prints_what_a_sub_agent_would_get_and_the_whole_prompt(haft):
    (haft.workspace.parent / ".claude" / "agents").mkdir(parents=True)
    (haft.workspace.parent / ".claude" / "agents" / "reviewer.md").write_text(REVIEWER)
    said = haft("agent", "show", "reviewer", HAFT_SUBAGENTS_MODEL="a:b")
    assert "tools: read_file, search\n  without WebSearch: haft has no such tool\n" in said.out
    assert "model: a:b\n  `sonnet` has no entry in `subagents.models`" in said.out
    assert said.out.endswith("system prompt:\n  You review changes.\n")
    assert "warning: no effect in haft: `color`" in said.err
    shown = haft("agent", "show", "explore", "--json").json
    assert shown["prompt"] == DEFAULT_PROMPT and shown["hasOwnPrompt"] is False and shown["enabled"] is False
    assert shown["limits"] == {
        "cycles": 10,
        "tokens": 200_000,
        "calls": 100,
        "seconds": 900,
        "depth": 2,
        "children": 5,
        "cost": 0,
    }
    text = haft("agent", "show", "explore").out
    assert "system prompt (the default):" in text
    assert all(line in text for line in DEFAULT_PROMPT.splitlines())
    near = haft("agent", "show", "explroe")
    assert near.code == 2 and "did you mean `explore`?" in near.err


def test_check_finds_problems_in_files(haft, folder):
    said = haft("agent", "check")
    assert said.code == 0 and "warning agent-tool: it does not get `WebSearch`" in said.out
    assert "note agent-ignored: no effect in haft: `color`" in said.out and "1 checked: 1 warning, 1 note" in said.err
    (folder / "odd.md").write_text("---\nname: odd\n---\n")
    said = haft("agent", "check", str(folder))
    assert said.code == 1 and "odd.md: error agent-definition: it has no `description`" in said.out
    assert haft("agent", "check", "nothing.md").code == 2
    assert haft("tools", "check", "--explain", "agent-tool").code == 0


def test_check_finds_problems_in_configuration_files(haft):
    file = haft.workspace / "haft.toml"
    file.write_text(
        '[subagents.types.odd]\ndescription = "Reviews a change. Use before a commit."\nprompt = "Review."\n'
        'tols = ["Read"]\ntools = ["WebSearch", "Read"]\n[subagents.types.bad]\ntools = []\n'
    )
    for _ in ("untrusted", "trusted"):
        said = haft("agent", "check")
        assert said.code == 1, said
        where = f"{file}: subagents.types."
        assert f"{where}odd: warning agent-unknown-key: there is no key `tols`; did you mean `tools`?\n" in said.out
        assert f"{where}odd: warning agent-tool: it does not get `WebSearch`" in said.out
        assert f"{where}bad: error agent-definition: it has no `description`" in said.out
        assert len([line for line in said.out.splitlines() if line.startswith(where)]) == 3
        assert haft("trust", "--yes").code == 0
