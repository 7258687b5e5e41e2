"""Large trees that are watched, so that haft need not examine them again for each call.

A tree is watched from the second time that it is examined. The watches are set before the files are examined, so that
no change is missed in between. After the first report, or if a report was lost, the tree is examined again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from typing import Final

from haft.cache.stamps import Files, Stamp, stamp_of
from haft.files import Tripwire, most_watches
from haft.values import dataclass, replace

LEAST_ENTRIES: Final = 500
"""Smaller trees are examined each time."""
MOST_TREES: Final = 4
_SHARE: Final = 8
"""The part of this user's watches that one tree may take: an eighth."""


@dataclass(slots=True)
class _WatchedTree:
    tripwire: Tripwire
    stamp: Stamp
    others: Files
    """The files elsewhere, which are examined each time."""
    places: dict[str, tuple[int, int]]
    """The paths themselves, with device and inode: one of their directories may be renamed."""


class WatchedTrees:
    """The trees that one host watches. Any thread may use it."""

    def __init__(self, least_entries: int = LEAST_ENTRIES) -> None:
        self._least_entries = least_entries
        self._trees: dict[tuple[str, ...], _WatchedTree] = {}
        self._seen: set[tuple[str, ...]] = set()
        """Large trees that were examined once."""
        self._too_large: set[tuple[str, ...]] = set()
        self._lock = threading.Lock()
        self._most = min(most_watches() // _SHARE, 100_000)

    def stamp_of(self, files: Files, stopped: Callable[[], bool] = lambda: False) -> Stamp:
        """The stamp of files as they are now. Raises `Unstampable`."""
        known = self.known(files)
        if known is not None:
            return known
        key = _key(files)
        with self._lock:
            is_worth = key in self._seen and key not in self._too_large and not files.by_content
            self._seen.discard(key)
        if is_worth and (stamp := self._watch(key, files, stopped)) is not None:
            return stamp
        stamp = stamp_of(files, stopped=stopped)
        if stamp.entries >= self._least_entries:
            with self._lock:
                self._seen.add(key)
        return stamp

    def known(self, files: Files) -> Stamp | None:
        """The stamp of files that are watched, if nothing has changed; otherwise None. Takes little time."""
        key = _key(files)
        with self._lock:
            tree = self._trees.get(key)
            if tree is None or files.by_content:
                return None
            others = stamp_of(tree.others)
            is_same = others.others_digest == tree.stamp.others_digest and _identities(tree.places) == tree.places
            # The watches come last: what was reported until now counts.
            if is_same and tree.tripwire.is_intact():
                return replace(tree.stamp, newest=max(tree.stamp.newest, others.newest))
            del self._trees[key]
            tree.tripwire.close()
        return None

    def _watch(self, key: tuple[str, ...], files: Files, stopped: Callable[[], bool]) -> Stamp | None:
        """Watch files, and examine them. Returns None if they cannot be watched."""
        try:
            tripwire = Tripwire()
        except OSError:
            return None
        left = self._most

        def visit(path: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise _TooMany
            with contextlib.suppress(FileNotFoundError):  # Its directory is watched.
                tripwire.add(path)

        places = [os.path.join(files.root, path) for path in files.paths]
        try:
            before = [tripwire.add(place) for place in places]
            stamp = stamp_of(files, visit=visit, stopped=stopped)
            # If a path leads to another directory now, the wrong one is watched.
            is_same = before == [tripwire.add(place) for place in places]
            if stamp.leads_elsewhere or not is_same:
                tripwire.close()
                return stamp
        except (_TooMany, OSError):
            tripwire.close()
            self._too_large.add(key)
            return None
        except BaseException:
            tripwire.close()
            raise
        with self._lock:
            while len(self._trees) >= MOST_TREES:
                self._trees.pop(next(iter(self._trees))).tripwire.close()
            replaced = self._trees.pop(key, None)
            if replaced is not None:
                replaced.tripwire.close()
            others = Files(files.root, (), (*files.named, *places), stamp.others)
            self._trees[key] = _WatchedTree(tripwire, stamp, others, _identities(places))
        return stamp

    def close(self) -> None:
        """Watch nothing any more."""
        with self._lock:
            for tree in self._trees.values():
                tree.tripwire.close()
            self._trees.clear()


class _TooMany(Exception):
    """A tree has too many files to be watched."""


def _identities(places: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The device and inode of each path; zeros if there is nothing."""
    found = {}
    for place in places:
        try:
            status = os.lstat(place)
            found[place] = status.st_dev, status.st_ino
        except OSError:
            found[place] = 0, 0
    return found


def _key(files: Files) -> tuple[str, ...]:
    return (*files.paths, "", *files.named, "", *files.leaves_out, "", *files.others, "", str(files.follows_links))
