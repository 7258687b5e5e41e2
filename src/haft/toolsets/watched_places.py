"""Which sources to refresh, as the kernel tells it: from the places of sources to watches of directories, and back.

A place may be a file or a directory, be replaced as a whole, or not exist yet. So it is watched itself, where it is a
directory, and so are those above it, up to the workspace or the home directory that it lies in, for the one name that
leads to it. The kernel does not tell everything; `missed` holds the directories against what they were.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from haft.files import Watches

MOST_LOOKS: Final = 32
"""Directories that are looked at when it is asked what was missed."""
ITSELF: Final = ""
"""In place of a name: whatever happens in a directory, and to it."""

_Sources = set[str]


class WatchedPlaces:
    """The places of one service. `OSError` where nothing can be watched on this machine."""

    def __init__(self, roots: Collection[str]) -> None:
        """`roots` are directories that stay: nothing above them is watched for the places in them."""
        self._roots = frozenset(roots)
        self._watches = Watches()
        self.descriptor = self._watches.descriptor
        self._wanted: dict[str, dict[str, _Sources]] = {}
        """By directory, by name in it."""
        self._looks: dict[str, object] = {}
        self._next: Iterator[tuple[str, object]] = iter(())
        self.unwatched: _Sources = set()
        """The sources of which not all places can be watched."""

    def follow(self, places: Mapping[str, _Sources]) -> _Sources:
        """Watch these places instead of those before: the sources that may have changed before their watch began."""
        wanted: dict[str, dict[str, _Sources]] = {}
        for place, sources in places.items():
            for directory, name in self._ways(place):
                wanted.setdefault(directory, {}).setdefault(name, set()).update(sources)
        # A source that is watched for something else is looked at anew, too.
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
        """The sources that are to be refreshed, by what happened since this was last asked. Never waits."""
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
        """The sources whose places are others than they were when they were last followed, of the next few that are
        held against it: an idle service with many tools costs no more than one with few."""
        some = list(islice(self._next, MOST_LOOKS))
        if len(some) < MOST_LOOKS:
            self._next = iter(list(self._looks.items()))
        return self._sources_of(path for path, before in some if self._look(path) != before)

    def _look(self, path: str) -> object:
        """What changes with a directory, or with what counts in it, as far as a `stat` of each shows."""
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
