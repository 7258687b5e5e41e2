"""Making things anew from their entries: where no original can be moved back, a copy is made from the store."""

from __future__ import annotations

import contextlib
import os

from haft.changes.committing.attributes import set_attributes
from haft.changes.committing.entry import Entry
from haft.changes.committing.places import Tree, set_mode, set_owner, set_time
from haft.changes.store.blobs import Blobs


class Stage:
    """A directory below the area in which things are made."""

    def __init__(self, area: str, directory: str, blobs: Blobs) -> None:
        self._area = area
        self._directory = directory
        self._blobs = blobs
        self._count = 0
        self.unset: list[str] = []
        """Extended attributes that could not be given back."""

    def make(self, wanted: Entry, joined: str | None = None) -> str:
        """Make it, exactly, and say where below the area it lies. `joined` is where the file was made already that this
        is to be another name of."""
        os.makedirs(os.path.join(self._area, self._directory), mode=0o700, exist_ok=True)
        place = f"{self._directory}/{self._count}"
        self._count += 1
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self._area, place))
        with Tree(self._area) as ours:
            where, name = ours.at(place)
            if joined is not None:
                source, known = ours.at(joined)
                os.link(known, name, src_dir_fd=source, dst_dir_fd=where, follow_symlinks=False)
                return place
            if wanted.kind == "file":
                assert wanted.content is not None
                descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=where)
                try:
                    self._blobs.write_to(wanted.content, descriptor)
                finally:
                    os.close(descriptor)
            elif wanted.kind == "link":
                os.symlink(wanted.content or "", name, dir_fd=where)
            else:
                os.mknod(name, wanted.mode, int(wanted.content or 0), dir_fd=where)
            set_owner(ours, place, wanted.uid, wanted.gid)
            # After the owner, which takes capabilities away, and before the mode, which may forbid it.
            self.unset += set_attributes(ours.where(place), wanted.attributes)
            if wanted.kind != "link":
                set_mode(ours, place, wanted.mode & 0o7777)
            if wanted.kind == "file":
                set_time(ours, place, wanted.mtime_ns)
        return place
