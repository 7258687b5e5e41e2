"""Unpacks an archive of skills into an empty folder: only regular files and directories.

Names are checked before a file is created, and sizes are counted while reading, since an archive can lie about them.
Everything that is neither a file nor a directory is refused. Nothing is run. Only the caller may use the folder.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, Final

from haft.authoring.archives import bounded_folder, zip_files
from haft.authoring.archives.bounded_folder import Bounds
from haft.contracts import BadUsage

MOST_FILES: Final = 1_000
MOST_BYTES: Final = 50_000_000
_MOST_DIRECTORY: Final = 1_000_000
"""How many bytes the table of contents of a ZIP may have. The whole table is read before anything can be counted."""
_MOST_HEADERS: Final = 10_000_000

LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", "__MACOSX", ".DS_Store", "__pycache__", "node_modules"})
"""Names that are never part of a skill: version control, caches, and files of desktops."""


class BoundedFolder(bounded_folder.BoundedFolder):
    """An empty folder that is filled with skills, within the bounds for skills."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, Bounds(MOST_FILES, MOST_BYTES))


def checked_path(path: str) -> str | None:
    """The path in its plain form; None if a name in it is in `LEFT_OUT`. Raises `BadUsage` if the path could leave its
    folder."""
    return bounded_folder.checked_path(path, LEFT_OUT)


def unpack(archive: str, folder: str) -> None:
    """Unpack a .zip, .tar or .tar.gz. The first bytes of the file tell which of these formats it has."""
    into = BoundedFolder(folder)
    with zip_files.open_archive(archive, MOST_BYTES) as file:
        beginning = file.read(512)
        file.seek(0)
        if beginning.startswith(b"PK"):
            _unpack_zip(archive, file, into)
        elif beginning.startswith(b"\x1f\x8b") or beginning[257:262] == b"ustar":
            _unpack_tar(archive, file, into, is_packed=beginning.startswith(b"\x1f\x8b"))
        else:
            raise BadUsage(
                f"{archive} is neither a folder nor an archive",
                hint="give a folder with a SKILL.md, a .zip or a .tar.gz",
            )


def _unpack_zip(archive: str, file: IO[bytes], folder: BoundedFolder) -> None:
    zip_files.require_short_directory(archive, file, MOST_FILES, _MOST_DIRECTORY)
    with zip_files.read_zip(archive, file) as opened:
        for info in opened.infolist():
            path = checked_path(info.filename)
            if path is None:
                continue
            if info.is_dir():
                folder.directory(path)
                continue
            zip_files.require_plain(info)
            with opened.open(info) as content:
                folder.file(path, content, info.external_attr >> 16)


class _Bounded:
    """A stream that raises an error if it has more bytes than may be installed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left = MOST_BYTES + _MOST_HEADERS

    def read(self, size: int) -> bytes:
        piece: bytes = self._stream.read(min(size, self._left + 1))
        self._left -= len(piece)
        if self._left < 0:
            raise BadUsage(f"it has more than {MOST_BYTES:_} bytes: it is not installed")
        return piece


def _unpack_tar(archive: str, file: IO[bytes], folder: BoundedFolder, *, is_packed: bool) -> None:
    try:
        for member, content in _members(file, is_packed=is_packed):
            path = checked_path(member.name)
            if path is None:
                continue
            if member.isdir():
                folder.directory(path)
            elif not member.isreg() or content is None:
                raise zip_files.special_file_error(member.name)
            else:
                folder.file(path, content, member.mode)
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, OverflowError, RecursionError) as error:
        raise zip_files.damaged_error(archive, error) from error


def _members(file: IO[bytes], *, is_packed: bool) -> Iterator[tuple[Any, Any]]:
    stream: Any = _Bounded(gzip.GzipFile(fileobj=file) if is_packed else file)
    # `r|` reads once from front to back, so that the bound applies to headers too.
    with tarfile.open(fileobj=stream, mode="r|") as opened:
        for member in opened:
            if member.name in ("", ".", "./"):
                continue
            yield member, opened.extractfile(member) if member.isreg() else None
