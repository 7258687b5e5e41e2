"""What the hook answers an agent, and what becomes of the call: through `start.py` and a real resident."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hooking import Hook
from residents import end_resident, resident_of

from haft.service import Filter, StateHome, ToolService, open_history

Call = Callable[..., str]
ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "haft.toml").write_text("")
    (made / "note.txt").write_text("old\n")
    return made


@pytest.fixture
def hook(warm_home: Path, workspace: Path) -> Hook:
    return Hook(warm_home, workspace, **ATTENDED)


def runs(home: Path) -> list[dict[str, Any]]:
    """All runs, the newest first, with everything that is stored about them."""
    history = open_history(StateHome(str(home)))
    if history is None:
        return []
    try:
        return [{**each.rest, **each.record} for each in history.runs(Filter())]
    finally:
        history.close()


def rule(workspace: Path, action: str, tool: str, **matches: str) -> None:
    """Add a rule to the workspace's file. Rules that reject count without trust."""
    text = f'\n[[permissions]]\ntool = "{tool}"\naction = "{action}"\n'
    if matches:
        text += "matches = {" + ", ".join(f'{name} = "{value}"' for name, value in matches.items()) + "}\n"
    with open(workspace / "haft.toml", "a") as file:
        file.write(text)


@pytest.mark.every_user
def test_a_command_that_only_reads_is_rewritten_and_runs_through_haft(hook: Hook, home: Path, workspace: Path) -> None:
    answer = hook.before("Bash", {"command": "cat note.txt", "description": "Read"})
    assert answer["permissionDecision"] == "allow"
    line = answer["updatedInput"]["command"]
    assert line.endswith("'cat note.txt'")
    assert answer["updatedInput"]["description"] == "Read"
    ended = hook.shell(line)
    assert (ended.returncode, ended.stdout) == (0, "old\n"), ended.stderr
    [run] = runs(home)
    assert (run["tool"], run["who"], run["thread"], run["status"]) == ("shell", "claude-code", "session-1", "done")


def test_the_command_is_rewritten_and_no_other_argument_with_the_same_text(hook: Hook) -> None:
    answer = hook.before("Bash", {"description": "cat note.txt", "command": "cat note.txt"})
    assert answer["updatedInput"]["description"] == "cat note.txt"
    assert answer["updatedInput"]["command"] != "cat note.txt"


def test_a_rule_that_rejects_denies_with_the_reason(hook: Hook, home: Path, workspace: Path) -> None:
    rule(workspace, "reject", "shell", command="cat*")
    answer = hook.before("Bash", {"command": "cat note.txt"})
    assert answer["permissionDecision"] == "deny"
    assert "was rejected: the rule says reject shell where command is cat*" in answer["permissionDecisionReason"]
    [run] = runs(home)
    assert run["status"] == "rejected-by-user"
    assert run["run"] in answer["permissionDecisionReason"]


def test_a_new_rule_counts_at_once(hook: Hook, workspace: Path) -> None:
    assert hook.before("Bash", {"command": "cat note.txt"})["permissionDecision"] == "allow"
    rule(workspace, "reject", "shell", command="cat*")
    assert hook.before("Bash", {"command": "cat note.txt"})["permissionDecision"] == "deny"


def test_a_command_that_needs_approval_is_asked_in_the_agents_prompt(
    hook: Hook, home: Path, workspace: Path, haft: Call
) -> None:
    hook.shell(hook.before("Bash", {"command": "ls"})["updatedInput"]["command"])  # From now on rewriting is proven.
    answer = hook.before("Bash", {"command": "touch new.txt"})
    assert answer["permissionDecision"] == "ask"
    ended = hook.shell(answer["updatedInput"]["command"])
    assert ended.returncode == 0, ended.stderr
    assert (workspace / "new.txt").exists()
    run = runs(home)[0]
    assert run["decision"]["by"] == "client claude-code"
    haft(home, workspace, "undo", run["run"])
    assert not (workspace / "new.txt").exists()


def test_a_version_that_has_proven_nothing_gets_no_allow_for_a_command_that_may_change_something(
    hook: Hook, home: Path, workspace: Path
) -> None:
    answer = hook.before("Bash", {"command": "touch new.txt"})
    assert answer["permissionDecision"] == "ask"
    assert "updatedInput" not in answer
    hook.after("Bash", {"command": "touch new.txt"})
    [run] = runs(home)
    assert run["tool"] == "claude-code:Bash"
    assert any("has not yet run a command that haft's hook rewrote" in note for note in run["notes"])


def test_a_version_that_ran_the_original_line_is_rewritten_no_more(hook: Hook, home: Path, workspace: Path) -> None:
    assert "updatedInput" in hook.before("Bash", {"command": "ls"})
    hook.after("Bash", {"command": "ls"})
    assert hook.before("Bash", {"command": "ls"}) == {}
    hook.after("Bash", {"command": "ls"})
    covered = [run for run in runs(home) if run["tool"] == "shell"]
    assert [run["error"]["code"] for run in covered] == ["not-covered"]


@pytest.mark.parametrize(
    ("attended", "mode"), [("0", "default"), ("1", "bypassPermissions"), ("1", "dontAsk"), ("1", "auto")]
)
def test_where_nobody_sees_the_prompt_a_command_waits_in_the_inbox(
    warm_home: Path, workspace: Path, attended: str, mode: str
) -> None:
    home = warm_home
    hook = Hook(home, workspace, CLAUDE_CODE_SESSION_ATTENDED=attended)
    hook.shell(hook.before("Bash", {"command": "ls"}, permission_mode=mode)["updatedInput"]["command"])
    answers: list[dict[str, Any]] = []

    def ask() -> None:
        answers.append(hook.before("Bash", {"command": "touch new.txt"}, permission_mode=mode))

    asking = threading.Thread(target=ask)
    asking.start()
    with ToolService.open_sync(workspace, home=home) as service:
        while not (waiting := service.inbox()):
            pass
        service.approve(waiting[0].id)
    asking.join()
    assert answers[0]["permissionDecision"] == "allow"
    assert hook.shell(answers[0]["updatedInput"]["command"]).returncode == 0
    assert (workspace / "new.txt").exists()


@pytest.mark.every_user
def test_an_edit_is_undone(hook: Hook, home: Path, workspace: Path, haft: Call) -> None:
    given = {"file_path": str(workspace / "note.txt"), "old_string": "old", "new_string": "new"}
    assert hook.before("Edit", given)["permissionDecision"] == "ask"
    (workspace / "note.txt").write_text("new\n")
    hook.after("Edit", given)
    [run] = runs(home)
    assert (run["tool"], run["status"], run["who"]) == ("claude-code:Edit", "done", "claude-code")
    assert (run["changes"]["complete"], run["changes"]["state"]) == (False, "committed")
    assert run["decision"]["by"] == "client claude-code"
    assert [file["path"] for file in run["changes"]["files"]] == ["note.txt"]
    assert any(note.startswith("not covered") for note in run["notes"])
    haft(home, workspace, "undo", run["run"])
    assert (workspace / "note.txt").read_text() == "old\n"


def test_a_new_file_in_a_new_directory_is_undone(hook: Hook, home: Path, workspace: Path, haft: Call) -> None:
    given = {"file_path": str(workspace / "a/b/c.txt"), "content": "made\n"}
    hook.before("Write", given)
    (workspace / "a/b").mkdir(parents=True)
    (workspace / "a/b/c.txt").write_text("made\n")
    hook.after("Write", given)
    haft(home, workspace, "undo", runs(home)[0]["run"])
    assert not (workspace / "a").exists()


def test_a_rule_about_files_counts_for_the_agents_own_edit(hook: Hook, workspace: Path) -> None:
    rule(workspace, "reject", "edit_file", path="note.txt")
    given = {"file_path": str(workspace / "note.txt"), "old_string": "old", "new_string": "new"}
    assert hook.before("Edit", given)["permissionDecision"] == "deny"


def test_a_rule_about_files_counts_for_the_agents_own_reading(hook: Hook, workspace: Path) -> None:
    rule(workspace, "reject", "read_file", path="note.txt")
    assert hook.before("Read", {"file_path": str(workspace / "note.txt")})["permissionDecision"] == "deny"
    assert hook.before("Read", {"file_path": str(workspace / "other.txt")}) == {}


def test_a_rule_about_the_agents_own_tool_counts(hook: Hook, workspace: Path) -> None:
    rule(workspace, "reject", "claude-code:WebFetch")
    reason = hook.before("WebFetch", {"url": "https://example.org"})["permissionDecisionReason"]
    assert "`claude-code:WebFetch` was rejected" in reason
    assert hook.before("WebSearch", {"query": "x"}) == {}


def test_haft_has_nothing_against_reading_and_leaves_it_to_the_agent(hook: Hook, home: Path, workspace: Path) -> None:
    assert hook.before("Read", {"file_path": str(workspace / "note.txt")}) == {}
    hook.after("Read", {"file_path": str(workspace / "note.txt")})
    [run] = runs(home)
    assert (run["tool"], run["status"]) == ("claude-code:Read", "done")


def test_a_tool_that_haft_does_not_know_is_recorded_as_not_covered(hook: Hook, home: Path, workspace: Path) -> None:
    assert hook.before("WebFetch", {"url": "https://example.org"}) == {}
    hook.after("WebFetch", {"url": "https://example.org"})
    [run] = runs(home)
    assert (run["tool"], run["status"], run["changes"]["complete"]) == ("claude-code:WebFetch", "done", False)
    assert any(note.startswith("not covered") for note in run["notes"])


def test_shells_between_the_agent_and_the_command_for_a_project_are_not_the_agent(
    hook: Hook, home: Path, workspace: Path, tmp_path: Path
) -> None:
    """Such a shell ends with the hook. If it counted as the agent, the calls would end with it."""
    (tmp_path / "haft").write_text(f'#!/bin/sh\n{sys.executable} -m haft "$@"\nexit $?\n')
    (tmp_path / "haft").chmod(0o755)
    hook.words = ["env", f"PATH={tmp_path}:{os.environ['PATH']}", "sh", "-c", "haft hook claude-code"]
    assert hook.before("WebFetch", {"url": "https://example.org"}) == {}
    hook.after("WebFetch", {"url": "https://example.org"})
    [run] = runs(home)
    assert (run["tool"], run["status"]) == ("claude-code:WebFetch", "done")


def test_a_call_that_the_agent_says_failed_is_an_error(hook: Hook, home: Path, workspace: Path) -> None:
    hook.before("WebFetch", {"url": "https://example.org"})
    hook.after("WebFetch", {"url": "https://example.org"}, "PostToolUseFailure", error="no network")
    [run] = runs(home)
    assert (run["error"]["code"], run["error"]["message"]) == ("tool-failed", "no network")


def test_haft_decides_about_its_own_tools_when_they_are_called(hook: Hook, home: Path, workspace: Path) -> None:
    assert hook.before("mcp__haft__shell", {"command": "rm -rf /"}) == {}
    assert runs(home) == []


def told(agent: str, workspace: Path, tool: str, server: str | None = None) -> dict[str, Any]:
    """What an agent writes before a call of an MCP tool."""
    if agent == "opencode":
        call = {"tool": tool, "sessionID": "s", "callID": "c", "directory": str(workspace), "args": {}}
        return {**call, "hook_event_name": "tool.execute.before"}
    context = {} if server is None else {"mcp_context": {"server_name": server, "tool_name": "x"}}
    names = {"hook_event_name": "BeforeTool" if agent == "gemini" else "PreToolUse", "tool_name": tool}
    return {**names, **context, "tool_input": {}, "session_id": "s", "cwd": str(workspace)}


@pytest.mark.parametrize(
    ("agent", "tool", "server", "is_ours"),
    [
        ("opencode", "haft_shell", None, True),
        ("opencode", "haft_search_tools", None, True),
        ("opencode", "haft_x_run", None, False),
        ("opencode", "haft_run_anything", None, False),
        ("gemini", "mcp_haft_shell", "haft", True),
        ("gemini", "mcp_haft_shell", None, True),
        ("gemini", "mcp_haft_x_run", "haft_x", False),
        ("gemini", "mcp_haft_shell", "haft_shell", False),
        ("gemini", "mcp_haft_x_run", None, False),
        ("codex", "mcp__haft__shell", None, True),
        ("codex", "mcp__haft__x__run", None, False),
        ("claude-code", "mcp__haft_x__shell", None, False),
    ],
)
def test_the_tools_of_another_server_are_recorded_although_its_name_begins_as_hafts(
    warm_home: Path, workspace: Path, agent: str, tool: str, server: str | None, *, is_ours: bool
) -> None:
    ended = Hook(warm_home, workspace, agent).run(told(agent, workspace, tool, server))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert [run["tool"] for run in runs(warm_home)] == ([] if is_ours else [f"{agent}:{tool}"])


@pytest.fixture
def places(home: Path, tmp_path: Path) -> dict[str, Path]:
    """Directories that an agent's variables may name, and that of another project."""
    names = ("user", "config", "claude", "project")
    return {"home": home, **{name: tmp_path / name for name in names}}


def agent_elsewhere(home: Path, workspace: Path, places: dict[str, Path]) -> Hook:
    """An agent whose variables are not those of the resident, which another agent has started."""
    Hook(home, workspace).before("Read", {"file_path": "note.txt"})
    variables = {"HOME": "user", "XDG_CONFIG_HOME": "config", "CLAUDE_CONFIG_DIR": "claude"}
    return Hook(home, workspace, **{name: str(places[place]) for name, place in variables.items()}, **ATTENDED)


@pytest.mark.parametrize(
    "file",
    ["{home}/haft.db", "{config}/haft/haft.toml", "{claude}/settings.json", "{user}/.codex/hooks.json",
     "{config}/opencode/plugins/haft.js", "~/.claude/settings.json"],
)  # fmt: skip
def test_an_agent_does_not_edit_what_decides_about_it(
    home: Path, workspace: Path, places: dict[str, Path], file: str
) -> None:
    hook = agent_elsewhere(home, workspace, places)
    path = os.path.expanduser(file.format(**places))
    answer = hook.before("Write", {"file_path": path, "content": ""})
    assert answer["permissionDecision"] == "deny"
    assert "only a person may change" in answer["permissionDecisionReason"]


def reason_in_inbox(hook: Hook, file: str) -> str:
    """What the inbox says about an edit of this file, which is then rejected."""
    answers: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(hook.before("Write", {"file_path": file, "content": ""})))
    asking.start()
    with ToolService.open_sync(hook.workspace, home=hook.home) as service:
        while not (waiting := service.inbox()):
            assert asking.is_alive(), answers
        service.reject(waiting[0].id)
    asking.join()
    assert answers[0]["permissionDecision"] == "deny"
    return str(waiting[0].shown["reason"])


def test_an_edit_of_a_protected_path_is_not_approved_in_the_agents_prompt(home: Path, workspace: Path) -> None:
    hook = Hook(home, workspace, **ATTENDED)
    assert "git runs it as a hook" in reason_in_inbox(hook, str(workspace / ".git/hooks/pre-commit"))


@pytest.mark.parametrize(
    "file",
    ["{claude}/.claude.json", "~/.claude.json", "{user}/.codex/config.toml", "{config}/opencode/opencode.jsonc",
     "{user}/.cursor/mcp.json"],
)  # fmt: skip
def test_an_edit_of_a_list_of_servers_is_not_approved_in_the_agents_prompt(
    home: Path, workspace: Path, places: dict[str, Path], file: str
) -> None:
    hook = agent_elsewhere(home, workspace, places)
    reason = reason_in_inbox(hook, os.path.expanduser(file.format(**places)))
    assert "starts the MCP servers" in reason


def test_an_edit_of_a_file_of_another_project_that_connect_wrote_is_not_approved_in_the_agents_prompt(
    hook: Hook, home: Path, places: dict[str, Path], haft: Call
) -> None:
    other = places["project"]
    other.mkdir()
    (other / "haft.toml").write_text("")
    haft(home, other, "connect", "cursor", "--project", "--yes")
    assert "`haft connect` has written into it" in reason_in_inbox(hook, str(other / ".cursor" / "mcp.json"))


def test_without_a_workspace_no_edit_of_a_list_of_servers_passes(home: Path, tmp_path: Path) -> None:
    hook = Hook(home, tmp_path, HOME=str(tmp_path), **ATTENDED)
    answer = hook.before("Write", {"file_path": str(tmp_path / ".claude.json"), "content": ""})
    assert answer["permissionDecision"] == "deny"
    assert "without a workspace nobody can approve such an edit" in answer["permissionDecisionReason"]


def test_a_command_that_counts_as_a_persons_is_denied(hook: Hook, home: Path, workspace: Path) -> None:
    answer = hook.before("Bash", {"command": "sh -c 'haft approve a_1'"})
    assert answer["permissionDecision"] == "deny"
    assert "`haft approve` counts as a person's" in answer["permissionDecisionReason"]
    [run] = runs(home)
    assert run["status"] == "rejected-by-user"


def test_without_a_workspace_haft_decides_nothing_and_says_so_in_the_audit_log(
    home: Path, tmp_path: Path, haft: Call
) -> None:
    hook = Hook(home, tmp_path, HOME=str(tmp_path))
    assert hook.before("Bash", {"command": "ls"}) == {}
    [entry] = json.loads(haft(home, tmp_path, "audit", "list", "--json"))
    assert (entry["type"], entry["tool"], entry["who"]) == ("uncovered", "claude-code:Bash", "claude-code")


def test_an_agent_in_a_workspace_does_not_leave_it_by_the_directory_of_a_command(home: Path, workspace: Path) -> None:
    hook = Hook(home, workspace, "opencode")
    call = {"tool": "bash", "sessionID": "s", "callID": "c", "directory": str(workspace)}
    given = {**call, "hook_event_name": "tool.execute.before", "args": {"command": "ls", "workdir": "/"}}
    ended = hook.run(given)
    assert "/ is not in the workspace" in json.loads(ended.stdout)["deny"]
    [run] = runs(home)
    assert run["status"] == "rejected-by-user"


def test_an_agent_whose_shell_left_its_project_is_still_in_its_workspace(home: Path, workspace: Path) -> None:
    hook = Hook(home, workspace, CLAUDE_PROJECT_DIR=str(workspace), **ATTENDED)
    assert hook.before("Bash", {"command": "ls"}, cwd="/")["permissionDecision"] == "deny"
    assert hook.before("Read", {"file_path": "/etc/hosts"}, cwd="/") == {}
    hook.after("Read", {"file_path": "/etc/hosts"}, cwd="/")
    assert [run["tool"] for run in runs(home)] == ["claude-code:Read", "claude-code:Bash"]


@pytest.mark.parametrize("given", ["", "{", "[]", "{}", '{"hook_event_name": "PreToolUse", "tool_name": "Bash"}', "\0"])
def test_what_the_hook_does_not_understand_is_denied(hook: Hook, given: str) -> None:
    ended = hook.run(given)
    assert ended.returncode == 2
    assert ended.stderr.startswith("haft denied this call")


IMPATIENT = """
import haft.storage.sqlite.database as database
database.BUSY_SECONDS = 0.2
from haft.surfaces.hook.serving import serve_resident
serve_resident()
"""


def test_a_locked_database_denies_what_must_wait_in_the_inbox(home: Path, workspace: Path, haft: Call) -> None:
    """The resident gives up on the database soon: the test waits for it."""
    haft(home, workspace, "tools", "use", "read_file", "--path", "note.txt")
    resident = subprocess.Popen([sys.executable, "-c", IMPATIENT], env={**os.environ, "HAFT_HOME": str(home)})
    while resident_of(home) is None:
        assert resident.poll() is None
    hook = Hook(home, workspace, CLAUDE_CODE_SESSION_ATTENDED="0")
    with contextlib.closing(sqlite3.connect(home / "haft.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer = hook.before("Bash", {"command": "touch x"})
    assert answer["permissionDecision"] == "deny"
    assert "the database cannot be" in answer["permissionDecisionReason"]
    end_resident(home)
    assert resident.wait() == 0


def test_a_state_home_that_cannot_be_written_denies(workspace: Path, tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.write_text("")
    ended = Hook(home, workspace).run(Hook(home, workspace).event("PreToolUse", "Bash", {"command": "ls"}))
    assert ended.returncode == 2


def test_a_ticket_is_still_good_after_the_resident_was_restarted(hook: Hook, home: Path) -> None:
    line = hook.before("Bash", {"command": "cat note.txt"})["updatedInput"]["command"]
    end_resident(home)
    ended = hook.shell(line)
    assert (ended.returncode, ended.stdout) == (0, "old\n"), ended.stderr


def test_a_line_runs_once(hook: Hook) -> None:
    line = hook.before("Bash", {"command": "cat note.txt"})["updatedInput"]["command"]
    assert hook.shell(line).returncode == 0
    again = hook.shell(line)
    assert (again.returncode, again.stdout) == (126, "")
    assert "its ticket is unknown, or was used before" in again.stderr


def test_the_agents_shell_goes_where_the_command_ended(hook: Hook, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    line = hook.before("Bash", {"command": "cd sub && pwd"})["updatedInput"]["command"]
    ended = hook.shell(f"{line}\necho $?; pwd")
    assert ended.stdout.splitlines() == [str(workspace / "sub"), "0", str(workspace / "sub")], ended.stderr
