"""Waits until scenario files, or the tools that they test, change."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from haft.contracts import HaftError
from haft.testing.reading.files import find_scenario_files, read_scenario_file

_PAUSE_SECONDS: Final = 0.3
_MOST_FILES: Final = 5_000


class Watch:
    """What the scenario files at some paths depend on: the files themselves, and the files of their tools."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._known = self._state()

    def changed(self) -> list[str]:
        """Wait until something changes. Returns the scenario files that depend on it."""
        while True:
            time.sleep(_PAUSE_SECONDS)
            now = self._state()
            found = [path for path, state in now.items() if self._known.get(path) != state]
            is_gone = len(now) < len(self._known)
            self._known = now
            if found or is_gone:
                return found

    def _state(self) -> dict[str, Any]:
        try:
            files = find_scenario_files(self._paths)
        except HaftError:  # A file that was named is gone for a moment, while an editor writes it.
            return self._known if hasattr(self, "_known") else {}
        return {path: tuple(_states(_sources(path))) for path in files}


def _sources(path: str) -> list[str]:
    """The scenario file, and the tools that it loads."""
    from haft.testing.calls.observing import loading_of

    found = {path: None}
    try:
        for scenario in read_scenario_file(path):
            found.update(dict.fromkeys(loading_of(scenario).named))
    except (HaftError, OSError):
        pass
    return list(found)


def _states(paths: Iterable[str]) -> Iterable[Any]:
    count = 0
    for path in paths:
        itself: tuple[str, list[str], list[str]] = (os.path.dirname(path), [], [os.path.basename(path)])
        for at, folders, files in itertools.chain([itself], os.walk(path)):
            count += 1
            folders[:] = [each for each in folders if not each.startswith(".") and each != "__pycache__"]
            for name in sorted(files):
                count += 1
                if count > _MOST_FILES:
                    return
                try:
                    found = os.stat(os.path.join(at, name))
                except OSError:
                    continue
                yield at, name, found.st_mtime_ns, found.st_size, found.st_ino
