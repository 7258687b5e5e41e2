"""The forms of the agents, on what the real ones wrote."""

from __future__ import annotations

import json

import pytest
from recordings import NAMES, PROJECT, recorded

from haft.connecting import AGENTS
from haft.surfaces.hook.events import HookEvent, Reply
from haft.surfaces.hook.formats import FORMATS
from haft.surfaces.hook.formats.patches import files_in_patch, patch_in_command

DENY = Reply("deny", "because")


def events(name: str) -> list[HookEvent]:
    agent, given = recorded(name)
    return [FORMATS[agent].read(each, "/elsewhere") for each in given]


def befores(name: str, tool: str) -> list[HookEvent]:
    return [event for event in events(name) if event.phase == "before" and event.tool == tool]


@pytest.mark.parametrize("name", NAMES)
def test_every_event_is_understood(name: str) -> None:
    for event in events(name):
        assert event.phase in ("before", "after")
        assert event.session
        assert event.cwd.startswith(PROJECT)


@pytest.mark.parametrize("name", NAMES)
def test_every_shell_call_has_its_command_and_its_directory(name: str) -> None:
    agent = recorded(name)[0]
    facts = AGENTS[agent].hooks
    assert facts is not None
    for event in events(name):
        if event.phase == "before" and event.tool in facts.shell_tools and "apply_patch" not in str(event.arguments):
            assert event.meaning.shell is not None
            assert event.meaning.shell.command == event.arguments["command"]
            assert event.meaning.shell.cwd.startswith(PROJECT)


@pytest.mark.parametrize(
    ("name", "shell"), [("claude-code", "Bash"), ("gemini", "run_shell_command"), ("opencode", "bash")]
)
def test_the_time_limit_and_the_background_are_the_agents(name: str, shell: str) -> None:
    uses = {event.meaning.shell for event in befores(name, shell)}
    limits = {use.command: use.timeout for use in uses if use is not None}
    if name != "gemini":
        assert limits["sleep 5"] == 1
        assert limits["echo hello"] == 120
    background = {use.command for use in uses if use is not None and use.is_background}
    assert len(background) == (0 if name == "opencode" else 1)


@pytest.mark.parametrize(("name", "shell"), [("gemini", "run_shell_command"), ("opencode", "bash"), ("codex", "Bash")])
def test_the_directory_of_a_command_is_the_one_that_the_agent_names(name: str, shell: str) -> None:
    uses = [event.meaning.shell for event in befores(name, shell)]
    assert {use.cwd for use in uses if use is not None and use.command == "pwd"} == {f"{PROJECT}/sub"}


@pytest.mark.parametrize("name", NAMES)
def test_every_edit_names_its_files(name: str) -> None:
    agent = recorded(name)[0]
    facts = AGENTS[agent].hooks
    assert facts is not None
    for event in events(name):
        if event.phase == "before" and event.tool in facts.edit_tools:
            assert event.meaning.files
            assert all(file.startswith(f"{PROJECT}/") for file in event.meaning.files)
            assert event.meaning.decided_as == ("write_file" if "rite" in event.tool else "edit_file")


def test_a_patch_in_codexs_shell_is_an_edit() -> None:
    [event] = [each for each in befores("codex", "Bash") if "apply_patch" in each.arguments["command"]]
    assert event.meaning.shell is None
    assert event.meaning.files == (f"{PROJECT}/patched2.txt", f"{PROJECT}/note.txt")


@pytest.mark.parametrize(
    "command",
    [
        "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF\nrm -rf x",
        "apply_patch <<'EOF'; rm x\n*** Begin Patch\n*** End Patch\nEOF",
        "apply_patch <<'EOF'\nEOF\nrm x\nEOF",
        "apply_patch <<EOF\n*** Begin Patch\n$(rm x)\n*** End Patch\nEOF",
        "apply_patch <<EOF\n*** Begin Patch\n`rm x`\n*** End Patch\nEOF",
        "apply_patch x",
        "echo apply_patch",
    ],
)
def test_a_command_that_does_more_than_to_apply_a_patch_is_a_command(command: str) -> None:
    assert patch_in_command(command) is None


def test_a_patch_names_all_its_files() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a b\n*** Move to: c\n@@\n*** Delete File: d\n*** Add File: e\n*** End Patch"
    )
    assert files_in_patch(patch) == ["a b", "c", "d", "e"]


@pytest.mark.parametrize("name", NAMES)
def test_before_and_after_have_the_same_id_if_there_is_one(name: str) -> None:
    agent = recorded(name)[0]
    found = events(name)
    begun = {event.call for event in found if event.phase == "before"}
    assert {event.call for event in found if event.phase == "after"} <= begun
    assert ("" in begun) == (agent == "gemini")


def test_each_agent_is_denied_in_its_own_form() -> None:
    forms = {
        agent: json.loads(FORMATS[agent].write(_some_event(), DENY).stdout) for agent in FORMATS if agent != "cursor"
    }
    specific = {
        "hookSpecificOutput": {
            "hookEventName": "before",
            "permissionDecision": "deny",
            "permissionDecisionReason": "because",
        }
    }
    assert forms["claude-code"] == forms["codex"] == forms["vscode"] == forms["antigravity"] == specific
    assert forms["gemini"] == {"decision": "deny", "reason": "because"}
    assert forms["opencode"] == {"deny": "because"}
    assert json.loads(FORMATS["cursor"].write(_some_event(), DENY).stdout)["permission"] == "deny"


@pytest.mark.parametrize("agent", sorted(set(FORMATS) - {"cursor"}))
def test_no_decision_is_silence(agent: str) -> None:
    assert FORMATS[agent].write(_some_event(), Reply("none")).stdout == b""


def test_a_rewritten_command_has_an_allow_only_where_the_reply_says_so() -> None:
    reply = Reply("rewrite", "so", {"command": "new", "x": 1})
    plain = json.loads(FORMATS["claude-code"].write(_some_event(), reply).stdout)["hookSpecificOutput"]
    assert plain == {"hookEventName": "before", "updatedInput": {"command": "new", "x": 1}}
    allowed = Reply("rewrite", "so", {"command": "new", "x": 1}, allows=True)
    told = json.loads(FORMATS["codex"].write(_some_event(), allowed).stdout)["hookSpecificOutput"]
    assert (told["permissionDecision"], told["updatedInput"]["command"]) == ("allow", "new")
    assert json.loads(FORMATS["gemini"].write(_some_event(), reply).stdout) == {
        "hookSpecificOutput": {"hookEventName": "before", "tool_input": {"command": "new", "x": 1}}
    }
    assert json.loads(FORMATS["opencode"].write(_some_event(), reply).stdout) == {"args": {"command": "new", "x": 1}}


def test_an_agent_that_cannot_ask_is_never_told_to() -> None:
    """Codex runs the call if a hook says `ask`; Gemini CLI waits for ever without a terminal."""
    assert {agent for agent, form in FORMATS.items() if form.can_ask} == {"claude-code", "vscode"}


def _some_event() -> HookEvent:
    from haft.surfaces.hook.events import Meaning

    return HookEvent("before", "Bash", {"command": "old"}, "s", "/", Meaning(), name="before")
