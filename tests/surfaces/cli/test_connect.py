"""`haft connect`: what a person types to put haft into an agent, and to take it out again."""

import json
import os
import re

from haft.connecting import AGENTS

TOKEN = re.compile(r"haft_[0-9a-f]{16}_[A-Za-z0-9_-]{43}")


def read(haft, name):
    with open(os.path.join(haft.env["HOME"], name), encoding="utf-8") as file:
        return json.load(file)


def test_the_change_is_printed_and_nothing_is_written(haft):
    printed = haft("connect", "claude-code", "--print")
    assert printed.code == 0 and '+    "haft": {' in printed.out and ".claude.json (new)" in printed.out
    assert not os.path.exists(os.path.join(haft.env["HOME"], ".claude.json"))
    assert not (haft.home / "connections").exists()


def test_commands_that_need_no_workspace_warn_of_none(haft):
    place = haft.workspace / "shared"
    (place / "below").mkdir(parents=True)
    (place / "haft.toml").touch()
    place.chmod(0o1777)
    assert "haft does not use the workspace" in haft("tools", "use", "list_directory", cwd=place / "below").err
    for words in (["connect"], ["log"], ["audit", "verify"], ["undo", "r_none"], ["inbox", "--all"]):
        assert "haft does not use" not in haft(*words, cwd=place / "below").err, words


def test_without_a_terminal_nothing_is_written_unless_yes_is_said(haft):
    refused = haft("connect", "claude-code")
    assert refused.code == 3 and "--yes" in refused.err
    assert haft("connect", "claude-code", "--yes").code == 0
    entry = read(haft, ".claude.json")["mcpServers"]["haft"]
    assert os.path.isabs(entry["command"]) and entry["args"][-2:] == ["serve", "mcp"]
    assert entry["env"] == {"HAFT_HOME": str(haft.home)}
    assert "is connected already" in haft("connect", "claude-code", "--yes").out


def test_a_person_sees_the_change_and_answers(haft, terminal):
    screen = terminal("connect", "gemini")
    screen.until('"mcpServers"')
    screen.until("Connect Gemini CLI? [y/N] ")
    screen.type("n\n")
    assert screen.end() == 3
    screen = terminal("connect", "gemini")
    screen.until("Connect Gemini CLI? [y/N] ")
    screen.type("y\n")
    screen.until("Gemini CLI is connected")
    assert screen.end() == 0
    assert read(haft, ".gemini/settings.json")["mcpServers"]["haft"]["trust"] is True


def test_the_line_that_hooks_start_is_one_file_of_ours_with_an_absolute_path(haft):
    haft("connect", "claude-code", "--hooks", "--yes")
    (group,) = read(haft, ".claude/settings.json")["hooks"]["PreToolUse"]
    (hook,) = group["hooks"]
    home, python, *flags, start, agent = hook["command"].split()
    assert home == f"HAFT_HOME={haft.home}" and flags == ["-I", "-S"] and agent == "claude-code"
    assert os.access(python, os.X_OK) and os.path.isfile(start) and os.path.isabs(start)
    assert hook["onFailure"] == "block" and hook["timeout"] == 300


def test_what_the_hooks_do_not_cover_is_said(haft):
    said = haft("connect", "codex", "--hooks", "--yes").err
    assert "if the hook fails like this:\n  - it is killed" in said
    assert "never reaches the hook: input for a command" in said
    assert "not tried with the program" in haft("connect", "cursor", "--print").err
    assert "run without haft's sandbox" in haft("connect", "cursor", "--hooks", "--print").err


def test_the_hint_names_haft_run_only_for_agents_in_a_terminal(haft):
    assert "haft run" not in haft("connect", "vscode", "--replace", "--print").err
    assert "haft run -- amp" in haft("connect", "amp", "--hooks", "--print").err


def test_the_overview_says_what_is_connected_and_how_well(haft):
    empty = haft("connect", "--json").json
    assert [each["agent"] for each in empty] == list(AGENTS)
    assert not any(each["connected"] for each in empty)
    haft("connect", "opencode", "--yes")
    haft("connect", "claude-code", "--hooks", "--yes")
    haft("connect", "gemini", "--replace", "--yes")
    rows = {line.split()[0]: line for line in haft("connect").out.splitlines()}
    assert "own shell and file tools are not covered" in rows["opencode"]
    assert "MCP, hooks" in rows["claude-code"] and "its own shell runs in haft's sandbox" in rows["claude-code"]
    assert "own tools off" in rows["gemini"]
    assert "not connected" in rows["amp"]


def test_the_overview_says_which_agents_are_installed(haft, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("codex", "cursor-agent"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    (programs / "gemini").write_text("no program")
    said = {each["agent"]: each["installed"] for each in haft("connect", "--json", PATH=str(programs)).json}
    assert {agent for agent, is_installed in said.items() if is_installed} == {"codex", "cursor"}
    rows = {line.split()[0]: line.split()[1] for line in haft("connect", PATH=str(programs)).out.splitlines()}
    assert (rows["codex"], rows["cursor"], rows["gemini"]) == ("installed", "installed", "not")


def test_removing_takes_everything_back(haft):
    before = sorted(os.listdir(haft.env["HOME"]))
    for agent in AGENTS:
        assert haft("connect", agent, "--yes").code == 0
        assert "is no longer connected" in haft("connect", agent, "--remove", "--yes").out
        assert "nothing to take back" in haft("connect", agent, "--remove", "--yes").out
    assert sorted(os.listdir(haft.env["HOME"])) == sorted({*before, "state"})


def test_over_http_the_agent_gets_a_token_that_is_never_shown(haft):
    said = haft("connect", "cursor", "--http", "--yes")
    assert "haft serve mcp --http 127.0.0.1:8000" in said.err
    entry = read(haft, ".cursor/mcp.json")["mcpServers"]["haft"]
    token = entry["headers"]["Authorization"].removeprefix("Bearer ")
    assert TOKEN.fullmatch(token) and entry["url"] == "http://127.0.0.1:8000/mcp"
    assert [each["name"] for each in haft("tokens", "list", "--json").json] == ["cursor"]
    again = haft("connect", "cursor", "--http", "--yes")
    assert "connected already" in again.out and read(haft, ".cursor/mcp.json")["mcpServers"]["haft"] == entry
    printed = haft("connect", "cursor", "--remove", "--print")
    assert not TOKEN.search(said.out + said.err + printed.out + printed.err)
    haft("connect", "cursor", "--remove", "--yes")
    assert haft("tokens", "list", "--json").json == []


def test_a_revoked_token_is_replaced_and_the_doctor_says_so(haft):
    haft("connect", "cursor", "--http", "--yes")
    haft("tokens", "revoke", "cursor")
    checks = [each for each in haft("doctor", "--json").json if each["check"] == "connected agents"]
    assert any(each["state"] == "broken" and "revoked" in each["detail"] for each in checks)
    haft("connect", "cursor", "--http", "--yes")
    assert [each["name"] for each in haft("tokens", "list", "--json").json] == ["cursor"]
    checks = [each for each in haft("doctor", "--json").json if each["check"] == "connected agents"]
    assert [each["state"] for each in checks] == ["ok"]


def test_the_doctor_finds_a_connection_that_starts_what_is_not_there(haft):
    haft("connect", "gemini", "--hooks", "--yes")
    path = os.path.join(haft.env["HOME"], ".gemini/settings.json")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("/surfaces/hook/start.py", "/gone/surfaces/hook/start.py"))
    checks = [each for each in haft("doctor", "--json").json if each["check"] == "connected agents"]
    (broken,) = (each for each in checks if each["state"] == "broken")
    assert "which is not there" in broken["detail"] and "haft connect gemini --hooks" in broken["hint"]


def test_a_project_gets_a_file_that_others_can_use(haft):
    said = haft("connect", "claude-code", "--project", "--hooks", "--yes")
    assert said.code == 0 and "each person needs `haft` on PATH" in said.err
    shared = json.loads((haft.workspace / ".mcp.json").read_text())
    assert shared == {"mcpServers": {"haft": {"type": "stdio", "command": "haft", "args": ["serve", "mcp"]}}}
    assert "haft hook claude-code" in (haft.workspace / ".claude/settings.json").read_text()
    assert any(each["scope"] == "project" for each in haft("connect", "--json").json)


def test_a_broken_file_is_an_error_that_names_the_file_and_the_line(haft):
    path = os.path.join(haft.env["HOME"], ".claude.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write('{\n  "a": 1\n  "b": 2\n}\n')
    said = haft("connect", "claude-code", "--yes")
    assert said.code == 2 and path in said.err and "line 3" in said.err
    with open(path, encoding="utf-8") as file:
        assert file.read() == '{\n  "a": 1\n  "b": 2\n}\n'
    assert haft("connect").code == 0 and "line 3" in haft("connect").err


def test_words_that_do_not_belong_together_are_refused(haft):
    assert haft("connect", "--hooks").code == 2
    assert haft("connect", "claude-code", "--address", "x:1").code == 2
    assert haft("connect", "claude-code", "--remove", "--http").code == 2
    unknown = haft("connect", "claud-code")
    assert unknown.code == 2 and "claude-code" in unknown.err


def test_files_that_connect_wrote_are_protected_also_behind_a_link(haft):
    dotfiles = haft.workspace / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "plain.json").write_text("{}\n")
    os.symlink(dotfiles / "plain.json", os.path.join(haft.env["HOME"], ".claude.json"))
    call = ("tools", "use", "shell", "--command", "echo >> dotfiles/plain.json", "--approve", "--json")
    assert haft(*call).json["changes"]["state"] == "committed"
    haft("connect", "claude-code", "--yes")
    held = haft(*call).json
    assert held["changes"]["state"] == "held" and held["error"]["code"] == "sandbox-denied"
    haft("connect", "claude-code", "--remove", "--yes")
    assert haft(*call).json["changes"]["state"] == "committed"


def test_an_old_claude_code_is_warned_about(haft, tmp_path):
    program = tmp_path / "versions/2.1.197"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/claude").symlink_to(program)
    haft.env["PATH"] = f"{tmp_path / 'programs'}:{haft.env['PATH']}"
    warning = "Claude Code 2.1.197 ignores `onFailure`: if haft's hook fails to start, calls pass"
    assert "warning" not in haft("connect", "claude-code", "--print").err
    for printed in (
        haft("connect", "claude-code", "--hooks", "--print"),
        haft("connect", "claude-code", "--hooks", "--yes", "-q"),
    ):
        assert f"warning: {warning}; update to 2.1.295 or newer" in printed.err
    said = haft("connect", "claude-code", "--hooks", "--print").err
    assert "\n  - it is killed" in said and "\n  - its program is not there" in said and "its time limit" in said
    assert warning in haft("connect").out
    (check,) = [
        each
        for each in haft("doctor", "--json").json
        if each["check"] == "connected agents" and each["detail"] == warning
    ]
    assert check["state"] == "warn" and "2.1.295" in check["hint"]
    (tmp_path / "programs/claude").unlink()
    assert "you need Claude Code 2.1.295 or newer" in haft("connect", "claude-code", "--hooks", "--print").err


def test_the_failures_that_pass_are_one_note(haft):
    said = haft("connect", "codex", "--hooks", "--print").err
    assert said.count("a call passes without haft's decision") == 1 and "\n  - its program is not there" in said
