"""An agent must not approve itself: commands that count as a person's, from a process that descends from a client."""

import contextlib
import json
import os

import pytest

from haft.service import StateHome, announce
from haft.service.process_tree import process

from .conftest import Terminal, until
from .test_shapes import fits

pytestmark = pytest.mark.skipif(process("self") is None, reason="this machine does not show processes")

PERSONS = [
    ["approve", "a_1"],
    ["approve", "a_1", "--always"],
    ["reject", "a_1"],
    ["trust", "--yes"],
    ["permissions", "add", "allow", "shell"],
    ["permissions", "remove", "remembered:1"],
    ["permissions", "edit"],
    ["providers", "add", "time", "--", "uvx", "mcp-server-time"],
    ["providers", "trust", "time", "--yes"],
    ["providers", "login", "time"],
    ["changes", "apply", "r_1"],
    ["tokens", "add", "agent"],
    ["connect", "claude-code", "--yes"],
    ["connect", "claude-code", "--remove", "--yes"],
    ["tools", "use", "shell", "--command", "true", "--approve"],
    ["use", "shell", "--command", "true", "--approve"],
    ["tools", "use", "shell", "--command", "true", "--network"],
    ["tools", "use", "shell", "--command", "true", "--network=example.org"],
    ["tools", "use", "shell", "--command", "true", "--write", "/tmp"],
    ["tools", "use", "shell", "--command", "true", "--read", "/etc"],
    ["tools", "use", "shell", "--command", "true", "--env", "HOME"],
    ["tools", "use", "shell", "--command", "true", "--scratch"],
    ["approval", "secret", "--new", "-"],
    ["approval", "secret", "--remove"],
    ["run", "--", "true"],
    ["templates", "build", "a_template", "--allow-builds"],
]

HARMLESS = [
    ["tools", "list"],
    ["tools", "use", "read_file", "--path", "a.txt"],
    ["inbox"],
    ["log"],
    ["permissions", "list"],
    ["trust", "--revoke"],
    ["tokens", "list"],
    ["connect"],
    ["connect", "codex", "--print"],
    ["audit", "verify"],
    ["undo", "--help"],
    ["approval", "secret", "--show"],
]


@pytest.fixture
def agent(haft):
    """A client that lives, and is a parent of every command of the test."""
    home = StateHome(str(haft.home))
    home.prepare()
    announced = announce(home, "agent", os.getpid())
    yield "agent"
    announced.release()


def test_a_command_of_a_person_is_refused_to_an_agent_and_the_audit_log_says_so(haft, agent):
    for words in PERSONS:
        said = haft(*words)
        assert said.code == 3, (words, said.err)
        assert f"was refused: this process may belong to `agent` (pid {os.getpid()})" in said.err
        assert "hint: type the command in a terminal window that the agent did not open" in said.err
    entries = [json.loads(line) for line in haft("audit", "export").out.splitlines()]
    for words, entry in zip(PERSONS, entries, strict=True):
        assert (entry["type"], entry["who"], entry["whoKind"]) == ("refuse", "agent", "agent")
        assert entry["command"].split()[1] == ("tools" if words[0] == "use" else words[0])
        fits("audit-entry", entry)
    assert "haft approve" in haft("audit", "list").out
    assert haft("audit", "verify").code == 0


def test_an_agent_may_still_look_and_call_tools(haft, agent):
    for words in HARMLESS:
        said = haft(*words)
        assert said.code == 0, (words, said.err)


@pytest.mark.every_user
def test_a_refused_approval_leaves_the_call_waiting(haft):
    call = haft.start("tools", "use", "shell", "--command", "touch made", "--wait", "60", "--json")
    (request,) = until(lambda: haft("inbox", "--json").json)
    announced = announce(StateHome(str(haft.home)), "agent", os.getpid())
    try:
        assert haft("approve", request["id"]).code == 3
        assert [one["id"] for one in haft("inbox", "--json").json] == [request["id"]]
        assert not (haft.workspace / "made").exists()
    finally:
        announced.release()
        for name in os.listdir(haft.home / "clients"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(haft.home / "clients" / name)
    assert haft("approve", request["id"]).code == 0
    out, _ = call.communicate()
    assert json.loads(out)["status"] == "done"


def test_an_agent_cannot_watch_the_inbox_on_a_terminal(haft, agent):
    terminal = Terminal(haft, "inbox", "--watch")
    terminal.until(f"was refused: this process may belong to `agent` (pid {os.getpid()})")
    assert terminal.end() == 3
    (entry,) = [json.loads(line) for line in haft("audit", "export").out.splitlines()]
    assert (entry["type"], entry["command"]) == ("refuse", "haft inbox --watch")


def test_an_agent_is_not_asked_at_its_own_terminal(haft, agent):
    terminal = Terminal(haft, "tools", "use", "shell", "--command", "touch made")
    terminal.until("haft does not ask at this terminal, because this process may belong to `agent`")
    assert terminal.end() == 3
    assert "Approve shell?" not in terminal.seen
    assert not (haft.workspace / "made").exists()
