"""`haft store backup`: a copy of a state home, while hosts run, as they would leave it if all were killed at once.

The backup shows the moment when the copy of the database is fixed. The audit log is locked then, for as long as it
takes to read its head and to copy the journals: what the log has at that moment is in the database or in a journal, and
what hosts do later is in none of them. So the first command that uses the restored home ends the runs of these hosts,
as after a crash. Contents of files are copied twice, before and after that moment: the second time is short, and what
the database knows at the moment is in one of the two. Meanwhile nothing is pruned.

The copy lies in a new directory of the backup. `marker` makes it count, once all of it is on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Iterator
from typing import Any, Final

from haft.changes import Area, known_areas, no_pruning
from haft.contracts import BadUsage, MachineError, StorageFailed, iso_time
from haft.files import sync_filesystem
from haft.service.backup.marker import NAME, Marker, read_marker, write_marker
from haft.service.backup.tree_copier import Copied, TreeCopier
from haft.storage import StateHome, open_stores
from haft.values import dataclass
from haft.version import __version__

LEFT_OUT: Final = frozenset({"cache", "caches", "clients", "hook", "locks", "package-indexes", "scratch"})
"""What a state home can do without: caches, temporary files, and what only means something while a process runs."""
APART: Final = frozenset({"audit", "changes", "hosts"})
"""What is copied in a way of its own."""
AREA_PARTS: Final = ("held", "kept", "saved", "views")
"""The parts of an area that are copied: not the layers of running calls."""
PATIENCE: Final = 60.0
_LOG: Final = "record.log"


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A backup that was made."""

    directory: str
    made_at: str
    copied: Copied
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "directory": self.directory,
            "madeAt": self.made_at,
            "files": self.copied.files,
            "bytes": self.copied.bytes,
            "unchanged": self.copied.linked,
            "seconds": round(self.seconds, 3),
        }


def make_backup(home: StateHome, target: str) -> BackupResult:
    """Write a backup of the state home into the directory `target`, which becomes a backup or already is one. Raises
    `BadUsage` if it is something else, and `StorageFailed` if it cannot be written: an earlier backup there stays."""
    began, target = time.monotonic(), os.path.abspath(target)
    if not open_stores(home).exists():
        raise BadUsage(f"there is nothing to back up: {home.path} has no state yet")
    _check_target(home, target)
    try:
        os.makedirs(target, mode=0o700, exist_ok=True)
        _remove_unfinished(target)
        previous = read_marker(target) if os.path.lexists(os.path.join(target, NAME)) else None
        fresh = os.path.join(target, f"home-{time.time_ns():x}")
        os.mkdir(fresh, 0o700)
        copier = TreeCopier(None if previous is None else os.path.join(target, previous.directory))
        areas = known_areas(home.changes)
        with no_pruning(home.changes, PATIENCE):
            made_at = _copy_home(home, fresh, areas, copier)
        sync_tree(fresh)
        named = tuple((area.path, os.path.basename(os.path.dirname(area.lock))) for area in areas)
        write_marker(target, Marker(os.path.basename(fresh), made_at, home.path, __version__, named))
    except MachineError:
        raise
    except OSError as error:
        raise StorageFailed(f"the backup in {target} could not be written", error) from error
    if previous is not None:
        shutil.rmtree(os.path.join(target, previous.directory), ignore_errors=True)
    return BackupResult(target, made_at, copier.done, time.monotonic() - began)


def _check_target(home: StateHome, target: str) -> None:
    inside = os.path.commonpath([os.path.realpath(home.path), os.path.realpath(target)])
    if inside == os.path.realpath(home.path):
        raise BadUsage(f"{target} lies in the state home itself", hint="choose another directory, on another disk")
    if os.path.isdir(target) and not os.path.lexists(os.path.join(target, NAME)):
        strange = [name for name in os.listdir(target) if not name.startswith("home-") and name != f"{NAME}.new"]
        if strange:
            raise BadUsage(f"{target} is not empty, and is no backup", hint="choose an empty or a new directory")


def _remove_unfinished(target: str) -> None:
    """Remove what an interrupted backup left. Nothing refers to it."""
    complete = read_marker(target).directory if os.path.lexists(os.path.join(target, NAME)) else None
    for name in os.listdir(target):
        if name.startswith("home-") and name != complete:
            shutil.rmtree(os.path.join(target, name), ignore_errors=True)


def _copy_home(home: StateHome, fresh: str, areas: list[Area], copier: TreeCopier) -> str:
    """Copy everything. Returns the time of the moment that the copy shows."""
    database = os.path.basename(home.database)
    others = [name for name in sorted(os.listdir(home.path)) if _is_copied_whole(name, database)]
    _copy_contents(home, fresh, areas, others, copier)
    moment = _Moment(home, fresh, copier)
    open_stores(home).copy_to(os.path.join(fresh, database), moment.fixed())
    _copy_contents(home, fresh, areas, others, copier)
    _copy_log(home, fresh, moment.log_size)
    return iso_time(moment.at)


def _is_copied_whole(name: str, database: str) -> bool:
    return name not in LEFT_OUT and name not in APART and not name.startswith(database)


def _copy_contents(home: StateHome, fresh: str, areas: list[Area], others: list[str], copier: TreeCopier) -> None:
    for name in others:
        copier.copy(os.path.join(home.path, name), os.path.join(fresh, name), name)
    changes = os.path.join(fresh, "changes")
    os.makedirs(changes, mode=0o700, exist_ok=True)
    for area in areas:
        own = os.path.dirname(area.lock)
        key = os.path.basename(own)
        os.makedirs(os.path.join(changes, key), mode=0o700, exist_ok=True)
        for note in ("area", "workspace"):
            copier.copy(os.path.join(own, note), os.path.join(changes, key, note), os.path.join("changes", key, note))
        for part in AREA_PARTS:
            place = os.path.join("changes", key, part)
            copier.copy(os.path.join(area.path, part), os.path.join(fresh, place), place)


class _Moment:
    """The moment that a backup shows."""

    def __init__(self, home: StateHome, fresh: str, copier: TreeCopier) -> None:
        self._home = home
        self._fresh = fresh
        self._copier = copier
        self.at = 0.0
        self.log_size = -1
        """The size of the audit log; -1 if there is none."""

    @contextlib.contextmanager
    def fixed(self) -> Iterator[None]:
        """A context manager in which the audit log does not grow. The head of the log and the journals of hosts are
        copied before the body."""
        home, fresh = self._home, self._fresh
        for name in ("audit", "hosts"):
            os.mkdir(os.path.join(fresh, name), 0o700)
        with contextlib.closing(open_stores(home).audit_log()) as log, log.turn():
            self.at = time.time()
            for name in sorted(os.listdir(home.audit)):
                if name != _LOG and not name.endswith(".new"):
                    shutil.copy2(os.path.join(home.audit, name), os.path.join(fresh, "audit", name))
            for name in sorted(os.listdir(home.hosts)):
                if name.endswith((".journal", ".lock")):
                    self._copier.copy(os.path.join(home.hosts, name), os.path.join(fresh, "hosts", name))
            if log.exists():
                self.log_size = log.size()
            yield


def _copy_log(home: StateHome, fresh: str, size: int) -> None:
    """Copy the audit log as long as it was at the moment. Later lines only follow."""
    if size < 0:
        return
    with _new_file(os.path.join(fresh, "audit", _LOG)) as target:
        sent = 0
        source = os.open(os.path.join(home.audit, _LOG), os.O_RDONLY | os.O_CLOEXEC)
        try:
            while sent < size:
                piece = os.pread(source, min(1 << 20, size - sent), sent)
                if not piece:
                    raise OSError(errno.EIO, "the audit log became shorter while it was copied")
                sent += os.write(target, piece)
        finally:
            os.close(source)


@contextlib.contextmanager
def _new_file(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_tree(path: str) -> None:
    """Make everything in a directory survive power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_filesystem(descriptor)
    finally:
        os.close(descriptor)
