"""`haft store restore`: makes a state home of a backup.

The new home is made beside its place, and gets its name at the end: one that was interrupted never looks like a home. A
home that it replaces is kept under another name. Everything is copied, because hosts change the files of a home, and a
backup must never change. The directories with replaced files may have lain beside their workspaces; now all of them are
in the state home. Runs whose replaced files are not in the backup say from then on that they cannot be undone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from typing import Any

from haft.audit import Redactor, Trail
from haft.changes import Blobs, broken_promises
from haft.contracts import BadUsage, StorageFailed, iso_time
from haft.service.backup.backup import sync_tree
from haft.service.backup.marker import Marker, read_marker
from haft.service.backup.tree_copier import Copied, TreeCopier
from haft.service.principals import this_user
from haft.service.private_files import sync_directory
from haft.storage import StateHome, encode, open_stores
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """A state home that was restored."""

    home: str
    backup: str
    made_at: str
    """When the backup was made."""
    copied: Copied
    replaced: str | None
    """Where the state home lies now that was there before; None if there was none."""
    lost: tuple[str, ...]
    """Runs that could be undone when the backup was made, and cannot be undone from it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "home": self.home,
            "backup": self.backup,
            "madeAt": self.made_at,
            "files": self.copied.files,
            "bytes": self.copied.bytes,
            "replaced": self.replaced,
            "lost": list(self.lost),
        }


def restore_backup(backup: str, home: StateHome, *, force: bool = False) -> RestoreResult:
    """Make the state home of a backup. Raises `BadUsage` if there is a state home already, unless `force`, and always
    while a host uses it."""
    backup = os.path.abspath(backup)
    marker = read_marker(backup)
    _check_home(home, force=force)
    fresh = f"{home.path.rstrip('/')}.restoring-{time.time_ns():x}"
    copier = TreeCopier()
    try:
        os.makedirs(os.path.dirname(home.path), exist_ok=True)
        copier.copy(os.path.join(backup, marker.directory), fresh)
        os.chmod(fresh, 0o700)
        lost = _settle(StateHome(fresh), home, marker)
        sync_tree(fresh)
        _check_home(home, force=force)  # A host may have begun meanwhile.
        replaced = _put_in_place(fresh, home.path)
    except OSError as error:
        raise StorageFailed(f"the backup could not be restored to {home.path}", error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    _record(home, backup, marker, lost)
    return RestoreResult(home.path, backup, marker.made_at, copier.done, replaced, tuple(lost))


def _check_home(home: StateHome, *, force: bool) -> None:
    if not os.path.lexists(home.path):
        return
    if os.path.islink(home.path) or not os.path.isdir(home.path):
        raise BadUsage(f"{home.path} is not a directory", hint="name the state home with HAFT_HOME")
    if not os.listdir(home.path):
        return
    if (host := next(open_stores(home).leases().live(), None)) is not None:
        pid = host[1].get("pid", "unknown")
        raise BadUsage(
            f"the process {pid} uses the state home {home.path}", hint="end it first, or restore to another HAFT_HOME"
        )
    if not force:
        raise BadUsage(
            f"there is a state home already: {home.path}",
            hint="set HAFT_HOME to a new directory, or use `--force`, which keeps it under another name",
        )


def _settle(fresh: StateHome, home: StateHome, marker: Marker) -> list[str]:
    """Let the copy know where it will lie. Returns the runs that can no longer be undone."""
    here, there = {}, {}
    for old, key in marker.areas:
        here[old] = os.path.join(fresh.changes, key)
        there[here[old]] = os.path.join(home.changes, key)
        with open(os.path.join(here[old], "area"), "wb") as file:
            file.write(os.fsencode(here[old]))
    stores = open_stores(fresh)
    stores.move_areas(here)
    lost = []
    with contextlib.closing(stores.connect()) as connection:
        ledger = connection.ledger
        for row, reason in list(broken_promises(fresh.changes, ledger, Blobs(fresh.blobs))):
            ledger.forget_images(row.run, f"not in the backup of {marker.made_at}: {reason}")
            lost.append(row.run)
    stores.move_areas(there)
    for old, _key in marker.areas:
        with open(os.path.join(here[old], "area"), "wb") as file:
            file.write(os.fsencode(there[here[old]]))
    return lost


def _put_in_place(fresh: str, place: str) -> str | None:
    """Give the new home its name. Returns the new name of the home that was there."""
    replaced = None
    if os.path.isdir(place) and os.listdir(place):
        replaced = f"{place.rstrip('/')}.before-restore-{time.time_ns():x}"
        os.rename(place, replaced)
    try:
        os.rename(fresh, place)
    except OSError as error:
        if replaced is not None and error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            os.rename(replaced, place)
        raise
    sync_directory(os.path.dirname(place))
    return replaced


def _record(home: StateHome, backup: str, marker: Marker, lost: list[str]) -> None:
    """Write into the audit log that it goes on from a backup."""
    entry = {
        "type": "restore",
        "at": iso_time(time.time()),
        **this_user().to_json(),
        "backup": backup,
        "madeAt": marker.made_at,
        "lost": lost,
    }
    with contextlib.closing(open_stores(home).audit_log()) as log:
        trail = Trail(log, Redactor())
        try:
            trail.append([encode(entry)])
        finally:
            trail.close()
