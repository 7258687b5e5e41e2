"""Unpacking an archive of skills into an empty folder: regular files and directories, and nothing that leads anywhere.

Names are taken apart before anything is made of them, sizes are counted as they come, not as they are claimed, and
whatever is neither file nor directory is refused. Nothing is run. The folder is the caller's own and nobody else's.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from typing import IO, Any, Final, Protocol

from haft.authoring.directories import make_directory
from haft.contracts import BadUsage
from haft.files import shown

MOST_FILES: Final = 1_000
MOST_BYTES: Final = 50_000_000
DEEPEST: Final = 30
_MOST_DIRECTORY: Final = 1_000_000
"""Bytes of a zip archive's table of contents: read whole before anything can be counted."""
_MOST_HEADERS: Final = 10_000_000
_PIECE: Final = 1 << 20
_LONGEST_PATH: Final = 1_000
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", "__MACOSX", ".DS_Store", "__pycache__", "node_modules"})
"""What is no part of a skill wherever it lies: hooks and histories, caches, litter."""


class Readable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes: ...


class Filling:
    """An empty folder that is filled, and how much there is in it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._files = 0
        self._bytes = 0
        self._made = {""}

    def directory(self, path: str) -> None:
        """Make a directory, and those above it: each of them counts."""
        names = path.split("/")
        if len(names) > DEEPEST:
            raise BadUsage(f"`{shown(path[:200])}` lies too deep: it is not installed")
        for end in range(1, len(names) + 1):
            above = "/".join(names[:end])
            if above not in self._made:
                self._count()
                try:
                    make_directory(os.path.join(self.folder, above))
                except (FileExistsError, NotADirectoryError):
                    raise BadUsage(f"`{shown(above)}` is both a file and a directory: it is not installed") from None
                self._made.add(above)

    def file(self, path: str, content: Readable, mode: int) -> None:
        """Write a file. Of its mode only the run bit is kept."""
        if os.path.dirname(path):
            self.directory(os.path.dirname(path))
        self._count()
        target = os.path.join(self.folder, path)
        try:
            descriptor = os.open(target, _NEW, 0o755 if mode & stat.S_IXUSR else 0o644)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise BadUsage(f"`{shown(path)}` is in it twice: it is not installed") from None
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | (mode & stat.S_IXUSR) | 0o600)
            while piece := content.read(_PIECE):
                self._bytes += len(piece)
                if self._bytes > MOST_BYTES:
                    raise BadUsage(f"it has more than {MOST_BYTES:_} bytes: it is not installed")
                file.write(piece)

    def _count(self) -> None:
        self._files += 1
        if self._files > MOST_FILES:
            raise BadUsage(f"it has more than {MOST_FILES:_} files and directories: it is not installed")


def checked_path(path: str) -> str | None:
    """A relative path that stays beneath, with `/` between names; None for what is left out."""
    names = [name for name in path.rstrip("/").split("/") if name != "."]
    if (
        not names
        or len(path) > _LONGEST_PATH
        or "\\" in path
        or not path.isprintable()
        or any(name in ("", "..") or len(os.fsencode(name)) > 255 for name in names)
    ):
        raise BadUsage(f"it holds the name `{shown(path[:200])}`, which could leave its folder: it is not installed")
    return None if LEFT_OUT.intersection(names) else "/".join(names)


def unpack(archive: str, folder: str) -> None:
    """Unpack a .zip, .tar or .tar.gz. What it is, its first bytes say."""
    filling = Filling(folder)
    try:
        file = _opened(archive)
    except OSError as error:
        raise BadUsage(f"{archive} cannot be read: {(error.strerror or str(error)).lower()}") from error
    with file:
        beginning = file.read(512)
        file.seek(0)
        if beginning.startswith(b"PK"):
            _unpack_zip(archive, file, filling)
        elif beginning.startswith(b"\x1f\x8b") or beginning[257:262] == b"ustar":
            _unpack_tar(archive, file, filling, is_packed=beginning.startswith(b"\x1f\x8b"))
        else:
            raise BadUsage(
                f"{archive} is neither a folder nor an archive", hint="a folder with a SKILL.md, a .zip or a .tar.gz"
            )


def _opened(path: str) -> IO[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        file.close()
        what = f"larger than {MOST_BYTES:_} bytes" if stat.S_ISREG(status.st_mode) else "no regular file"
        raise BadUsage(f"{path} is {what}: it is not installed")
    return file


def _unpack_zip(archive: str, file: IO[bytes], filling: Filling) -> None:
    import zipfile
    import zlib

    _require_short_directory(archive, file)
    try:
        with zipfile.ZipFile(file) as opened:
            for info in opened.infolist():
                mode = info.external_attr >> 16
                kind = stat.S_IFMT(mode)
                path = checked_path(info.filename)
                if path is None:
                    continue
                if info.is_dir():
                    filling.directory(path)
                elif kind not in (0, stat.S_IFREG):
                    raise _is_special(info.filename)
                elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise BadUsage(
                        f"`{shown(info.filename[:200])}` is packed by a method that is not taken in",
                        hint="pack it again with `zip`, or as a .tar.gz",
                    )
                else:
                    with opened.open(info) as content:
                        filling.file(path, content, mode)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        struct.error,
    ) as error:
        raise _damaged(archive, error) from error


def _require_short_directory(archive: str, file: IO[bytes]) -> None:
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - 65_600))
    end = file.read()
    file.seek(0)
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or len(end) < at + 22:
        raise BadUsage(f"{archive} is damaged: it has no table of contents")
    is_large = end[max(0, at - 20) :].startswith(b"PK\x06\x07")  # The table that counts is then another one.
    if is_large or struct.unpack_from("<I", end, at + 12)[0] > _MOST_DIRECTORY:
        raise BadUsage(f"it has more than {MOST_FILES:_} files and directories: it is not installed")


class _Bounded:
    """A stream that ends with an error where it is longer than anything that would be installed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left = MOST_BYTES + _MOST_HEADERS

    def read(self, size: int) -> bytes:
        piece: bytes = self._stream.read(min(size, self._left + 1))
        self._left -= len(piece)
        if self._left < 0:
            raise BadUsage(f"it has more than {MOST_BYTES:_} bytes: it is not installed")
        return piece


def _unpack_tar(archive: str, file: IO[bytes], filling: Filling, *, is_packed: bool) -> None:
    import tarfile
    import zlib

    try:
        for member, content in _members(file, is_packed=is_packed):
            path = checked_path(member.name)
            if path is None:
                continue
            if member.isdir():
                filling.directory(path)
            elif not member.isreg() or content is None:
                raise _is_special(member.name)
            else:
                filling.file(path, content, member.mode)
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, OverflowError, RecursionError) as error:
        raise _damaged(archive, error) from error


def _members(file: IO[bytes], *, is_packed: bool) -> Iterator[tuple[Any, Any]]:
    import gzip
    import tarfile

    stream: Any = _Bounded(gzip.GzipFile(fileobj=file) if is_packed else file)
    # `r|`: read once from front to back, so that the bound holds for headers too.
    with tarfile.open(fileobj=stream, mode="r|") as opened:
        for member in opened:
            if member.name in ("", ".", "./"):
                continue
            yield member, opened.extractfile(member) if member.isreg() else None


def _is_special(name: str) -> BadUsage:
    return BadUsage(
        f"`{shown(name[:200])}` is neither a regular file nor a directory: it is not installed",
        hint="links, devices and pipes are not taken from archives",
    )


def _damaged(archive: str, error: Exception) -> BadUsage:
    return BadUsage(f"{archive} cannot be unpacked: {str(error)[:200]}")
