"""Opens ZIP files of other people: never waits for a pipe, limits the table of contents, and raises clear errors for
damaged files."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from haft.contracts import BadUsage
from haft.files import shown

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo


def open_archive(path: str, most: int) -> IO[bytes]:
    """Open a regular file of at most `most` bytes for reading."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        file = os.fdopen(descriptor, "rb")
        status = os.fstat(descriptor)
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        file.close()
        what = f"larger than {most:_} bytes" if stat.S_ISREG(status.st_mode) else "not a regular file"
        raise BadUsage(f"{path} is {what}: it is not installed")
    return file


def require_short_directory(archive: str, file: IO[bytes], most_files: int, most_bytes: int) -> None:
    """Raise `BadUsage` if the table of contents has more than `most_bytes` bytes. Checked first, because `zipfile`
    reads the whole table before anything can be counted. `most_files` is only for the message."""
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - 65_600))
    end = file.read()
    file.seek(0)
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or len(end) < at + 22:
        raise BadUsage(f"{archive} is damaged: it has no table of contents")
    is_large = end[max(0, at - 20) :].startswith(b"PK\x06\x07")  # In ZIP64, the table of contents is elsewhere.
    if is_large or struct.unpack_from("<I", end, at + 12)[0] > most_bytes:
        raise BadUsage(f"it has more than {most_files:_} files and directories: it is not installed")


@contextmanager
def read_zip(archive: str, file: IO[bytes]) -> Iterator[ZipFile]:
    """Open a ZIP for a `with` block. If the ZIP is damaged, the errors of `zipfile` in the block become `BadUsage`."""
    try:
        with zipfile.ZipFile(file) as found:
            yield found
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        struct.error,
    ) as error:
        raise damaged_error(archive, error) from error


def require_plain(info: ZipInfo) -> None:
    """Raise `BadUsage` unless the entry is a regular file, stored or deflated."""
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise special_file_error(info.filename)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadUsage(
            f"`{shown(info.filename[:200])}` is compressed with a method that is not supported",
            hint="pack it again with `zip`, or as a .tar.gz",
        )


def special_file_error(name: str) -> BadUsage:
    """The error for a link, a device or a pipe in an archive."""
    return BadUsage(
        f"`{shown(name[:200])}` is neither a regular file nor a directory: it is not installed",
        hint="links, devices and pipes in archives are not installed",
    )


def damaged_error(archive: str, error: Exception) -> BadUsage:
    """The error for an archive that cannot be read."""
    return BadUsage(f"{archive} cannot be unpacked: {str(error)[:200]}")
