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
from haft.sandbox.protected import protected_names
from haft.sandbox.toolchains import is_below

_READ_ONLY: Final = re.compile(r"read-only file system", re.IGNORECASE)
_NO_NETWORK: Final = re.compile(
    r"could not resolve (?:host|hostname)|temporary failure in name resolution|name or service not known"
    r"|unable to resolve host|failed to connect to (?!127\.|localhost\b|\[?::1)\S+ port \d"
    r"|network is unreachable|getaddrinfo[ (:]+(?:EAI_|failed)"
    r"|\bENOTFOUND\b|\bEAI_AGAIN\b|\bENETUNREACH\b|failed to lookup address"
    r"|nodename nor servname|dns error|temporary failure resolving",
    re.IGNORECASE,
)
_MISSING: Final = re.compile(r"no such file|\bENOENT\b|cannot find|not found", re.IGNORECASE)
_TOO_LARGE: Final = re.compile(r"file too large|file size limit exceeded|\bEFBIG\b", re.IGNORECASE)
_TOO_MANY_OPEN: Final = re.compile(r"too many open files|\bEMFILE\b", re.IGNORECASE)
_PATH: Final = re.compile(r"(?<![\w.])(?:~|/)[^\s'\"`:;,()\[\]{}<>|&‘’“”]+")
_BUSY: Final = re.compile(r"device or resource busy|\bEBUSY\b|invalid cross-device link", re.IGNORECASE)
_REFUSED: Final = re.compile(r"connection refused|\bECONNREFUSED\b|couldn't connect to server", re.IGNORECASE)
_LOCAL_PORT: Final = re.compile(
    r"(?:\blocalhost|\b127(?:\.\d{1,3}){3}|\[?::1\]?)['\"]?(?::|,? ?port[ =:]{1,2})(\d{1,5})\b", re.IGNORECASE
)

MOST_LINES: Final = 400
_LISTENING: Final = "0A"


def judge(output: str, walls: Walls, limits: Limits, workspace: str, home: str) -> HaftError | None:
    """What stopped a call that failed; None where nothing of ours did."""
    if not walls.layers:
        return None
    for line in reversed(output.splitlines()[-MOST_LINES:]):
        found = _limit(line, limits) or _wall(line, walls, workspace, home)
        if found is None and not walls.network and _REFUSED.search(line) and _host_listens(line, output):
            found = _no_network(line)
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
        return _no_network(line)
    if _BUSY.search(line) and (name := _protected_in(line, workspace)) and walls.profile == "workspace":
        return _protected(name, said, workspace)
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
    if walls.profile == "workspace" and (name := _protected_in(line, workspace)):
        return _protected(name, said, workspace)
    places = [path for path in _paths(line, "") if not is_below(path, walls.writable)] or _paths(line, "")
    if not places:
        if walls.profile == "read-only":
            return Walled("it may only read", said, "to open it: ask for a call that may write the workspace")
        return Walled("what it wrote to is read-only", said, "to open it: `--write PATH`, or grant = {write = [PATH]}")
    path = places[-1]
    if is_below(path, (workspace,)):
        if walls.profile == "read-only":
            return Walled("it may only read", said, "to open it: ask for a call that may write the workspace")
        return _protected(os.path.relpath(path, workspace), said, workspace)
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    wall = f"`{path}` lies outside of what it may write"
    return Walled(wall, said, f'to open it: `--write {directory}`, or grant = {{write = ["{directory}"]}}')


def _no_network(line: str) -> HaftError:
    return Walled("it has no network", _shortened(line), "to open it: `--network`, or grant = {network = true}")


def _host_listens(line: str, output: str) -> bool:
    """Whether the port of this machine that refused the call, named in this line or else elsewhere, is open outside of
    its walls. Where it is not, the call looked for a server of its own."""
    ports = {int(port) for port in _LOCAL_PORT.findall(line) or _LOCAL_PORT.findall(output)}
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/self/net/{name}") as file:
                for entry in file.readlines()[1:]:
                    words = entry.split()
                    if words[3] == _LISTENING:
                        found.add(int(words[1].rsplit(":", 1)[1], 16))
        except (OSError, ValueError, IndexError):
            continue
    return bool(ports & found)


def _protected(inside: str, said: str, workspace: str) -> HaftError:
    wall = f"`{inside}` is protected, since it would run or be obeyed on the host"
    path = os.path.join(workspace, inside)
    return Walled(wall, said, f'to open it: `--write {path}`, or grant = {{write = ["{inside}"]}}')


def _protected_in(line: str, workspace: str) -> str | None:
    """What is protected and named in a line. What is held in place is busy to who would replace it."""
    inside = workspace.rstrip("/") + "/"
    for word in re.split(r"[\s'\"`:;,()‘’“”]+", line):
        if word.startswith(("/", "~")):
            if not word.startswith(inside):
                continue
            path = word.removeprefix(inside)
        else:
            path = word
        for name in protected_names(workspace):
            if f"/{path}/".startswith(f"/{name}/") or (path is word and f"/{name}/" in f"/{path}/"):
                return name
    return None


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
