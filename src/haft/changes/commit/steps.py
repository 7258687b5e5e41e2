"""The single steps of a commit. Each step can be taken, taken again, and reverted.

A step looks at the path before it acts, and recognizes files by inode. So after a crash all steps can be taken again
from the first: steps that were taken before the crash do nothing. The file that a step replaces is moved to `step.out`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of, differing_names, set_attributes
from haft.changes.commit.entry import Entry
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree, exchange, is_bound_by_modes, move_in, rename, set_mode, set_owner
from haft.values import dataclass

Verb = Literal["swap", "mode", "mkdir", "rmdir"]

INSIDE: Final = "inside:"
"""The prefix of a place that is relative to the workspace; places without it are relative to the area."""


class Interference(Exception):
    """Another program changed the path that the step wants to change."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(path)


@dataclass(frozen=True, slots=True)
class Step:
    """Changes one path, with everything below it, from `before` to `after`."""

    number: int
    verb: Verb
    path: str
    before: Entry | None
    after: Entry | None
    put: str | None = None
    """The place where the new file or directory waits."""
    out: str | None = None
    """The place that the old file or directory is moved to."""

    def to_json(self) -> list[Any]:
        words = [self.path, self.put, self.out]
        return [self.number, self.verb, *(None if word is None else as_latin(word) for word in words)]

    @classmethod
    def from_json(cls, words: list[Any], entries: dict[str, tuple[Entry | None, Entry | None]]) -> Step:
        number, verb, *places = words
        path, put, out = (None if word is None else from_latin(word) for word in places)
        assert path is not None
        before, after = entries[path]
        return cls(number, verb, path, before, after, put, out)


def as_latin(text: str) -> str:
    """A path as text that JSON can hold: each byte of the path becomes one character."""
    return os.fsencode(text).decode("latin-1")


def from_latin(text: str) -> str:
    """The path of a text that `as_latin` made."""
    return os.fsdecode(text.encode("latin-1"))


class StepRunner:
    """Takes and reverts steps in a workspace and its area."""

    def __init__(
        self,
        workspace: Tree,
        area: Tree,
        before: Mapping[str, Entry | None] | None = None,
        *,
        follows_others: bool = False,
    ) -> None:
        """`before` maps each path that the commit changes to its state when haft read it, also paths inside directories
        that are removed as a whole. It is None during recovery, when steps may have been taken before. With
        `follows_others`, haft may have moved the files into the workspace since it read them: so their ctimes and the
        inodes of directories do not count."""
        self.workspace = workspace
        self.area = area
        self._before = before
        self._follows_others = follows_others

    def apply(self, step: Step) -> None:
        """Take a step; do nothing if it was already taken. Raises `Interference`, with the step not taken, if another
        program changed the path."""
        match step.verb:
            case "swap":
                self._apply_swap(step)
            case "mode":
                self._set_directory(step.path, step.before, step.after)
            case "mkdir":
                self._make_directory(step.path, step.after)
            case "rmdir":
                self._remove_directory(step.path)

    def revert(self, step: Step) -> None:
        """Revert a step; do nothing if it was not taken."""
        match step.verb:
            case "swap":
                self._revert_swap(step)
            case "mode":
                self._set_directory(step.path, step.after, step.before)
            case "mkdir":
                self._remove_directory(step.path)
            case "rmdir":
                self._make_directory(step.path, step.before)

    def is_applied(self, step: Step) -> bool:
        """Whether a step was taken or begun."""
        here = self.workspace.status(step.path)
        match step.verb:
            case "swap":
                is_out = step.out is not None and self.status(step.out) is not None
                return is_out or (step.put is not None and _has_inode(here, step.after))
            case "mkdir":
                return here is not None and stat.S_ISDIR(here.st_mode)
            case "rmdir":
                return here is None
            case "mode":
                return here is not None and _is_directory_set(self.workspace, here, step)

    # Files, and directories with their content.

    def _apply_swap(self, step: Step) -> None:
        here = self.workspace.status(step.path)
        waiting = None if step.put is None else self.status(step.put)
        if step.put is not None and step.after is not None and _has_inode(here, step.after):
            self._finish_exchange(step, waiting)
            self._fix_directory_mode(step.path, here, step.after)
            return
        if step.out is not None and self.status(step.out) is None:
            if here is None or step.before is None or not self._is_as_left(step.path, here, step.before):
                raise Interference(step.path)
            if step.put is not None and waiting is not None and self._exchange(step, here, waiting):
                return
            self._take_out(step, here)
        elif here is not None:
            if step.out is None or step.put is not None:
                raise Interference(step.path)
            return
        if step.put is not None:
            if waiting is None:
                raise Interference(step.path)
            self._put_in(step, waiting)

    def _is_as_left(self, path: str, here: os.stat_result, before: Entry) -> bool:
        """Whether the file is unchanged since haft read `before`. During recovery, a step may have been taken and
        reverted, which changes the ctime: then the content is compared."""
        if self._is_same(here, before):
            return True
        is_again = self._before is None
        return (
            is_again and _is_unchanged(here, before) and before.is_like(read_entry(self.workspace, path, forced=True))
        )

    def _exchange(self, step: Step, here: os.stat_result, waiting: os.stat_result) -> bool:
        """Exchange the old and the new file atomically, so that the path exists at any moment. Returns False, with
        nothing done, for directories and on systems that cannot do it."""
        assert step.put is not None
        assert step.out is not None
        if stat.S_ISDIR(here.st_mode) or stat.S_ISDIR(waiting.st_mode):
            return False
        tree, place = self.place(step.put)
        if not exchange(tree, place, self.workspace, step.path):
            return False
        taken = tree.status(place)
        if taken is None or step.before is None or not _is_unchanged(taken, step.before):
            exchange(tree, place, self.workspace, step.path)
            raise Interference(step.path)
        out, where = self.place(step.out)
        rename(tree, place, out, where)
        return True

    def _finish_exchange(self, step: Step, waiting: os.stat_result | None) -> None:
        if waiting is not None and step.out is not None and step.put is not None and _has_inode(waiting, step.before):
            tree, place = self.place(step.put)
            out, where = self.place(step.out)
            rename(tree, place, out, where)

    def _take_out(self, step: Step, here: os.stat_result) -> None:
        assert step.out is not None
        out, where = self.place(step.out)
        with _movable(self.workspace, step.path, here):
            rename(self.workspace, step.path, out, where)
        if stat.S_ISDIR(here.st_mode):
            self.workspace.forget()
            self._restore_mode(out, where, here)
        taken = out.status(where)
        if taken is None or taken.st_ino != here.st_ino or not self._is_as_seen(step.path, taken, out, where):
            with contextlib.suppress(OSError):
                move_in(out, where, self.workspace, step.path)
            raise Interference(step.path)

    def _is_as_seen(self, path: str, taken: os.stat_result, out: Tree, where: str) -> bool:
        """Whether a directory that was moved to `where` holds only files that are as haft read them before the commit.
        Always true for files, and during recovery."""
        if self._before is None or not stat.S_ISDIR(taken.st_mode):
            return True
        for inner, status in out.walk(where):
            seen = self._before.get(path + inner[len(where) :])
            if seen is None or not self._is_same(status, seen):
                return False
        return True

    def _is_same(self, here: os.stat_result, entry: Entry) -> bool:
        if not self._follows_others:
            return _is_untouched(here, entry)
        return stat.S_ISDIR(here.st_mode) if entry.is_directory else _is_unchanged(here, entry)

    def _put_in(self, step: Step, waiting: os.stat_result) -> None:
        assert step.put is not None
        tree, place = self.place(step.put)
        try:
            with _movable(tree, place, waiting):
                move_in(tree, place, self.workspace, step.path)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENOTEMPTY):
                raise Interference(step.path) from error
            raise
        if stat.S_ISDIR(waiting.st_mode):
            tree.forget()
            self._fix_directory_mode(step.path, self.workspace.status(step.path), step.after)

    def _revert_swap(self, step: Step) -> None:
        here = self.workspace.status(step.path)
        waiting = None if step.put is None else self.status(step.put)
        if step.put is not None and here is not None and _has_inode(here, step.after):
            tree, place = self.place(step.put)
            if waiting is not None:  # The new file is in place, and the old one is where the new one was.
                exchange(tree, place, self.workspace, step.path)
                return
            self.workspace.restore(step.path)
            with _movable(self.workspace, step.path, here):
                rename(self.workspace, step.path, tree, place)
            self.workspace.forget()
            here = None
        if step.out is not None and here is None and (old := self.status(step.out)) is not None:
            out, where = self.place(step.out)
            out.restore(where)  # Modes of directories below `where` were widened for reading.
            with _movable(out, where, old):
                move_in(out, where, self.workspace, step.path)
            out.forget()
            self._fix_directory_mode(step.path, self.workspace.status(step.path), step.before)

    def _fix_directory_mode(self, path: str, here: os.stat_result | None, wanted: Entry | None) -> None:
        """Restore the mode of a directory after a move: to be moved, the directory had to be writable."""
        if here is None or wanted is None or not wanted.is_directory:
            return
        if stat.S_IMODE(here.st_mode) != wanted.mode:
            set_mode(self.workspace, path, wanted.mode)

    @staticmethod
    def _restore_mode(tree: Tree, path: str, meant: os.stat_result) -> None:
        found = tree.status(path)
        if found is not None and found.st_mode != meant.st_mode:
            set_mode(tree, path, stat.S_IMODE(meant.st_mode))

    # Directories without their content.

    def _make_directory(self, path: str, wanted: Entry | None) -> None:
        assert wanted is not None
        here = self.workspace.status(path)
        if here is None:
            place, name = self.workspace.at(path)
            os.mkdir(name, 0o700, dir_fd=place)
        elif not stat.S_ISDIR(here.st_mode):
            raise Interference(path)
        set_owner(self.workspace, path, wanted.uid, wanted.gid)

    def _remove_directory(self, path: str) -> None:
        """Remove a directory, unless others put files into it."""
        place, name = self.workspace.at(path)
        try:
            os.rmdir(name, dir_fd=place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
                raise
        self.workspace.forget()

    def _set_directory(self, path: str, have: Entry | None, want: Entry | None) -> None:
        if want is None:
            return  # The step `mkdir` made the directory, and its revert removes it.
        here = self.workspace.status(path)
        if here is None or not stat.S_ISDIR(here.st_mode):
            raise Interference(path)
        self.workspace.restore(path)  # After the mode is set, paths below may be unreachable.
        if have is not None and (have.uid, have.gid) != (want.uid, want.gid):
            set_owner(self.workspace, path, want.uid, want.gid)
        if have is None or differing_names(
            have.attributes, want.attributes
        ):  # A new directory may have inherited some.
            set_mode(self.workspace, path, want.mode | 0o700)
            set_attributes(self.workspace.proc_path(path), want.attributes)
        set_mode(self.workspace, path, want.mode)
        self.workspace.widened.pop(path, None)

    def place(self, where: str) -> tuple[Tree, str]:
        if where.startswith(INSIDE):
            return self.workspace, where[len(INSIDE) :]
        return self.area, where

    def status(self, where: str) -> os.stat_result | None:
        tree, place = self.place(where)
        return tree.status(place)


def _has_inode(here: os.stat_result | None, entry: Entry | None) -> bool:
    return here is not None and entry is not None and here.st_ino == entry.inode


def _is_directory_set(tree: Tree, here: os.stat_result, step: Step) -> bool:
    """Whether a directory has the step's new mode, owner and attributes, and these differ from the old ones."""
    before, after = step.before, step.after
    if before is None or after is None:
        return False
    have, want = ((each.mode, each.uid, each.gid) for each in (before, after))
    if (stat.S_IMODE(here.st_mode), here.st_uid, here.st_gid) != want:
        return False
    with contextlib.suppress(UnreadableAttributes):
        return want != have or (before.attributes != after.attributes == attributes_of(tree.proc_path(step.path)))
    return False


def _is_untouched(here: os.stat_result, entry: Entry) -> bool:
    """Whether a file is unchanged and was not moved since haft read `entry`: a change or a move sets the ctime."""
    return _is_unchanged(here, entry) and (not entry.ctime_ns or here.st_ctime_ns == entry.ctime_ns)


def _is_unchanged(here: os.stat_result, entry: Entry) -> bool:
    """Whether a file, which may have been moved, has the inode, size and mtime of `entry`."""
    if here.st_ino != entry.inode:
        return False
    return entry.kind != "file" or (here.st_size, here.st_mtime_ns) == (entry.size, entry.mtime_ns)


@contextlib.contextmanager
def _movable(tree: Tree, path: str, status: os.stat_result) -> Iterator[None]:
    """Within this context, a directory is writable for its owner, which is necessary to move it. The caller restores
    the mode after the move."""
    closed = stat.S_ISDIR(status.st_mode) and status.st_mode & 0o200 == 0 and is_bound_by_modes()
    if closed:
        tree.note(path, status)
        set_mode(tree, path, stat.S_IMODE(status.st_mode) | 0o200)
    try:
        yield
    except OSError as error:
        if closed:
            tree.mark_unrestored(error)  # If the next line fails, recovery restores the mode from the note.
            set_mode(tree, path, stat.S_IMODE(status.st_mode))
        raise
