"""The process of an agent that called a hook: which one it is, its version, and whether a person sees its prompts."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Final

from haft.lazy import regex
from haft.values import dataclass

_VERSION: Final = regex(r"(?<![\d.])\d+\.\d+\.\d+(?:-(?!x86_64|aarch64|arm64|x64)[\w.]+)?(?![\d.])")
_PLATFORM: Final = regex(r"-(?:linux|darwin|win32)-\w+$")
"""Codex names the platform in the version of the package with its program."""
_COMMAND: Final = regex(r"(?:\S*/)?haft hook [a-z-]+")
"""The line in the files of a project."""
_MOST_PARENTS: Final = 8
_HEADLESS: Final[Mapping[str, tuple[str, ...]]] = {
    "claude-code": ("-p", "--print"),
    "codex": ("exec", "e", "app-server", "mcp-server"),
    "gemini": ("-p", "--prompt", "-y", "--yolo"),
    "opencode": ("run", "serve", "web"),
}
"""Words of command lines with which an agent asks nobody."""
_NEVER_ASKS: Final = ("bypassPermissions", "dontAsk", "auto")


@dataclass(frozen=True, slots=True)
class AgentProcess:
    """A running agent."""

    pid: int
    words: tuple[str, ...] = ()
    program: str = ""
    has_terminal: bool = False

    def version(self) -> str | None:
        """The version of the agent, from the package or the directory that its program lies in; None if unknown."""
        script = next((word for word in self.words[1:2] if os.path.isabs(word)), "")
        return _version(self.program, script)

    def build(self) -> str | None:
        """What is equal for two processes of the same version: the version, or, if it is unknown, the path, size and
        time of the program and of the script that it runs."""
        stamps = (_stamp(self.program) or self.program, *map(_stamp, self.words[1:2]))
        return self.version() or " ".join(filter(None, stamps)) or None


def agent_process(hook: int | None, start: str) -> AgentProcess | None:
    """The agent that started the hook with this process id: the nearest parent that is no part of the hook's line.
    `start` is the path of `start.py`, which that line names. None if this machine does not show it."""
    process = hook
    for _ in range(_MOST_PARENTS):
        parent = None if process is None else _parent(process)
        if parent is None or parent <= 1:
            return None
        words = _words(parent)
        if not any(start in word or _COMMAND.fullmatch(word) for word in (*words, " ".join(words[-3:]))):
            return AgentProcess(parent, tuple(words), _link(f"/proc/{parent}/exe"), _has_terminal(parent))
        process = parent
    return None


def shows_person(agent: str, process: AgentProcess | None, mode: str, variables: Mapping[str, str]) -> bool:
    """Whether a person sees the agent's prompts. In doubt nobody does: the inbox can be answered from anywhere."""
    if mode in _NEVER_ASKS:
        return False
    attended = variables.get("CLAUDE_CODE_SESSION_ATTENDED") if agent == "claude-code" else None
    if attended is not None:
        return attended == "1"
    if process is None or not process.has_terminal:
        return False
    return not set(process.words[1:]) & set(_HEADLESS.get(agent, ()))


def _stamp(path: str) -> str:
    """The path, size and time of a file; empty if this is no absolute path of one."""
    try:
        found = os.stat(path) if os.path.isabs(path) else None
    except OSError:
        found = None
    return "" if found is None else f"{path} {found.st_size} {found.st_mtime_ns}"


def _parent(process: int) -> int | None:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _words(process: int) -> Sequence[str]:
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    except OSError:
        return ()


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _has_terminal(process: int) -> bool:
    return all(_link(f"/proc/{process}/fd/{number}").startswith(("/dev/pts/", "/dev/tty")) for number in (0, 1))


@functools.lru_cache(maxsize=100)
def _version(*places: str) -> str | None:
    for place in filter(None, places):
        found = _packaged_version(os.path.realpath(place))
        if found is not None:
            return found
    for place in filter(None, places):
        if (named := _VERSION.search(place)) is not None:
            return named[0]
    return None


def _packaged_version(program: str) -> str | None:
    """The version in the nearest `package.json` above a program that lies in `node_modules`."""
    if "/node_modules/" not in program:
        return None
    place = os.path.dirname(program)
    while "/node_modules/" in place + "/":
        try:
            with open(os.path.join(place, "package.json"), encoding="utf-8") as file:
                version = json.load(file).get("version")
            if isinstance(version, str):
                return _PLATFORM.sub("", version)
        except (OSError, ValueError, AttributeError):
            pass
        place = os.path.dirname(place)
    return None
