"""The exact state of one path: its kind, its content, and everything that undo must restore.

`read_entry` reads an `Entry` from the disk, and manifests store entries. Later, haft compares a stored entry with the
disk by `is_like`. Everything that haft promises to restore must be equal; the inode does not count.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Final

from haft.contracts import ChangeKind
from haft.values import dataclass, replace

UNREADABLE: Final = "unreadable"
"""Stands for the digest of a file that could not be read: only its size and times are compared."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The state of a path."""

    kind: ChangeKind
    mode: int
    """The permission bits; for an entry of kind `other`, together with the file type."""
    uid: int
    gid: int
    size: int = 0
    """Files only."""
    mtime_ns: int = 0
    """Files only. For other kinds, times are not restored."""
    content: str | None = None
    """Files: the digest. Links: the target, as written. Devices: the device number."""
    inode: int = 0
    """The inode, to recognize a file soon after; not part of the state."""
    links: int = 1
    """How many names (hard links) the file had."""
    ctime_ns: int = 0
    """The ctime of a file, for comparisons soon after; 0 if it is of no use, because the file has other hard links or
    haft changed its mode to read it."""
    attributes: str | None = None
    """The extended attributes, as text of the module `attributes`; None if unknown."""

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"

    def is_like(self, other: Entry | None) -> bool:
        """Whether both states are the same in everything that haft restores. Unknown content or attributes count as the
        same."""
        return (
            other is not None
            and self.kind == other.kind
            and self.mode == other.mode
            and (self.content == other.content or (self.kind == "file" and UNREADABLE in (self.content, other.content)))
            and self.size == other.size
            and self.mtime_ns == other.mtime_ns
            and (self.uid, self.gid) == (other.uid, other.gid)
            and (self.attributes == other.attributes or None in (self.attributes, other.attributes))
        )

    def to_json(self) -> list[Any]:
        return [
            self.kind, self.mode, self.uid, self.gid, self.size, self.mtime_ns, self.content, self.inode, self.links,
            self.ctime_ns, self.attributes,
        ]  # fmt: skip

    @classmethod
    def from_json(cls, words: list[Any] | None) -> Entry | None:
        return None if words is None else cls(*words)


def kind_of(mode: int) -> ChangeKind:
    """The kind of a file, from its mode."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def entry_from(status: os.stat_result, content: str | None = None, attributes: str | None = None) -> Entry:
    """An entry from a stat result; `content` is the digest of a file or the target of a link."""
    entry = _entry_from(status, content)
    return entry if attributes is None else replace(entry, attributes=attributes)


def _entry_from(status: os.stat_result, content: str | None) -> Entry:
    kind = kind_of(status.st_mode)
    if kind == "file":
        return Entry(
            kind,
            stat.S_IMODE(status.st_mode),
            status.st_uid,
            status.st_gid,
            status.st_size,
            status.st_mtime_ns,
            content,
            status.st_ino,
            status.st_nlink,
            status.st_ctime_ns if status.st_nlink == 1 else 0,
        )
    if kind == "directory":
        return Entry(kind, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, inode=status.st_ino)
    if kind == "link":
        # The mode of a link cannot be set, so it must not differ.
        return Entry(kind, 0o777, status.st_uid, status.st_gid, content=content, inode=status.st_ino)
    return Entry(kind, status.st_mode, status.st_uid, status.st_gid, content=str(status.st_rdev), inode=status.st_ino)
