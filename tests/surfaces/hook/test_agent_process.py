"""Which process is the agent, its version, and whether a person sees its prompts. An agent that nobody watches would
answer its own prompt."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from haft.service.process_tree import process as seen
from haft.surfaces.hook.agent_process import AgentProcess, agent_process, shows_person

AGENTS = ("claude-code", "codex", "gemini", "opencode", "vscode")
HEADLESS = [
    *(("claude-code", word) for word in ("-p", "--print")),
    *(("codex", word) for word in ("exec", "e", "app-server", "mcp-server")),
    *(("gemini", word) for word in ("-p", "--prompt", "-y", "--yolo")),
    *(("opencode", word) for word in ("run", "serve", "web")),
]
ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}
UNATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "0"}
RELEASES = "/place/of/ann/.codex/packages/app-server-daemon/releases"


def at_terminal(*words: str) -> AgentProcess:
    return AgentProcess(7, ("/usr/bin/agent", *words), "/usr/bin/agent", has_terminal=True)


@pytest.mark.parametrize("mode", ["bypassPermissions", "dontAsk", "auto"])
@pytest.mark.parametrize("agent", AGENTS)
def test_in_a_mode_that_asks_nobody_no_person_sees_a_prompt(agent: str, mode: str) -> None:
    assert not shows_person(agent, at_terminal(), mode, ATTENDED)


@pytest.mark.parametrize("mode", ["default", "plan", "acceptEdits", ""])
@pytest.mark.parametrize("agent", AGENTS)
def test_in_any_other_mode_a_person_at_the_terminal_sees_it(agent: str, mode: str) -> None:
    assert shows_person(agent, at_terminal(), mode, {})


@pytest.mark.parametrize(("agent", "word"), HEADLESS)
def test_with_a_word_for_no_person_nobody_sees_it(agent: str, word: str) -> None:
    assert not shows_person(agent, at_terminal("--model", "m", word, "do it"), "default", {})
    assert shows_person(agent, at_terminal("--model", "m", "do it"), "default", {})
    other = "vscode"  # A word means that only to its own agent.
    assert shows_person(other, at_terminal(word), "default", {})


@pytest.mark.parametrize("agent", AGENTS)
def test_without_a_terminal_nobody_sees_it(agent: str) -> None:
    assert not shows_person(agent, AgentProcess(7, ("/usr/bin/agent",)), "default", {})
    assert not shows_person(agent, None, "default", {})


def test_what_claude_code_says_about_itself_counts_before_its_command_line() -> None:
    without = AgentProcess(7, ("claude",))
    assert shows_person("claude-code", without, "default", ATTENDED)
    assert shows_person("claude-code", None, "default", ATTENDED)
    assert not shows_person("claude-code", at_terminal(), "default", UNATTENDED)
    assert not shows_person("claude-code", at_terminal(), "default", {"CLAUDE_CODE_SESSION_ATTENDED": "yes"})


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "claude-code"])
def test_the_variable_of_claude_code_says_nothing_about_other_agents(agent: str) -> None:
    assert not shows_person(agent, None, "default", ATTENDED)
    assert shows_person(agent, at_terminal(), "default", UNATTENDED)


@contextlib.contextmanager
def started(tmp_path: Path, start: str, *, stdin: int, stdout: int) -> Iterator[tuple[int, int]]:
    """An agent with these streams, whose hook is a line of a shell. Yields the agent's pid and that of the hook."""
    told = tmp_path / "told"
    os.mkfifo(told)
    hook = f"sh -c 'echo $$ > {told}; sleep 60; true {start}'; true"
    code = "import os, subprocess; subprocess.run(['sh', '-c', os.environ['HOOK']], stdin=-3, stdout=-3)"
    agent = subprocess.Popen(
        [sys.executable, "-c", code, "word"],
        stdin=stdin,
        stdout=stdout,
        env={**os.environ, "HOOK": hook},
        start_new_session=True,
    )
    try:
        yield agent.pid, int(told.read_text())
    finally:
        os.killpg(agent.pid, 9)
        agent.wait()


@pytest.mark.skipif(seen("self") is None, reason="this machine does not show processes")
@pytest.mark.parametrize("streams", ["both", "stdin only", "stdout only", "none"])
def test_the_agent_is_the_nearest_parent_that_is_no_part_of_the_hooks_line(tmp_path: Path, streams: str) -> None:
    start = str(tmp_path / "start.py")
    ours, theirs = pty.openpty()
    no = subprocess.DEVNULL
    stdin, stdout = (theirs if streams in ("both", f"{name} only") else no for name in ("stdin", "stdout"))
    try:
        with started(tmp_path, start, stdin=stdin, stdout=stdout) as (agent, hook):
            found = agent_process(hook, start)
            assert found is not None
            assert (found.pid, found.words[-1], found.has_terminal) == (agent, "word", streams == "both")
            assert os.path.samefile(found.program, sys.executable)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_hook_whose_parents_are_not_known_has_no_agent() -> None:
    assert agent_process(None, "start.py") is None
    assert agent_process(2**22 + 1, "start.py") is None
    assert agent_process(1, "start.py") is None


def package(place: Path, version: object) -> Path:
    """A program in a package of npm."""
    program = place / "bin" / "agent"
    program.parent.mkdir(parents=True)
    program.write_text("")
    (place / "package.json").write_text(json.dumps({"version": version}))
    return program


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("2.1.3", "2.1.3"),
        ("0.135.0-linux-x64", "0.135.0"),
        ("0.135.0-alpha.2-darwin-arm64", "0.135.0-alpha.2"),
        ("1.0.0-beta.1", "1.0.0-beta.1"),
    ],
)
def test_the_version_is_that_of_the_package(tmp_path: Path, version: str, shown: str) -> None:
    program = package(tmp_path / "node_modules" / "@maker" / "agent", version)
    assert AgentProcess(7, ("agent",), str(program)).version() == shown
    script = AgentProcess(7, ("node", str(program), "-p"), "/usr/bin/node")
    assert script.version() == shown
    link = tmp_path / "link"
    link.symlink_to(program)
    assert AgentProcess(7, ("node", str(link)), "/usr/bin/node").version() == shown


def test_a_package_without_a_version_falls_back_to_the_one_around_it(tmp_path: Path) -> None:
    package(tmp_path / "node_modules" / "agent", "3.2.1")
    inner = package(tmp_path / "node_modules" / "agent" / "dist", 7)
    assert AgentProcess(7, ("agent",), str(inner)).version() == "3.2.1"


@pytest.mark.parametrize(
    ("program", "words", "version"),
    [
        ("/opt/claude/versions/2.1.3/claude", ("claude",), "2.1.3"),
        ("/opt/claude/versions/2.1.3", ("claude",), "2.1.3"),
        ("/usr/bin/node", ("node", "/opt/agent-1.2.3/main.js"), "1.2.3"),
        ("/usr/bin/agent", ("agent", "1.2.3"), None),
        ("/usr/bin/agent", ("agent", "-p", "/opt/1.2.3/x"), None),
        ("/opt/1.2.3.4/agent", ("agent",), None),
        ("", (), None),
    ],
)
def test_without_a_package_the_path_may_say_the_version(
    program: str, words: tuple[str, ...], version: str | None
) -> None:
    assert AgentProcess(7, words, program).version() == version


@pytest.mark.parametrize(
    ("program", "version"),
    [
        ("/place/of/ann/.local/share/claude/versions/2.1.327", "2.1.327"),
        # Codex on a terminal runs a copy of itself.
        (f"{RELEASES}/0.169.0-x86_64-unknown-linux-musl/codex", "0.169.0"),
        (f"{RELEASES}/0.169.0-aarch64-apple-darwin/codex", "0.169.0"),
        (f"{RELEASES}/0.170.0-alpha.2-x86_64-unknown-linux-musl/codex", "0.170.0-alpha.2"),
        ("/usr/bin/codex", None),
    ],
)
def test_the_version_is_in_the_path_of_the_program(program: str, version: str | None) -> None:
    assert AgentProcess(1, ("codex",), program).version() == version
