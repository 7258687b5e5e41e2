"""Finds out which sources need a refresh: watches the places that they search, with the kernel's help.

A place is a file or a directory that a source searches. A place can be replaced as a whole, or not exist yet. So haft
watches the place itself if it is a directory. It also watches each directory above the place, up to the workspace or
the home directory, but there only the one name that leads to the place. The kernel does not report everything, so
`missed` compares the directories with their earlier state.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from haft.files import Watches

MOST_LOOKS: Final = 32
"""How many directories `missed` checks at a time."""
ITSELF: Final = ""
"""Used instead of a name, for every change in a directory and of the directory itself."""

_Sources = set[str]


class WatchedPlaces:
    """The watched places of one service. Raises `OSError` if this machine cannot watch directories."""

    def __init__(self, roots: Collection[str]) -> None:
        """`roots` are directories that are never moved or replaced, so that nothing above them is watched."""
        self._roots = frozenset(roots)
        self._watches = Watches()
        self.descriptor = self._watches.descriptor
        self._wanted: dict[str, dict[str, _Sources]] = {}
        """For each watched directory and each watched name in it: the sources to refresh."""
        self._looks: dict[str, object] = {}
        self._next: Iterator[tuple[str, object]] = iter(())
        self.unwatched: _Sources = set()
        """The sources that search places that cannot be watched."""

    def follow(self, places: Mapping[str, _Sources]) -> _Sources:
        """Watch these places from now on, and return the sources that may have changed before the watch began."""
        wanted: dict[str, dict[str, _Sources]] = {}
        for place, sources in places.items():
            for directory, name in self._ways(place):
                wanted.setdefault(directory, {}).setdefault(name, set()).update(sources)
        # In a directory that was watched before, a name that is watched only from now on may have changed too.
        new = {path for path, names in wanted.items() if names.keys() - self._wanted.get(path, {}).keys()}
        self._wanted = wanted
        anew, unwatched = self._watches.follow(wanted)
        self.unwatched = self._sources_of(unwatched)
        self._looks = {path: self._look(path) for path in wanted}
        self._next = iter(list(self._looks.items()))
        return self._sources_of(anew | (new - unwatched))

    def _ways(self, place: str) -> Iterator[tuple[str, str]]:
        if os.path.isdir(place):
            yield place, ITSELF
        is_inside = any(place.startswith(f"{root}/") for root in self._roots)
        directory, name = os.path.split(place)
        while name:
            exists = os.path.isdir(directory)
            if exists:
                yield directory, name
            if directory in self._roots or (exists and not is_inside):
                return
            directory, name = os.path.split(directory)

    def changed(self) -> _Sources:
        """The sources that need a refresh because of changes after this method was last called. Never waits."""
        changes = self._watches.changes()
        if changes is None:
            return self._sources_of(self._wanted)
        found: _Sources = set()
        for directory, name in changes:
            names = self._wanted.get(directory, {})
            found |= names.get(ITSELF, set()) | names.get(name, set())
            if not name:  # The directory itself was moved or deleted.
                found |= self._sources_of((directory,))
        return found

    def missed(self) -> _Sources:
        """The sources whose places have changed since `follow`. Each time, this method checks only the next few places,
        so that an idle service with many tools costs no more than one with few."""
        some = list(islice(self._next, MOST_LOOKS))
        if len(some) < MOST_LOOKS:
            self._next = iter(list(self._looks.items()))
        return self._sources_of(path for path, before in some if self._look(path) != before)

    def _look(self, path: str) -> object:
        """A value that changes when the directory, or a watched name in it, changes, as far as `stat` shows that."""
        names = self._wanted[path]
        if ITSELF in names:
            return _stamp(path, with_names=True)
        return [_stamp(os.path.join(path, name)) for name in names]

    def _sources_of(self, directories: Iterable[str]) -> _Sources:
        return {name for path in directories for sources in self._wanted.get(path, {}).values() for name in sources}

    def close(self) -> None:
        self._watches.close()


def _stamp(path: str, *, with_names: bool = False) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    which = found.st_dev, found.st_ino
    return which if stat.S_ISDIR(found.st_mode) and not with_names else (*which, found.st_size, found.st_mtime_ns)
