"""Unpacks a ZIP of templates into an empty folder, as if its author were malicious.

It refuses paths that lead out of the folder, entries that are not regular files or directories, different names that
are the same name for some file systems, and encrypted entries. It also refuses an archive with too many files, and one
that unpacks to too many bytes: in total, or in relation to the size of the archive. Nothing is run, and no content is
checked.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from typing import IO, TYPE_CHECKING, Final

from haft.authoring.archives.bounded_folder import DEEPEST, BoundedFolder, Readable, checked_path
from haft.authoring.archives.zip_files import (
    open_archive,
    read_zip,
    require_plain,
    require_short_directory,
    special_file_error,
)
from haft.authoring.studio.template_files import BOUNDS, is_litter
from haft.contracts import BadUsage
from haft.files import shown

if TYPE_CHECKING:
    from zipfile import ZipInfo

MOST_RATIO: Final = 100
"""How many unpacked bytes each byte of the archive may have."""
ALWAYS: Final = 1_000_000
"""So many unpacked bytes are allowed even if the archive is small."""
MOST_DIRECTORY: Final = 2_000_000
"""How many bytes the table of contents of the archive may have."""
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_DRIVE: Final = re.compile(r"[A-Za-z]:")


def fold_path(path: str) -> str:
    """The path without differences of case and Unicode normalization. If two paths are the same path for some file
    systems, this function returns the same text for both."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def unpack(archive: str, folder: str) -> None:
    """Unpack a ZIP into a folder that only the caller uses. Environments, caches and version control are left out."""
    with open_archive(archive, BOUNDS.bytes) as file:
        if file.read(2) != b"PK":
            raise BadUsage(f"{shown(archive)} is not a ZIP", hint="`haft templates pack` makes one")
        require_short_directory(archive, file, BOUNDS.files, MOST_DIRECTORY)
        _unpack(archive, file, BoundedFolder(folder, BOUNDS))


def _unpack(archive: str, file: IO[bytes], bounded_folder: BoundedFolder) -> None:
    seen = _Seen()
    ratio = _Ratio(os.fstat(file.fileno()).st_size)
    with read_zip(archive, file) as found:
        for info in found.infolist():
            path = _path(info)
            if is_litter(path):
                continue
            seen.take(path, is_directory=info.is_dir())
            mode = info.external_attr >> 16
            if info.is_dir():
                if stat.S_IFMT(mode) not in (0, stat.S_IFDIR):
                    raise special_file_error(info.filename)
                bounded_folder.directory(path)
                continue
            require_plain(info)
            if info.flag_bits & _ENCRYPTED:
                raise BadUsage(f"`{shown(path)}` is encrypted: it is not installed")
            with found.open(info) as content:
                bounded_folder.file(path, ratio.counting(content), mode)


def _path(info: ZipInfo) -> str:
    """The checked path of an entry."""
    if "\0" in info.orig_filename or _DRIVE.match(info.filename):
        raise BadUsage(f"it holds the invalid name `{shown(info.orig_filename[:200])}`: it is not installed")
    path = checked_path(info.filename)
    assert path is not None
    if path.count("/") >= DEEPEST:
        raise BadUsage(f"`{shown(path[:200])}` is nested too deep: it is not installed")
    return path


class _Seen:
    """The paths of the entries so far, and of their parent directories. Refuses a path if it differs from an earlier
    one, but is the same path for some file systems."""

    def __init__(self) -> None:
        self._spelled: dict[str, str] = {}
        self._files: set[str] = set()
        self._above: set[str] = set()

    def take(self, path: str, *, is_directory: bool) -> None:
        names = path.split("/")
        for end in range(1, len(names) + 1):
            one = "/".join(names[:end])
            key = fold_path(one)
            is_file = end == len(names) and not is_directory
            known = self._spelled.setdefault(key, one)
            if known != one:
                raise BadUsage(
                    f"`{shown(known)}` and `{shown(one)}` are the same name on other machines: it is not installed"
                )
            if key in self._files or (is_file and key in self._above):
                raise BadUsage(f"`{shown(one)}` is in it twice: it is not installed")
            (self._files if is_file else self._above).add(key)


class _Ratio:
    """Limits the unpacked bytes in relation to the size of the archive."""

    def __init__(self, size: int) -> None:
        self._left = max(ALWAYS, size * MOST_RATIO)

    def counting(self, content: Readable) -> Readable:
        return _Counting(self, content)

    def came(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise BadUsage(f"it unpacks to more than {MOST_RATIO} times its size: it is not installed")


class _Counting:
    """A file whose bytes are counted while they are read."""

    def __init__(self, ratio: _Ratio, content: Readable) -> None:
        self._ratio = ratio
        self._content = content

    def read(self, size: int, /) -> bytes:
        piece = self._content.read(size)
        self._ratio.came(len(piece))
        return piece
