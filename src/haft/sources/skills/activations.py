"""Stores which skills are active, in a workspace or in one thread. There is one small file for each workspace.

HAFT_HOME/skills/<digest of the workspace's path>.json    workspace, active, threads (oldest first)

A skill is stored by its folder, not by its name: so another skill that later has the same name does not become active.
A stored folder may no longer exist. A file that cannot be read counts as empty: at worst, a skill must be activated
again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from haft.contracts import HaftError, StorageFailed
from haft.files import Root, digest_of, locked

DIRECTORY: Final = "skills"
MOST_THREADS: Final = 1_000
MOST_BYTES: Final = 10_000_000
_PATIENCE: Final = 10.0
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Activations:
    """The active skills of a workspace."""

    def __init__(self, state_home: str, workspace: str) -> None:
        self._home = state_home
        self._workspace = os.path.realpath(workspace)
        self._directory = os.path.join(state_home, DIRECTORY)
        self._name = f"{digest_of(os.fsencode(self._workspace))[:16]}.json"
        self._read_at: tuple[int, ...] | None = None
        self._state = _State()

    @property
    def path(self) -> str:
        """The path of the file with the active skills."""
        return os.path.join(self._directory, self._name)

    def of(self, thread: str | None) -> frozenset[str]:
        """The folders of the skills that are active in the workspace or in `thread`; if `thread` is None, only the
        folders of the skills that are active in the workspace."""
        state = self._current()
        return frozenset(state.active) | frozenset(state.threads.get(thread, ()) if thread is not None else ())

    def anywhere(self) -> frozenset[str]:
        """The folders of the skills that are active in the workspace or in any thread."""
        state = self._current()
        return frozenset(state.active).union(*state.threads.values())

    def threads(self, folder: str) -> list[str]:
        """The threads in which a skill is active, the newest last."""
        return [thread for thread, folders in self._current().threads.items() if folder in folders]

    def activate(self, folder: str, thread: str | None) -> bool:
        """Activate a skill in a thread; in the workspace if `thread` is None. Returns False if the skill was active
        there already."""
        with self._changing() as state:
            folders = list(state.active if thread is None else state.threads.get(thread, ()))
            is_new = folder not in folders
            if is_new:
                _set(state, thread, [*folders, folder])
        return is_new

    def deactivate(self, folder: str, thread: str | None) -> bool:
        """Deactivate a skill in a thread; in the workspace if `thread` is None. Returns False if the skill was not
        active there."""
        with self._changing() as state:
            folders = list(state.active if thread is None else state.threads.get(thread, ()))
            was_active = folder in folders
            if was_active:
                _set(state, thread, [one for one in folders if one != folder])
        return was_active

    def stamp(self) -> tuple[int, ...] | None:
        """A value that changes when the file changes; None if there is no file."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def _current(self) -> _State:
        stamp = self.stamp()
        if stamp is None:
            return _State()
        if stamp != self._read_at:
            # The stamp is taken before the file is read: a change in between is read again next time.
            self._state, self._read_at = self._load(), stamp
        return self._state

    def _load(self) -> _State:
        path = self.path
        try:
            descriptor = os.open(path, _READ)
        except FileNotFoundError:
            return _State()
        except OSError as error:
            return _unreadable(path, error)
        try:
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(MOST_BYTES + 1)
            return _state_from(json.loads(data[:MOST_BYTES]))
        except (OSError, ValueError, RecursionError) as error:
            return _unreadable(path, error)
        finally:
            os.close(descriptor)

    @contextmanager
    def _changing(self) -> Iterator[_State]:
        """Lock the file and yield its state. The `with` block may change the state, and a changed state is saved at the
        end of the block."""
        try:
            os.makedirs(self._home, mode=0o700, exist_ok=True)
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            lock = os.open(os.path.join(self._directory, f"{self._name}.lock"), _LOCK, 0o600)
        except OSError as error:
            raise StorageFailed("the active skills could not be saved", error) from error
        try:
            with locked(lock, _PATIENCE):
                state = self._load()
                before = state.to_json(self._workspace)
                yield state
                if state.to_json(self._workspace) != before:
                    self._keep(json.dumps(state.to_json(self._workspace)).encode())
        except (OSError, HaftError) as error:
            raise StorageFailed("the active skills could not be saved", error) from error
        finally:
            os.close(lock)

    def _keep(self, data: bytes) -> None:
        path = self.path
        with suppress(FileExistsError):
            # Create the file with mode 600 first: `replace` alone would create a file that others may read.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        Root(self._directory).replace(self._name, data)


class _State:
    """The content of the file with the active skills."""

    __slots__ = ("active", "threads")

    def __init__(self, active: list[str] | None = None, threads: dict[str, list[str]] | None = None) -> None:
        self.active = active or []
        self.threads = threads or {}

    def to_json(self, workspace: str) -> dict[str, Any]:
        return {"workspace": workspace, "active": list(self.active), "threads": dict(self.threads)}


def _set(state: _State, thread: str | None, folders: list[str]) -> None:
    if thread is None:
        state.active = folders
        return
    state.threads.pop(thread, None)
    if folders:
        state.threads[thread] = folders  # at the end, because the newest thread comes last
    for oldest in list(state.threads)[:-MOST_THREADS]:
        del state.threads[oldest]


def _state_from(kept: Any) -> _State:
    """The state from decoded JSON. Raises `ValueError` if the JSON has another form."""
    if not isinstance(kept, dict) or not isinstance(kept.get("threads", {}), dict):
        raise ValueError("it holds something else")  # noqa: TRY004  a file is wrong, not a caller
    threads = {thread: _texts(names) for thread, names in kept.get("threads", {}).items()}
    return _State(_texts(kept.get("active", [])), {thread: names for thread, names in threads.items() if names})


def _texts(names: Any) -> list[str]:
    if not isinstance(names, list):
        raise ValueError("it holds something else")  # noqa: TRY004  a file is wrong, not a caller
    return [name for name in names if isinstance(name, str)]


def _unreadable(path: str, error: Exception) -> _State:
    import logging

    logging.getLogger("haft").warning("%s cannot be read (%s): no skill counts as active there", path, error)
    return _State()
