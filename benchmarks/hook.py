"""The hook line that `haft connect` writes, against starting Python; and a hooked shell command against bash alone.

Each line runs through `sh -c`, as agents start it. The agent waits for the hook before a call, so this hook counts
alone: the one after the call does much less. Warm: the resident runs. Cold: the hook starts the resident, in a new
state home, and the first answer is measured. Before a shell command this takes longer than before a file is read: the
resident also loads the parser of command lines, and starts the sandbox's helper, because what the sandbox can do is
part of the decision. The goal was twice `haft tools list` for both. Before a shell command it is missed: what remains
is importing, a third of it `asyncio` and other modules of Python, so 2.5 times is promised there. This is paid by the
first call after a quarter of an hour without agents.

`python -m benchmarks.hook` prints this part alone.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Row, in_turns_blocking, print_table
from haft.service import hook_socket_path
from haft.surfaces.hook.line import hook_words

AGENT = "claude-code"
CALLS = {"Read": {"file_path": "note.txt"}, "Bash": {"command": "cat note.txt"}}
"""The arguments of a call of each tool."""


class BenchedAgent:
    """An agent that calls its hook, in a workspace and a state home of its own."""

    def __init__(self, place: str) -> None:
        self._home = os.path.join(place, "home")
        self.workspace = os.path.join(place, "work")
        os.mkdir(self.workspace)
        for name in ("haft.toml", "note.txt"):
            with open(os.path.join(self.workspace, name), "w"):
                pass
        self.env = {**os.environ, "HAFT_HOME": self._home, "CLAUDE_CODE_SESSION_ATTENDED": "1"}
        self._numbers = itertools.count()
        self._last: tuple[int, str, dict[str, Any]] = 0, "", {}

    def hook(self, event: str, tool: str, arguments: dict[str, Any], number: int) -> dict[str, Any]:
        """Call the hook, and return its answer."""
        told = {
            "session_id": "bench",
            "cwd": self.workspace,
            "permission_mode": "default",
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": arguments,
            "tool_use_id": f"call-{number}",
        }
        line = ["/bin/sh", "-c", shlex.join(hook_words(AGENT))]
        given = json.dumps(told).encode()
        done = subprocess.run(line, input=given, capture_output=True, env=self.env, cwd=self.workspace)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}

    def before(self, tool: str) -> None:
        """The hook before a call."""
        number = next(self._numbers)
        self._last = number, tool, self.hook("PreToolUse", tool, CALLS[tool], number)

    def after(self) -> None:
        """The agent makes the call of the last hook, and tells haft."""
        number, tool, answer = self._last
        if tool == "Bash":
            line = answer["updatedInput"]["command"]
            subprocess.run(["bash", "-c", line], capture_output=True, check=True, cwd=self.workspace, env=self.env)
        self.hook("PostToolUse", tool, CALLS[tool], number)

    def shell(self) -> None:
        """One shell command: hook, rewritten line, hook."""
        self.before("Bash")
        self.after()

    def plain_shell(self) -> None:
        """The same without haft."""
        subprocess.run(["bash", "-c", "cat note.txt"], capture_output=True, check=True, cwd=self.workspace)

    def end(self) -> None:
        """End the resident."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked, contextlib.suppress(OSError):
            asked.connect(hook_socket_path(self._home))
            told = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            process = struct.unpack("3i", told)[0]
            watched = os.pidfd_open(process)
            os.kill(process, signal.SIGTERM)
            select.select([watched], [], [], 30)
            os.close(watched)


@contextlib.contextmanager
def bench_agent() -> Iterator[BenchedAgent]:
    """An agent of its own, and nothing left of it afterwards."""
    with tempfile.TemporaryDirectory(prefix="haft-bench-") as place:
        agent = BenchedAgent(place)
        try:
            yield agent
        finally:
            agent.end()


def start_python() -> None:
    """What every program in Python costs."""
    subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)


def list_tools() -> None:
    """`haft tools list`, in a new state home and a workspace like that of the agent."""
    with tempfile.TemporaryDirectory(prefix="haft-bench-") as place:
        agent = BenchedAgent(place)
        words = [sys.executable, "-m", "haft", "tools", "list"]
        subprocess.run(words, capture_output=True, check=True, cwd=agent.workspace, env=agent.env)


def warm_and_python(agent: BenchedAgent, tool: str) -> tuple[float, float]:
    """Seconds for the hook before a call of a tool, and for starting Python."""
    return in_turns_blocking(lambda: agent.before(tool), start_python, rounds=40, between=agent.after)


def cold_and_listing(tool: str) -> tuple[float, float]:
    """Seconds for the hook that starts the resident, and for `haft tools list`. How a resident ends does not count."""
    with contextlib.ExitStack() as leaving:

        def first_hook() -> None:
            leaving.enter_context(bench_agent()).before(tool)

        return in_turns_blocking(first_hook, list_tools, rounds=9, between=leaving.close)


def rows() -> list[Row]:
    """The rows of the table."""
    with bench_agent() as agent:
        agent.shell()
        warm_read = warm_and_python(agent, "Read")
        warm_shell = warm_and_python(agent, "Bash")
        hooked = in_turns_blocking(agent.shell, agent.plain_shell, rounds=20)
    cold_read, cold_shell = cold_and_listing("Read"), cold_and_listing("Bash")
    return [
        Row("the hook before a read, warm", warm_read[0], "python -S -c pass", warm_read[1], 1.5),
        Row("the same before a shell command", warm_shell[0], "python -S -c pass", warm_shell[1], 1.5),
        Row("the hook before a read, cold", cold_read[0], "haft tools list", cold_read[1], 2.0),
        Row("the same before a shell command", cold_shell[0], "haft tools list", cold_shell[1], 2.5),
        Row("a hooked shell call, with both hooks", hooked[0], "bash -c", hooked[1]),
    ]


if __name__ == "__main__":
    print_table(rows())
