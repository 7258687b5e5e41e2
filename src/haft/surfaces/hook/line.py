"""The lines that agents run: the hook itself, and the rewritten form of a shell command."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Final

from haft.connecting import launcher_path
from haft.surfaces.hook.start_hook import SECONDS

START: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start.py")


def hook_words(agent: str) -> list[str]:
    """The words of the program that an agent's configuration names."""
    return [sys.executable, "-I", "-S", START, agent]


def run_line(agent: str | None) -> int:
    """Become the program that an agent's configuration names: `haft hook AGENT`. A name that is no agent is denied:
    `shell`, which `start.py` also takes, is none."""
    words = hook_words(agent if agent in SECONDS else "")
    os.execv(words[0], words)  # noqa: S606  no shell is wanted


def write_launcher(home: str) -> str:
    """Write the short program that rewritten lines begin with, and return its path. A line that begins with the paths
    of Python and of haft would be hard to read in an agent's prompt."""
    path = launcher_path(home)
    words = shlex.join([sys.executable, "-I", "-S", START, "shell"])
    text = f'#!/bin/sh\nHAFT_HOME={shlex.quote(home)} exec {words} "$@"\n'
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
        os.fchmod(file.fileno(), 0o700)
        file.write(text)
    os.replace(temporary, path)
    return path


def moved_file(home: str, ticket: str) -> str:
    """The file in which haft writes the directory in which the command of a ticket ended."""
    return os.path.join(home, "hook", "moved", ticket)


def shell_line(home: str, ticket: str, command: str, *, shown: str, may_move: bool) -> str:
    """The line that replaces an agent's shell command. It has the whole command, so that a person can read what runs.
    `shown` are the commands that the agent's own rules check, in a form that never runs: see `never_run`. If the
    command may change its directory, the agent's own shell then goes where the command ended."""
    line = f"{shlex.quote(launcher_path(home))} {ticket} {shlex.quote(command)}"
    if shown:
        line = f"{shown}; {line}"
    if not may_move:
        return line
    file = shlex.quote(moved_file(home, ticket))
    return f'{line}; haft_status=$?; [ ! -s {file} ] || cd "$(cat {file})"; (exit $haft_status)'
