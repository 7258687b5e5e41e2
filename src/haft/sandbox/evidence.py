"""Signs that a failed call ran into a wall or a limit, read from what it said.

The kernel refuses without telling anyone but the program, so its words are the only witness. They are read only after a
failure, from what is shown of the output, and only sentences that a wall is known to cause count. What a program keeps
to itself, or says in another language than English, stays a plain failure.
"""

from __future__ import annotations

import os
import re
from typing import Final

from haft.contracts import HaftError, LimitExceeded, Limits, Walled, Walls
from haft.sandbox.toolchains import is_below

_READ_ONLY: Final = re.compile(r"read-only file system|\bEROFS\b", re.IGNORECASE)
_NO_NETWORK: Final = re.compile(
    r"could not resolve (?:host|hostname)|temporary failure in name resolution|name or service not known"
    r"|network is unreachable|getaddrinfo|\bENOTFOUND\b|\bEAI_AGAIN\b|\bENETUNREACH\b|failed to lookup address"
    r"|nodename nor servname|dns error|temporary failure resolving",
    re.IGNORECASE,
)
_MISSING: Final = re.compile(r"no such file or directory|\bENOENT\b|cannot find|not found", re.IGNORECASE)
_TOO_LARGE: Final = re.compile(r"file too large|file size limit exceeded|\bEFBIG\b", re.IGNORECASE)
_TOO_MANY_OPEN: Final = re.compile(r"too many open files|\bEMFILE\b", re.IGNORECASE)
_PATH: Final = re.compile(r"(?<![\w.])(?:~|/)[^\s'\"`:;,()\[\]{}<>|&‘’“”]+")
_BUSY: Final = re.compile(r"device or resource busy|\bEBUSY\b|invalid cross-device link", re.IGNORECASE)

MOST_LINES: Final = 400


def judge(output: str, walls: Walls, limits: Limits, workspace: str, home: str) -> HaftError | None:
    """What stopped a call that failed; None where nothing of ours did."""
    if not walls.layers:
        return None
    for line in reversed(output.splitlines()[-MOST_LINES:]):
        found = _limit(line, limits) or _wall(line, walls, workspace, home)
        if found is not None:
            return found
    return None


def _limit(line: str, limits: Limits) -> HaftError | None:
    if _TOO_LARGE.search(line) and limits.max_written_file_bytes:
        return LimitExceeded(
            "max_written_file_bytes", limits.max_written_file_bytes, "a file that it wrote grew too large"
        )
    if _TOO_MANY_OPEN.search(line):
        return LimitExceeded("max_open_files", limits.max_open_files, "one of its processes had too many files open")
    return None


def _wall(line: str, walls: Walls, workspace: str, home: str) -> HaftError | None:
    said = _shortened(line)
    if _READ_ONLY.search(line):
        return _not_writable(line, said, walls, workspace)
    if not walls.network and _NO_NETWORK.search(line):
        return Walled("it has no network", said, "to open it: `--network`, or grant = {network = true}")
    if _MISSING.search(line):
        for path in _paths(line, home):
            if (
                is_below(path, walls.hidden)
                and not is_below(path, (workspace, *walls.readable))
                and os.path.lexists(path)
            ):
                return Walled(f"`{path}` is hidden", said, f'to open it: grant = {{read = ["{path}"]}}')
    return None


def _not_writable(line: str, said: str, walls: Walls, workspace: str) -> HaftError:
    places = [path for path in _paths(line, "") if not is_below(path, walls.writable)] or _paths(line, "")
    if not places:
        if walls.profile == "read-only":
            return Walled("it may only read", said, "to open it: ask for a call that may write the workspace")
        return Walled("what it wrote to is read-only", said, "to open it: `--write PATH`, or grant = {write = [PATH]}")
    path = places[-1]
    if is_below(path, (workspace,)):
        if walls.profile == "read-only":
            return Walled("it may only read", said, "to open it: ask for a call that may write the workspace")
        inside = os.path.relpath(path, workspace)
        wall = f"`{inside}` is protected, since it would run or be obeyed on the host"
        return Walled(wall, said, f'to open it: `--write {path}`, or grant = {{write = ["{inside}"]}}')
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    wall = f"`{path}` lies outside of what it may write"
    return Walled(wall, said, f'to open it: `--write {directory}`, or grant = {{write = ["{directory}"]}}')


def _paths(line: str, home: str) -> list[str]:
    found = []
    for word in _PATH.findall(line):
        path = home + word[1:] if word.startswith("~/") and home else word
        if path.startswith("/"):
            found.append(os.path.normpath(path.rstrip(".")))
    return found


def _shortened(line: str) -> str:
    words = line.strip()
    return words if len(words) <= 200 else words[:200] + "…"
