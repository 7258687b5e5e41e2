"""Makes the steps that apply a change set.

If possible, one step moves a whole directory: so a commit of a new directory with a thousand files is one rename, and
no other program sees it half done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol

from haft.changes.commit.entry import Entry
from haft.changes.commit.manifest import PathChange
from haft.changes.commit.steps import Step


class Sources(Protocol):
    """Tells where the new files of a change set wait, and which directories may move as a whole."""

    made: dict[str, int]
    """By path: the inode of a file that was made anew in a directory that moves as a whole."""

    def place_of(self, each: PathChange) -> str | None:
        """The place of the new file, or of the new directory with all its content; None if the directory must be made
        in the workspace and filled by further steps."""
        ...

    def can_move_whole(self, path: str) -> bool:
        """Whether the change set deletes everything in a workspace directory, so that one rename can remove the
        directory."""
        ...

    def restore_modes(self) -> None:
        """Restore the modes that were widened for reading. Call this before the first step: later it might overwrite a
        mode that a step has set."""
        ...


def steps_for(entries: Sequence[PathChange], sources: Sources, out: Callable[[str, int], str]) -> list[Step]:
    """The steps, in the order in which they must be taken. `out` takes a path and the number of a step, and returns the
    place that the old file of the path is moved to."""
    plan = _Plan(sources, out)
    for each in entries:
        plan.add(each)
    return plan.steps()


class _Plan:
    def __init__(self, sources: Sources, out: Callable[[str, int], str]) -> None:
        self._sources = sources
        self._out = out
        self._moves: list[Step] = []
        self._ends: list[Step] = []
        self._gone: dict[str, bool] = {"": False}
        """By directory: whether one step removes it with all its content, or removes a parent of it so."""
        self._come: dict[str, bool] = {"": False}
        """By directory: whether one step brings it with all its content, or brings a parent of it so."""
        self._count = 0

    def add(self, each: PathChange) -> None:
        above = os.path.dirname(each.path)
        before = None if self._is_in(self._gone, above) else each.before
        after = None if self._is_in(self._come, above) else each.after
        if before is None and after is None:
            return
        if before is not None and after is not None and before.is_directory and after.is_directory:
            self._end("mode", each.path, before, after)
            return
        takes = before is not None
        if before is not None and before.is_directory:
            if after is not None or self._sources.can_move_whole(each.path):
                self._gone[each.path] = True
            else:
                takes = False
                self._end("rmdir", each.path, before, None)
        put = None
        if after is not None:
            put = self._sources.place_of(PathChange(each.path, before, after))
            if after.is_directory and put is not None:
                self._come[each.path] = True
        if takes or put is not None:
            number = self._next()
            out = self._out(each.path, number) if takes else None
            self._moves.append(Step(number, "swap", each.path, before if takes else None, after, put, out))
        if after is not None and after.is_directory and put is None:
            self._move("mkdir", each.path, None, after)
            self._end("mode", each.path, None, after)

    def steps(self) -> list[Step]:
        """All steps. Steps that set the mode of a directory, or remove a directory, come last, innermost directory
        first, because other steps must enter these directories first."""
        return [*self._moves, *reversed(self._ends)]

    def _move(self, verb: str, path: str, before: Entry | None, after: Entry | None) -> None:
        self._moves.append(Step(self._next(), verb, path, before, after))  # type: ignore[arg-type]

    def _end(self, verb: str, path: str, before: Entry | None, after: Entry | None) -> None:
        self._ends.append(Step(self._next(), verb, path, before, after))  # type: ignore[arg-type]

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    @staticmethod
    def _is_in(marked: dict[str, bool], path: str) -> bool:
        """Whether a directory or one of its parents is marked."""
        unknown = []
        while (known := marked.get(path)) is None:
            unknown.append(path)
            path = os.path.dirname(path)
        for each in unknown:
            marked[each] = known
        return known
