"""Making files anew from their entries: if no original can be moved back, a copy is made from the blob store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Final

from haft.changes.commit.attributes import set_attributes
from haft.changes.commit.entry import Entry
from haft.changes.commit.tree import Tree, set_mode, set_owner
from haft.changes.store.blobs import Blobs

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Rebuilder:
    """Makes files in `directory`, a path relative to the area. Call `close` at the end."""

    def __init__(self, area: str, directory: str, blobs: Blobs) -> None:
        self._area = area
        self._directory = directory
        self._blobs = blobs
        self._count = 0
        self._opened: Tree | None = None
        self.unset_attributes: list[str] = []
        """Names of extended attributes that could not be restored."""

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def make(self, wanted: Entry, link_to: str | None = None) -> str:
        """Make a file, link or device with exactly this state, and return its place. If `link_to` is given, only make a
        hard link to the file at the place `link_to`."""
        place = self._next()
        if link_to is None:
            self._make(place, wanted)
            return place
        where, name = self._ours.at(place)
        held = os.dup(where)  # The next call of `at` may close the descriptor.
        try:
            source, known = self._ours.at(link_to)
            os.link(known, name, src_dir_fd=source, dst_dir_fd=held, follow_symlinks=False)
        finally:
            os.close(held)
        return place

    def make_tree(self, wanted: Entry, below: Sequence[tuple[str, Entry]]) -> tuple[str, dict[str, int]]:
        """Make a directory with all its content, so that one rename can move everything to the workspace. `below` lists
        the content by relative paths, each directory before its own content. Returns the place of the directory, and
        the inodes of its files by relative path."""
        place = self._next()
        inodes: dict[str, int] = {}
        directories = [(place, wanted)]
        self._make_directory(place)
        for path, entry in below:
            inner = f"{place}/{path}"
            if entry.is_directory:
                self._make_directory(inner)
                directories.append((inner, entry))
            elif (inode := self._make(inner, entry)) is not None:
                inodes[path] = inode
        for inner, entry in reversed(directories):  # At the end, because a read-only directory could not be filled.
            self._set_metadata(inner, entry)
        self._ours.forget()
        return place, inodes

    @property
    def _ours(self) -> Tree:
        if self._opened is None:
            os.makedirs(os.path.join(self._area, self._directory), mode=0o700, exist_ok=True)
            self._opened = Tree(self._area)
        return self._opened

    def _next(self) -> str:
        place = f"{self._directory}/{self._count}"
        self._count += 1
        where, name = self._ours.at(place)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=where)
        return place

    def _make_directory(self, place: str) -> None:
        where, name = self._ours.at(place)
        os.mkdir(name, 0o700, dir_fd=where)

    def _make(self, place: str, wanted: Entry) -> int | None:
        """Make one file, link or device. Returns the inode of a file, and None for a link or device."""
        where, name = self._ours.at(place)
        if wanted.kind == "file":
            descriptor = os.open(name, _NEW, 0o600, dir_fd=where)
            try:
                return self._fill(descriptor, wanted)
            finally:
                os.close(descriptor)
        if wanted.kind == "link":
            os.symlink(wanted.content or "", name, dir_fd=where)
        else:
            os.mknod(name, wanted.mode, int(wanted.content or 0), dir_fd=where)
        self._set_metadata(place, wanted)
        return None

    def _fill(self, descriptor: int, wanted: Entry) -> int:
        """Write content and metadata into a new file, and return its inode. Uses few system calls, because an undo may
        make very many files."""
        assert wanted.content is not None
        self._blobs.write_to(wanted.content, descriptor)
        found = os.fstat(descriptor)
        if (found.st_uid, found.st_gid) != (wanted.uid, wanted.gid):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, wanted.uid, wanted.gid)
        # After `fchown`, which removes capabilities. Before `fchmod`, because the new mode may forbid it.
        self.unset_attributes += set_attributes(descriptor, wanted.attributes)
        os.fchmod(descriptor, wanted.mode & 0o7777)
        os.utime(descriptor, ns=(found.st_atime_ns, wanted.mtime_ns))
        return found.st_ino

    def _set_metadata(self, place: str, wanted: Entry) -> None:
        set_owner(self._ours, place, wanted.uid, wanted.gid)
        self.unset_attributes += set_attributes(self._ours.proc_path(place), wanted.attributes)
        if wanted.kind != "link":
            set_mode(self._ours, place, wanted.mode & 0o7777)
