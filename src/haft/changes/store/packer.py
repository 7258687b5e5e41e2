"""Packing: moves originals of older runs into the blob store, if that saves space.

`packable` says which originals may be packed, `maintenance` says when. An original is removed under the workspace lock,
only after its blob is synced to disk, and only if the original is unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from haft.changes.commit.area import Area
from haft.changes.commit.journal import OUT
from haft.changes.commit.manifest import Manifest
from haft.changes.commit.tree import Tree
from haft.changes.ledger import Row
from haft.changes.store.blob_encoding import (
    PIECE,
    DamagedBlob,
    beginning_of,
    digest_of_descriptor,
    hashed,
    new_hasher,
    pays,
)
from haft.changes.store.blobs import Blobs
from haft.changes.store.packable import Original, PackableFinder, places_of
from haft.changes.store.workspace_locks import lock_workspaces

DONE: Final = "packed"
"""The name of an empty file in a run's directory, which says that the run was packed: the other originals stay."""
_BLOCK: Final = 4096
_BATCH_FILES: Final = 500
_BATCH_BYTES: Final = 64_000_000


@dataclass(slots=True)
class PackResult:
    """The number of originals that were packed, and their bytes."""

    files: int = 0
    bytes: int = 0
    """The bytes of the removed originals on disk. The bytes of their new blobs are not subtracted."""


class Packer:
    """Packs the originals of one workspace."""

    def __init__(self, area: Area, blobs: Blobs, patience: float, stopped: Callable[[], bool]) -> None:
        self._area = area
        self._blobs = blobs
        self._patience = patience
        self._stopped = stopped
        self._sound: set[str] = set()
        self._finder = PackableFinder()
        self._times: Counter[str] = Counter()
        """By the start of a digest: how many originals have this content."""
        self.packed = PackResult()

    def pack(self, rows: Iterable[Row]) -> None:
        """Pack the originals of these runs of the workspace. Raises `Busy` if another process keeps the workspace
        locked."""
        waiting = [row for row in rows if not os.path.exists(os.path.join(self._area.kept, row.run, DONE))]
        for row in waiting:
            manifest = self._manifest(row)
            if manifest is not None:
                self._times.update(_short(each.before.content) for each in manifest.entries if each.before is not None)
        for row in waiting:
            manifest = self._manifest(row)
            if manifest is None:
                continue
            with Tree(self._area.path) as ours:
                originals = self._finder.originals(ours, row.run, manifest)
            for batch in _batches(originals):
                if self._stopped():
                    return
                self._take_in([each for each in batch if self._pays(each)])
            self._tidy(row, manifest)

    def _manifest(self, row: Row) -> Manifest | None:
        return Manifest.read(os.path.join(self._area.kept, row.run))

    def _pays(self, each: Original) -> bool:
        """Whether packing an original frees space: its blob exists already, several originals have this content, or
        compression makes it smaller."""
        content = each.entry.content
        assert content is not None
        if not each.entry.size or self._blobs.has(content) or self._times[_short(content)] > 1:
            return True
        if each.status.st_blocks * 512 <= _BLOCK:
            return False
        with contextlib.suppress(OSError), self._opened(each) as descriptor:
            return pays(beginning_of(descriptor, 1 << 16))
        return False

    # Storing and removing.

    def _take_in(self, batch: list[Original]) -> None:
        safe = [each for each in batch if self._keep(each)]
        if not safe:
            return
        self._blobs.sync()
        with lock_workspaces([self._area], self._patience, self._stopped), Tree(self._area.path) as ours:
            for each in safe:
                with contextlib.suppress(OSError):
                    self._remove(ours, each)

    def _keep(self, each: Original) -> bool:
        """Store the content of an original. Returns whether the blob store has the complete content now."""
        content = each.entry.content
        assert content is not None
        try:
            if self._is_sound(content):
                return True
            with self._opened(each) as descriptor:
                if digest_of_descriptor(descriptor, self._stopped) != content:
                    return False  # A program wrote to the file after it was replaced.
                kept = self._blobs.put(descriptor, each.status.st_size, self._stopped) == content
                if kept:
                    self._sound.add(content)
                return kept
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            return False

    def _is_sound(self, digest: str) -> bool:
        """Whether a blob exists and matches its digest. A damaged blob is removed, so that it can be stored anew."""
        if digest in self._sound:
            return self._blobs.has(digest)
        if not self._blobs.has(digest):
            return False
        hasher = new_hasher()
        try:
            with self._blobs.open(digest) as file:
                for _piece in hashed(iter(lambda: file.read(PIECE), b""), hasher):
                    pass
            sound = hasher.hexdigest() == digest
        except DamagedBlob:
            sound = False
        if sound:
            self._sound.add(digest)
        else:
            self._blobs.remove(digest)
        return sound

    @contextlib.contextmanager
    def _opened(self, each: Original) -> Iterator[int]:
        with Tree(self._area.path) as ours:
            descriptor = ours.read(each.place)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _remove(self, ours: Tree, each: Original) -> None:
        content = each.entry.content
        now = ours.status(each.place)
        if now is None or content is None or not self._blobs.has(content):
            return
        if (now.st_ino, now.st_ctime_ns, now.st_nlink) != (each.status.st_ino, each.status.st_ctime_ns, 1):
            return
        place, name = ours.at(each.place)
        os.unlink(name, dir_fd=place)
        self.packed.files += 1
        self.packed.bytes += now.st_blocks * 512

    def _tidy(self, row: Row, manifest: Manifest) -> None:
        """Remove original directories whose files were all packed, then mark the run as packed."""
        before = {each.path: each.before for each in manifest.entries}
        with lock_workspaces([self._area], self._patience, self._stopped), Tree(self._area.path) as ours:
            for place, path in places_of(row.run, manifest):
                with contextlib.suppress(OSError):
                    for inner, here in self._finder.empty_tree(ours, place, path, before):
                        where, name = ours.at(inner)
                        (os.rmdir if stat.S_ISDIR(here.st_mode) else os.unlink)(name, dir_fd=where)
                ours.forget()
            with contextlib.suppress(OSError):
                where, name = ours.at(f"kept/{row.run}/{DONE}")
                os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=where))
                os.rmdir(OUT, dir_fd=where)  # Fails if originals remain, which is fine.


def _short(content: str | None) -> str:
    return (content or "")[:12]


def _batches(originals: list[Original]) -> Iterator[list[Original]]:
    """The originals in small batches, so that each batch is synced soon and the lock is held briefly."""
    batch: list[Original] = []
    size = 0
    for each in originals:
        batch.append(each)
        size += each.status.st_size
        if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
