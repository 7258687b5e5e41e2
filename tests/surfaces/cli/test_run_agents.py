"""`haft run` with an agent that haft knows: its own files, the hosts of its model, and hooks inside the run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import haft as package

START = Path(package.__file__).parent / "surfaces" / "hook" / "start.py"
HAFT = f"{sys.executable} -m haft"


@pytest.fixture
def agent(haft, tmp_path):
    """Runs a script as if it were Claude Code, in a home directory with its files."""
    home, programs = tmp_path / "person", tmp_path / "programs"
    (home / ".claude" / "projects").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("a secret of the person\n")
    (home / ".claude" / "settings.json").write_text('{"model": "x"}')
    (home / ".claude" / "history.jsonl").write_text("first\n")
    (home / ".claude.json").write_text('{"numStartups": 1, "mcpServers": {"mine": {"command": "true"}}}')
    programs.mkdir()

    def run(script, *options, name="claude", **env):
        program = programs / name
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(0o755)
        path = f"{programs}:{haft.env['PATH']}"
        return haft("run", *options, "--", name, "hello", PATH=path, HOME=str(home), **env)

    run.home = home
    return run


def held(haft):
    return {row["workspace"]: row for row in haft("changes", "list", "--json").json}


@pytest.mark.every_user
def test_the_agent_sees_its_own_files_and_nothing_else_of_home(agent):
    done = agent("ls -A ~; cat ~/.claude/settings.json; cat ~/.ssh/id", "-q")
    assert '{"model": "x"}' in done.out and ".ssh" not in done.out and "secret of the person" not in done.out


def test_what_the_agent_gets_is_shown_before_it_starts(agent):
    said = agent('echo "$@"', ANTHROPIC_API_KEY="sk-0123456789", ANTHROPIC_BASE_URL="http://127.0.0.1:8123")
    assert "a private copy of ~/.claude, ~/.claude.json" in said.err
    assert "api.anthropic.com" in said.err and "127.0.0.1:8123" in said.err and "ANTHROPIC_API_KEY" in said.err
    assert "its own sandbox is switched off" in said.err and "sk-0123456789" not in said.err
    assert said.out == '--settings {"sandbox":{"enabled":false}} hello\n'


def test_logins_and_history_are_carried_back(agent, haft):
    script = (
        "echo second >> ~/.claude/history.jsonl; echo token > ~/.claude/.credentials.json; rm -r ~/.claude/projects"
    )
    (agent.home / ".claude" / "projects" / "old.jsonl").write_text("old\n")
    assert agent(script).code == 0
    assert (agent.home / ".claude" / "history.jsonl").read_text() == "first\nsecond\n"
    assert (agent.home / ".claude" / ".credentials.json").read_text() == "token\n"
    assert not (agent.home / ".claude" / "projects" / "old.jsonl").exists()
    assert held(haft) == {}, "nothing waits for the person"


def test_settings_commands_and_servers_are_held_until_the_person_applies_them(agent, haft):
    script = """
    echo '{"hooks": {"PreToolUse": []}}' > ~/.claude/settings.json
    mkdir ~/.claude/commands; echo do it > ~/.claude/commands/evil.md
    echo '{"numStartups": 2, "mcpServers": {"evil": {"command": "evil"}}}' > ~/.new; mv ~/.new ~/.claude.json
    echo rest > ~/elsewhere
    """
    done = agent(script)
    assert "the agent changed its own settings" in done.err
    assert (agent.home / ".claude" / "settings.json").read_text() == '{"model": "x"}'
    assert not (agent.home / "elsewhere").exists() and not (agent.home / ".claude" / "commands").exists()
    now = json.loads((agent.home / ".claude.json").read_text())
    assert now == {"numStartups": 2, "mcpServers": {"mine": {"command": "true"}}}, "the record is carried back"
    row = held(haft)[str(agent.home)]
    assert row["reason"] == "they change what Claude Code runs later"
    assert "+do it" in haft("diff", row["run"]).out
    assert haft("changes", "apply", row["run"], ".claude.json", HOME=str(agent.home)).code == 0
    assert "evil" in json.loads((agent.home / ".claude.json").read_text())["mcpServers"]
    assert haft("changes", "drop", row["run"], HOME=str(agent.home)).code == 0
    assert not (agent.home / ".claude" / "commands").exists()


def test_the_settings_and_the_history_of_several_that_run_side_by_side_all_count(agent, haft):
    script = "echo $RANDOM$RANDOM > ~/.claude/settings.json; echo line $$-$RANDOM >> ~/.claude/history.jsonl"
    for _ in range(3):  # They end at the same time only sometimes.
        done = agent(script, "--times", "3", "-q")
        assert done.code == 0 and "not all changes" not in done.err
    rows = [row for row in haft("changes", "list", "--json").json if row["workspace"] == str(agent.home)]
    assert len(rows) == 9
    assert all(row["files"] == 1 for row in rows), rows
    assert len((agent.home / ".claude" / "history.jsonl").read_text().splitlines()) == 10


def test_settings_that_cannot_be_held_are_told(agent, haft):
    """The directory of held changes is a file."""
    assert agent("echo 1 > ~/.claude/settings.json").code == 0
    [row] = haft("changes", "list", "--json").json
    assert haft("changes", "drop", row["run"], HOME=str(agent.home)).code == 0
    [place] = [
        path.parent for path in (haft.home / "changes").glob("*/workspace") if path.read_text() == str(agent.home)
    ]
    (place / "held").rmdir()
    (place / "held").write_text("")
    done = agent("echo 2 > ~/.claude/settings.json", "-q")
    assert "not all changes of the agent's own files were carried back: .claude/settings.json: " in done.err
    assert "because the disk failed" in done.err


def test_records_of_a_project_decide_nothing_and_allowed_tools_do(agent, haft):
    (agent.home / ".claude.json").write_text(json.dumps({"projects": {"/w": {"allowedTools": [], "lastCost": 1}}}))
    after = {"projects": {"/w": {"allowedTools": [], "lastCost": 2, "history": ["x"]}, "/new": {"allowedTools": []}}}
    agent(f"echo '{json.dumps(after)}' > ~/.claude.json")
    assert json.loads((agent.home / ".claude.json").read_text()) == after and held(haft) == {}
    after["projects"]["/w"]["allowedTools"] = ["Bash"]
    agent(f"echo '{json.dumps(after)}' > ~/.claude.json")
    assert json.loads((agent.home / ".claude.json").read_text())["projects"]["/w"]["allowedTools"] == []
    assert str(agent.home) in held(haft)


def test_a_link_is_never_carried_back(agent, haft):
    agent("ln -s ~/.ssh ~/.claude/projects/link; ln -s /etc/passwd ~/.claude/todos")
    assert not os.path.lexists(agent.home / ".claude" / "projects" / "link")
    assert not os.path.lexists(agent.home / ".claude" / "todos")


@pytest.mark.parametrize("line", [f"{sys.executable} -I -S {START} claude-code", f"{HAFT} hook claude-code"])
def test_a_hook_inside_the_run_gets_no_decision(agent, haft, line):
    """In the person's own files, and in the files of a project."""
    given = '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf x"}}'
    done = agent(f"echo '{given}' | {line}; echo code $?", "-q")
    assert done.out == "code 0\n" and done.err == ""


def test_the_private_copy_is_gone_afterwards_and_after_a_kill(agent, haft, ended):
    assert agent("true").code == 0
    assert list((haft.home / "programs").iterdir()) == []
    program = agent.home.parent / "programs" / "claude"
    program.write_text("#!/bin/bash\necho ready\nsleep 300\n")
    haft.env |= {"PATH": f"{program.parent}:{haft.env['PATH']}", "HOME": str(agent.home)}
    process = ended(haft.start("run", "--", "claude"))
    assert process.stdout.readline() == b"ready\n"
    (left,) = (haft.home / "programs").iterdir()
    process.kill()
    process.wait()
    assert left.exists()
    assert haft("run", "--", "true").code == 0
    assert list((haft.home / "programs").iterdir()) == []


def test_the_agents_folder_may_be_elsewhere(agent, tmp_path, haft):
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "auth.json").write_text("old")
    done = agent(
        "cat $CODEX_HOME/auth.json; echo new > $CODEX_HOME/auth.json", "-q", name="codex", CODEX_HOME=str(place)
    )
    assert done.out == "old" and (place / "auth.json").read_text() == "new\n"


def test_an_mcp_server_inside_the_run_offers_no_tools_and_says_why(haft):
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
    ]
    stdin = "".join(f"{json.dumps(each)}\n" for each in asked)
    read = "read -r -u ${S[0]} line; printf '%s\\n' \"$line\""
    script = f"coproc S {{ {sys.executable} -m haft serve mcp; }}; cat >&${{S[1]}}; {read}; {read}"
    done = haft("run", "-q", "--", "bash", "-c", script, stdin=stdin)
    answers = {each["id"]: each["result"] for each in map(json.loads, done.out.splitlines())}
    assert "haft offers no tools here" in answers[1]["instructions"] and answers[2]["tools"] == []
    assert "haft offers no tools here" in done.err
