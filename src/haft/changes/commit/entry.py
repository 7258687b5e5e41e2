"""The exact state of one path: its kind, its content, and everything that undo must restore.

`read_entry` reads an `Entry` from the disk, manifests keep it, and it is compared with the disk later. Two entries are
equal if everything that haft promises to restore is equal; the inode does not count.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Final

from haft.contracts import ChangeKind
from haft.values import dataclass, replace

UNREADABLE: Final = "unreadable"
"""The digest of a file that may not be read: only its size and times are compared."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The state of a path."""

    kind: ChangeKind
    mode: int
    """Permission bits; for `other` with the file type."""
    uid: int
    gid: int
    size: int = 0
    """Files only."""
    mtime_ns: int = 0
    """Files only; other times are not restored."""
    content: str | None = None
    """Files: the digest. Links: the target, as written. Devices: the device number."""
    inode: int = 0
    """The inode, for comparisons soon after; not part of the state."""
    links: int = 1
    """How many names (hard links) the file had."""
    ctime_ns: int = 0
    """The last change of any kind, for comparisons soon after; 0 if haft itself may have changed the file."""
    attributes: str | None = None
    """The extended attributes, as `attributes` writes them; None if unknown."""

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"

    def is_like(self, other: Entry | None) -> bool:
        """Whether both states look the same to a reader of the tree."""
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
        # A link has no mode that could be set.
        return Entry(kind, 0o777, status.st_uid, status.st_gid, content=content, inode=status.st_ino)
    return Entry(kind, status.st_mode, status.st_uid, status.st_gid, content=str(status.st_rdev), inode=status.st_ino)
