"""The lines that agents run: the hook itself, and the rewritten form of a shell command."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Final

START: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start.py")


def hook_words(agent: str) -> list[str]:
    """The words of the program that an agent's configuration names."""
    return [sys.executable, "-I", "-S", START, agent]


def run_line(agent: str | None) -> int:
    """Become the program that an agent's configuration names: `haft hook AGENT`."""
    words = hook_words(agent or "")
    os.execv(words[0], words)  # noqa: S606  no shell is wanted


def shell_line(ticket: str, command: str, moved_to: str | None = None) -> str:
    """The line that replaces an agent's shell command. It has the whole command, so that a person can read what runs.
    `moved_to` is a file in which haft writes the directory in which the command ended: the agent's own shell then goes
    there too."""
    line = f"{shlex.join([sys.executable, '-I', '-S', START])} shell {ticket} {shlex.quote(command)}"
    if moved_to is None:
        return line
    file = shlex.quote(moved_to)
    return f'{line}; haft_status=$?; [ ! -s {file} ] || cd "$(cat {file})"; (exit $haft_status)'
