"""Zip files from elsewhere: opened without waiting, their table of contents bounded, damage said in a sentence."""

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


def opened(path: str, most: int) -> IO[bytes]:
    """A regular file of at most so many bytes, for reading."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        file = os.fdopen(descriptor, "rb")
        status = os.fstat(descriptor)
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        file.close()
        what = f"larger than {most:_} bytes" if stat.S_ISREG(status.st_mode) else "no regular file"
        raise BadUsage(f"{path} is {what}: it is not installed")
    return file


def require_short_directory(archive: str, file: IO[bytes], most_files: int, most_bytes: int) -> None:
    """Its table of contents is read whole before anything can be counted: so it may have so many bytes."""
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - 65_600))
    end = file.read()
    file.seek(0)
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or len(end) < at + 22:
        raise BadUsage(f"{archive} is damaged: it has no table of contents")
    is_large = end[max(0, at - 20) :].startswith(b"PK\x06\x07")  # The table that counts is then another one.
    if is_large or struct.unpack_from("<I", end, at + 12)[0] > most_bytes:
        raise BadUsage(f"it has more than {most_files:_} files and directories: it is not installed")


@contextmanager
def reading_zip(archive: str, file: IO[bytes]) -> Iterator[ZipFile]:
    """An open zip file; whatever is wrong with it is `BadUsage`."""
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
        raise damaged(archive, error) from error


def require_plain(info: ZipInfo) -> None:
    """A regular file, packed in a way that every machine unpacks."""
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise is_special(info.filename)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadUsage(
            f"`{shown(info.filename[:200])}` is packed by a method that is not taken in",
            hint="pack it again with `zip`, or as a .tar.gz",
        )


def is_special(name: str) -> BadUsage:
    """What is said of a link, a device or a pipe."""
    return BadUsage(
        f"`{shown(name[:200])}` is neither a regular file nor a directory: it is not installed",
        hint="links, devices and pipes are not taken from archives",
    )


def damaged(archive: str, error: Exception) -> BadUsage:
    """What is said of an archive that nobody can read."""
    return BadUsage(f"{archive} cannot be unpacked: {str(error)[:200]}")
