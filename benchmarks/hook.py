"""The hook line that `haft connect` writes, against starting Python; and a hooked shell command against bash alone.

`python -m benchmarks.hook` prints this part alone.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
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
        done = subprocess.run(
            hook_words(AGENT), input=json.dumps(told).encode(), capture_output=True, env=self.env, cwd=self.workspace
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}

    def before_and_after(self) -> None:
        """Two hooks: before a file is read, and after that."""
        number = next(self._numbers)
        for event in ("PreToolUse", "PostToolUse"):
            self.hook(event, "Read", {"file_path": os.path.join(self.workspace, "note.txt")}, number)

    def shell(self) -> None:
        """One shell command: hook, rewritten line, hook."""
        number = next(self._numbers)
        arguments = {"command": "cat note.txt"}
        line = self.hook("PreToolUse", "Bash", arguments, number)["updatedInput"]["command"]
        subprocess.run(["bash", "-c", line], capture_output=True, check=True, cwd=self.workspace, env=self.env)
        self.hook("PostToolUse", "Bash", arguments, number)

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
    """`haft tools list`, in an empty state home."""
    with tempfile.TemporaryDirectory(prefix="haft-bench-") as place:
        env = {**os.environ, "HAFT_HOME": os.path.join(place, "home")}
        subprocess.run([sys.executable, "-m", "haft", "tools", "list"], capture_output=True, cwd=place, env=env)


def cold_and_listing(tool: str, arguments: dict[str, str]) -> tuple[float, float]:
    """Seconds for the hook that starts the resident, and for `haft tools list`. How a resident ends does not count."""
    with contextlib.ExitStack() as leaving:

        def first_hook() -> None:
            leaving.enter_context(bench_agent()).hook("PreToolUse", tool, arguments, 0)

        return in_turns_blocking(first_hook, list_tools, rounds=7)


def rows() -> list[Row]:
    """The rows of the table."""
    with bench_agent() as agent:
        agent.shell()
        both, python = in_turns_blocking(agent.before_and_after, start_python, rounds=40)
        hooked, plain = in_turns_blocking(agent.shell, agent.plain_shell, rounds=20)
    cold, listing = cold_and_listing("Read", {"file_path": "note.txt"})
    cold_shell, listing_again = cold_and_listing("Bash", {"command": "cat note.txt"})
    return [
        Row("the hook line, warm", both / 2, "python -S -c pass", python, 1.5),
        Row("the hook line, cold", cold, "haft tools list", listing, 2.0),
        Row("the same before a shell command", cold_shell, "haft tools list", listing_again),
        Row("a hooked shell call, with both hooks", hooked, "bash -c", plain),
    ]


if __name__ == "__main__":
    print_table(rows())
