"""Snapshots of a workspace: its content before a call, and the differences after the call, on any machine.

To take a snapshot, `scan` looks at the status of every path. `read_files` reads only the files that the index from
earlier calls does not know, and their content is stored as blobs. After the call every path is scanned again, and files
whose stamp (size, times and so on) differs are read: a file has changed if its content has changed.

A snapshot locks nothing: to know that only the call made the changes, the caller must hold the workspace lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import heapq
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from haft.changes.commit.entry import UNREADABLE
from haft.changes.commit.manifest import PathChange
from haft.changes.commit.widened_modes import WidenedModes
from haft.changes.snapshots.comparison import Comparison, Snapshot, changed_paths
from haft.changes.snapshots.descent import Note, Swapped
from haft.changes.snapshots.index import Index
from haft.changes.snapshots.read_files import Keep, Read, read_files
from haft.changes.snapshots.scan import Scan, Stamp, scan
from haft.changes.store.blob_encoding import digest_of_descriptor
from haft.changes.store.blobs import Blobs
from haft.contracts import ToolFailed

__all__ = ["Comparison", "OverBudget", "Snapshot", "Snapshots"]

_MANY_FILES: Final = 5_000
_MANY_BYTES: Final = 50_000_000
"""If a snapshot must store more files or bytes than this, a person is told why it takes a while."""
_FEW_FILES: Final = 100
_FEW_BYTES: Final = 4_000_000
"""If no more files and bytes than this were read, the index is not written: reading these files again is cheaper."""
_TRIES: Final = 3
_SIZE: Final = 6

Result = TypeVar("Result")


class OverBudget(Exception):
    """The snapshot would store more than the store may hold. Nothing was stored."""

    def __init__(self, needed: int, budget: int, largest: list[tuple[str, int]]) -> None:
        super().__init__(f"the workspace needs {needed:,} bytes in the store, and the budget is {budget:,}")
        self.needed = needed
        self.budget = budget
        self.largest = largest


class Snapshots:
    """Takes snapshots of one workspace. The index of the workspace is in `directory`."""

    def __init__(self, directory: str, blobs: Blobs, notes: WidenedModes | None = None) -> None:
        """`notes` records temporarily widened modes, for recovery after a crash."""
        self._notes = notes
        self._place = os.path.join(directory, "index")
        self._blobs = blobs

    def take(
        self,
        root: str,
        budget: int,
        stopped: Callable[[], bool],
        report: Callable[[str], None],
        skip: Collection[tuple[int, int]] = (),
    ) -> Snapshot:
        """Take a snapshot of `root` and store the content of every file. Raises `OverBudget` if more than `budget`
        bytes would have to be stored. Directories whose device and inode are in `skip` are left out."""
        with self._recording_modes():
            return _retry_if_swapped(lambda: self._take(root, budget, stopped, report, frozenset(skip)))

    def compare(self, before: Snapshot, root: str, budget: int, stopped: Callable[[], bool]) -> list[PathChange]:
        """The changes since a snapshot. `examine` also tells which paths could not be read or kept."""
        return self.examine(before, root, budget, stopped).changes

    def examine(self, before: Snapshot, root: str, budget: int, stopped: Callable[[], bool]) -> Comparison:
        """Compare the workspace with a snapshot. Up to `budget` bytes of the new content of changed files are stored.
        Beyond that, only digests are computed, because the changes of the call must be known in any case."""
        with self._recording_modes():
            return _retry_if_swapped(lambda: self._compare(before, root, budget, stopped))

    @contextlib.contextmanager
    def _recording_modes(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._notes is not None:
                self._notes.mark_unrestored(error)
            raise
        finally:  # Every mode was restored, unless the disk failed.
            if self._notes is not None:
                self._notes.clear()

    def _note(self, root: str) -> Note | None:
        return None if self._notes is None else functools.partial(self._notes.note, root)

    def _take(
        self,
        root: str,
        budget: int,
        stopped: Callable[[], bool],
        report: Callable[[str], None],
        skip: frozenset[tuple[int, int]],
    ) -> Snapshot:
        index = Index.read(self._place)
        found = scan(root, skip, stopped, self._note(root))
        removals = self._blobs.removals()
        if index.removals != removals:
            self._drop_removed(index)
        after = Snapshot(
            found.stamps, index.contents, frozenset(), list(found.closed), index.attributes, skip, removals
        )
        fresh = _update_contents(after, index.stamps, found, _differing(index.stamps, found.stamps))
        needed = _size_of(fresh, found.stamps)
        if needed > budget:
            largest = heapq.nlargest(5, ((path, found.stamps[path][_SIZE]) for path in fresh), key=lambda pair: pair[1])
            raise OverBudget(needed, budget, largest)
        if len(fresh) > _MANY_FILES or needed > _MANY_BYTES:
            report(f"storing {len(fresh):,} files of the workspace, {needed / 1e6:,.0f} MB")
        racy = set(found.racy)
        for path, read in read_files(root, fresh, found.stamps, self._keeping(stopped), stopped, self._note(root)):
            _store_read(after, racy, path, read)
        after = dataclasses.replace(after, racy=frozenset(racy))
        if _is_much(fresh, needed) or (index.stamps and index.removals != removals):
            self._write_index(after)
        return after

    def _compare(self, before: Snapshot, root: str, budget: int, stopped: Callable[[], bool]) -> Comparison:
        found = scan(root, before.skip, stopped, self._note(root))
        differing = _differing(before.stamps, found.stamps)
        differing += _differing_attributes(before, found)
        gone = before.stamps.keys() - found.stamps.keys()
        differing += [path for path in before.racy if before.stamps[path] == found.stamps.get(path)]
        after = Snapshot(
            found.stamps,
            before.contents.copy(),
            frozenset(),
            list(found.closed),
            before.attributes.copy(),
            before.skip,
            before.removals,
        )
        known = {path: stamp for path, stamp in before.stamps.items() if path not in before.racy} if gone else {}
        fresh = _update_contents(after, known, found, differing)
        needed = _size_of(fresh, found.stamps)
        racy, unkept = set(found.racy), set[str]()
        keep = self._keeping_within(budget, before, unkept, stopped)
        for path, read in read_files(root, fresh, found.stamps, keep, stopped, self._note(root)):
            _store_read(after, racy, path, read)
        after = dataclasses.replace(after, racy=frozenset(racy))
        if _is_much(fresh, needed):
            self._write_index(dataclasses.replace(after, racy=after.racy | unkept))
        path_changes, linked = changed_paths(before, after, gone.union(differing))
        return Comparison(path_changes, after.unreadable, sorted(unkept), after, linked)

    def _drop_removed(self, index: Index) -> None:
        """Remove from the index the files whose content was removed from the blob store."""
        there = set(self._blobs.digests())
        for path in [path for path, digest in index.contents.items() if digest not in there]:
            del index.stamps[path], index.contents[path]
            index.attributes.pop(path, None)

    def _keeping(self, stopped: Callable[[], bool]) -> Keep:
        return lambda path, descriptor, size: self._blobs.put(descriptor, size, stopped)

    def _keeping_within(self, budget: int, before: Snapshot, unkept: set[str], stopped: Callable[[], bool]) -> Keep:
        rest = budget

        def keep(path: str, descriptor: int, size: int) -> str:
            nonlocal rest
            if size > rest:
                digest = digest_of_descriptor(descriptor, stopped)
                if not self._blobs.has(digest):
                    unkept.add(path)
                return digest
            digest = self._blobs.put(descriptor, size, stopped)
            if digest != before.contents.get(path):
                rest -= size
            return digest

        return keep

    def _write_index(self, snapshot: Snapshot) -> None:
        contents, racy = snapshot.contents, snapshot.racy
        stamps = {
            path: stamp
            for path, stamp in snapshot.stamps.items()
            if stat.S_ISREG(stamp[0]) and path not in racy and contents[path] != UNREADABLE
        }
        os.makedirs(os.path.dirname(self._place), 0o700, exist_ok=True)
        attributes = {path: text for path, text in snapshot.attributes.items() if path in stamps}
        Index(stamps, contents, snapshot.removals, attributes).write(self._place)


def _retry_if_swapped(look: Callable[[], Result]) -> Result:
    for _ in range(_TRIES):
        try:
            return look()
        except Swapped:
            continue
    raise ToolFailed(
        "the workspace changes faster than it can be read", hint="another program writes to it all the time"
    )


def _differing(before: Mapping[str, Stamp], after: Mapping[str, Stamp]) -> list[str]:
    known = before.get
    return [path for path, stamp in after.items() if known(path) != stamp]


def _differing_attributes(before: Snapshot, found: Scan) -> list[str]:
    """Paths of directories, links and special files whose extended attributes differ although their stamps are
    equal."""
    known = {path: text for path, text in before.attributes.items() if not stat.S_ISREG(before.stamps[path][0])}
    return [
        path
        for path in known.keys() | found.attributes.keys()
        if known.get(path, "") != found.attributes.get(path, "")
        if path in found.stamps and found.stamps[path] == before.stamps.get(path)
    ]


def _update_contents(after: Snapshot, known: Mapping[str, Stamp], found: Scan, differing: Iterable[str]) -> list[str]:
    """Update the contents of `after`, as far as possible without reading files, and return the files that must be read.
    A file whose directory was renamed has the same stamp under its new path, and need not be read."""
    contents, attributes = after.contents, after.attributes
    gone = known.keys() - found.stamps.keys()
    moved = {known[path]: (contents[path], attributes.get(path, "")) for path in gone if path in contents}
    for path in contents.keys() - found.stamps.keys():
        del contents[path]
    for path in attributes.keys() - found.stamps.keys():
        del attributes[path]
    fresh = []
    for path in differing:
        stamp = found.stamps[path]
        contents.pop(path, None)
        attributes.pop(path, None)
        if stat.S_ISREG(stamp[0]):
            if stamp in moved:
                contents[path], attributes[path] = moved[stamp]
            else:
                fresh.append(path)
    contents.update(found.contents)
    attributes.update(found.attributes)
    contents.update(dict.fromkeys(found.closed, UNREADABLE))
    return fresh


def _store_read(after: Snapshot, racy: set[str], path: str, read: Read | None) -> None:
    if read is None:
        del after.stamps[path]
        return
    after.stamps[path] = read.stamp
    after.contents[path] = read.content
    if read.attributes != "":
        after.attributes[path] = read.attributes
    if read.racy:
        racy.add(path)
    if read.content == UNREADABLE:
        after.unreadable.append(path)


def _size_of(paths: Iterable[str], stamps: Mapping[str, Stamp]) -> int:
    """The total size of these files; a file with several hard links counts once."""
    return sum({stamps[path][1:3]: stamps[path][_SIZE] for path in paths}.values())


def _is_much(fresh: list[str], size: int) -> bool:
    return len(fresh) > _FEW_FILES or size > _FEW_BYTES
