"""Makes the directory in which an environment is made, and moves the finished environment to its place. An unfinished
environment is never valid.

The locks are on these directories, not in the state home, because another process may use another state home.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Final

from haft.contracts import StorageFailed
from haft.files import locked, sync_filesystem
from haft.toolsets.environments.places import Place

MAKING: Final = "making-"
BESIDE: Final = ".venv.new-"
ASIDE: Final = ".venv.old-"
LOCK_SECONDS: Final = 60.0


@contextlib.contextmanager
def making_folder(ground: str) -> Iterator[str]:
    """A context manager that yields a new locked directory in `ground`, and removes it at the end. First, it removes
    the directories of killed processes, whose locks nobody holds any more."""
    with _opened(ground) as top, contextlib.ExitStack() as held:
        with locked(top, LOCK_SECONDS):
            _tidy(ground)
            folder = tempfile.mkdtemp(prefix=MAKING, dir=ground)
            held.callback(shutil.rmtree, folder, ignore_errors=True)
            held.enter_context(locked(held.enter_context(_opened(folder)), 0))
        yield folder


def _tidy(ground: str) -> None:
    for name in os.listdir(ground):
        if name.startswith(MAKING):
            path = os.path.join(ground, name)
            with contextlib.suppress(TimeoutError, FileNotFoundError), _opened(path) as left, locked(left, 0):
                shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Occupied(Exception):
    """Another process, with another state home, has already put an environment at the same place."""


def put(made: str, place: Place, stamp: str) -> None:
    """Move an environment to its place. Other processes that do this for the same folder, with any state home, wait and
    then get `Occupied`. The stamp is written last and removed first. Leftovers of a killed process are removed."""
    try:
        with _opened(place.folder) as folder, locked(folder, LOCK_SECONDS):
            if place.has_other():
                raise Occupied
            _take_away_leftovers(place)
            word = os.urandom(4).hex()
            beside = os.path.join(place.folder, BESIDE + word)
            try:
                place.note(stamp.split()[1], is_whole=False)
                _move(made, beside)
                sync_filesystem(folder)  # Without this, a power failure could leave empty files with a valid stamp.
                _replace(beside, place, word)
                _write(stamp, place, word)
                place.note(stamp.split()[1], is_whole=True)
            except BaseException:
                _take_away_leftovers(place)
                raise
    except TimeoutError as error:
        raise StorageFailed(f"{place.folder} is locked by another process", error) from error


def _move(made: str, beside: str) -> None:
    try:
        os.rename(made, beside)
    except OSError:  # Mostly because it was made on another filesystem.
        shutil.copytree(made, beside, symlinks=True)


def _replace(beside: str, place: Place, word: str) -> None:
    if os.path.lexists(place.stamp):
        os.unlink(place.stamp)
    aside = os.path.join(place.folder, ASIDE + word)
    if os.path.lexists(place.environment):
        os.rename(place.environment, aside)
    os.rename(beside, place.environment)
    _remove(aside)


def _write(stamp: str, place: Place, word: str) -> None:
    written = os.path.join(place.folder, f"{BESIDE}{word}.txt")
    with open(written, "x", encoding="ascii") as file:
        file.write(stamp)
        file.flush()
        os.fsync(file.fileno())
    os.replace(written, place.stamp)


def _take_away_leftovers(place: Place) -> None:
    for name in os.listdir(place.folder):
        if name.startswith((BESIDE, ASIDE)):
            _remove(os.path.join(place.folder, name))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)
