"""The state of one path, exactly: what it is, what it holds, and everything that an undo has to bring back.

An `Entry` is taken from the disk by `looking`, kept in manifests, and compared with what lies there later. Two entries
are the same when nothing that is promised to be exact differs; who the file's inode is does not count."""

from __future__ import annotations

import os
import stat
from typing import Any, Final

from haft.contracts import ChangeKind
from haft.values import dataclass, replace

UNREADABLE: Final = "unreadable"
"""The digest of a file whose content may not be read: its size and times have to do."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What lies at a path."""

    kind: ChangeKind
    mode: int
    """Permission bits; for `other` with the file type."""
    uid: int
    gid: int
    size: int = 0
    """Of files."""
    mtime_ns: int = 0
    """Of files; other times are not promised."""
    content: str | None = None
    """Files: the digest. Links: where they lead, as it stands. Devices: their number."""
    inode: int = 0
    """Which one it was, for those who look soon enough; no part of its state."""
    links: int = 1
    """How many names the file had."""
    ctime_ns: int = 0
    """When it changed last in any way, for those who look soon enough; 0 where we may have changed it ourselves."""
    attributes: str | None = None
    """The extended ones, as `attributes` writes them; None where they are not known."""

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"

    def is_like(self, other: Entry | None) -> bool:
        """Whether both are the same to whoever looks at the tree."""
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
    """What lies there, by its mode."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def entry_from(status: os.stat_result, content: str | None = None, attributes: str | None = None) -> Entry:
    """The entry of what `status` tells of; `content` is the digest of a file or the target of a link."""
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
        # A link has no mode of its own that could be set.
        return Entry(kind, 0o777, status.st_uid, status.st_gid, content=content, inode=status.st_ino)
    return Entry(kind, status.st_mode, status.st_uid, status.st_gid, content=str(status.st_rdev), inode=status.st_ino)
