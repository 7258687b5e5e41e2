"""Writes a whole file atomically: no process ever sees a half-written file, and after a power loss the file has either
the old content or the new content.

The new content is written to a temporary file in the same directory, synced, and renamed over the old file, all through
the descriptor of the directory that `walk` opened. The file keeps its mode and, if permitted, its owner. Hard links to
it are broken; extended attributes and set-user-id bits are dropped. If the process is killed meanwhile, it leaves at
most a file called `.haft-….tmp`.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Any, Final

from haft.contracts import Conflict
from haft.files.directories import sync_directory
from haft.files.failures import identity_of, require_regular
from haft.files.printable import shown
from haft.files.walk import Walk

_TEMPORARY: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_EFFECTIVE: Final = os.access in os.supports_effective_ids
_PROBE: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


def replace_file(place: Walk, content: bytes, expect: Any) -> bool:
    """Write `content` to `place`. Returns True if there was no file before. Raises `Conflict` if `expect` is given, but
    is not the identity of the file."""
    before = require_replaceable(place, expect)
    temporary = f".haft-{os.urandom(8).hex()}.tmp"
    # A new file gets its mode from the umask; the mode of an old file is set after the content was written.
    descriptor = os.open(temporary, _TEMPORARY, 0o666 if before is None else 0o600, dir_fd=place.directory)
    try:
        try:
            _write_all(descriptor, content)
            if before is not None:
                _keep_attributes(descriptor, before)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _require_expected(place, place.status(), expect)
        os.rename(temporary, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=place.directory)
        raise
    sync_directory(place.directory)
    return before is None


def require_replaceable(place: Walk, expect: Any, *, is_in_view: bool = False) -> os.stat_result | None:
    """Check that `replace_file` can write to `place`. Returns the status of the file there; None if there is no file
    yet. With `is_in_view`, the place lies on a mount from which one can only read, and only the modes count."""
    before = place.status()
    if before is not None:
        require_regular(place.path, before.st_mode)
    if is_in_view:
        for status in filter(None, (before, os.fstat(place.directory) if place.exists else None)):
            if not _has_write_bit(status):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        _require_expected(place, before, expect)
        return before
    if before is not None:
        _require_writable(place)
    if place.exists and not os.access(".", os.W_OK | os.X_OK, dir_fd=place.directory, effective_ids=_EFFECTIVE):
        is_closed = os.fstatvfs(place.directory).f_flag & os.ST_RDONLY
        number = errno.EROFS if is_closed else errno.EACCES
        raise OSError(number, os.strerror(number))
    _require_expected(place, before, expect)
    return before


def _has_write_bit(status: os.stat_result) -> bool:
    if os.geteuid() == 0:
        return True
    if status.st_uid == os.geteuid():
        return bool(status.st_mode & stat.S_IWUSR)
    is_in_group = status.st_gid in (os.getegid(), *os.getgroups())
    return bool(status.st_mode & (stat.S_IWGRP if is_in_group else stat.S_IWOTH))


def _require_writable(place: Walk) -> None:
    """Check that the file itself is writable: a rename needs only the permission of the directory, and would replace
    even a read-only file."""
    try:
        os.close(os.open(place.name, _PROBE, dir_fd=place.directory))
    except OSError as error:
        if error.errno not in (errno.ETXTBSY, errno.ENOENT):  # A running program may be replaced, a missing file made.
            raise


def _require_expected(place: Walk, status: os.stat_result | None, expect: Any) -> None:
    if expect is not None and (status is None or identity_of(status) != expect):
        raise Conflict(
            f"`{shown(place.path)}` changed since it was read; nothing was written", hint="read it again, then retry"
        )


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _keep_attributes(descriptor: int, before: os.stat_result) -> None:
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):  # Only root may change the owner.
            os.fchown(descriptor, before.st_uid, before.st_gid)
    # Nobody granted set-user-id to the new content; writing in place would drop it too.
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
