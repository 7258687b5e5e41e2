"""File contents by digest, each stored once, and compressed if that saves space.

The snapshot engine stores the content of files here, and undo and diff read it. A blob is complete or absent: it is
written under another name (`tmp-…`) and then renamed. `put` does not sync: a caller who needs the blob to survive a
power failure calls `sync`. An empty file that a power failure left does not count as a blob. `write_to`, which undo
uses, checks the content against the digest.

    <directory>/ab/cdef…      as it is
    <directory>/ab/cdef….z    compressed
    <directory>/removed       grows with every removal

This module does not know who still needs a blob: the caller of `remove` must know.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, cast

from haft.changes.store.blob_encoding import (
    PIECE,
    DamagedBlob,
    DecompressingReader,
    beginning_of,
    compressed,
    digest_of_descriptor,
    hashed,
    is_sparse,
    new_hasher,
    pays,
    pieces_of,
    write_all,
    write_compressed,
    write_sparse,
)
from haft.files import digest_of, sync_filesystem

__all__ = ["Blobs", "DamagedBlob"]

_SMALL: Final = 1 << 20
"""Content up to this size is read into memory at once."""
_EMPTY: Final = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_CLONE: Final = 0x40049409  # FICLONE
_TEMPORARY: Final = "tmp-"
_REMOVED: Final = "removed"
_STALE: Final = 3600


class Blobs:
    """A blob store in its own directory. Any number of processes may use it at once."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._cannot_clone: set[int] = set()

    def put(self, descriptor: int, size: int, stopped: Callable[[], bool] | None = None) -> str:
        """Store the content of an open regular file of about `size` bytes, and return the digest of the stored
        content."""
        if size <= _SMALL:
            content = beginning_of(descriptor, size + 1)
            if len(content) <= size:
                return self.put_bytes(content)
        # Compute the digest before writing: content that is already stored then needs no extra space.
        digest = digest_of_descriptor(descriptor, stopped)
        return digest if self.has(digest) else self._copy(descriptor, stopped)

    def put_bytes(self, content: bytes) -> str:
        digest = digest_of(content)
        if not self.has(digest):
            smaller = compressed(content)
            with self._temporary() as (target, place):
                if smaller is None:
                    write_sparse([content], target)
                else:
                    write_all(target, smaller)
                self._settle(place, digest, ".z" if smaller is not None else "")
        return digest

    def has(self, digest: str) -> bool:
        return self._find(digest) is not None

    def open(self, digest: str) -> BinaryIO:
        """The content as a stream, without a check against the digest. Raises `FileNotFoundError` if the blob is
        missing."""
        return cast(BinaryIO, io.BufferedReader(self._raw(digest)))

    def write_to(self, digest: str, descriptor: int) -> None:
        """Write the content into an open, empty file; blocks of zeros become holes. Raises `DamagedBlob` if the content
        does not match the digest: the file is then useless."""
        hasher = new_hasher()
        with self.open(digest) as file:
            write_sparse(hashed(iter(lambda: file.read(PIECE), b""), hasher), descriptor)
        if hasher.hexdigest() != digest:
            raise DamagedBlob(digest)

    def read(self, digest: str, most: int | None = None) -> bytes:
        """The content, or its first `most` bytes. If the whole content is read and does not match the digest, raises
        `DamagedBlob`."""
        with self.open(digest) as file:
            content = file.read() if most is None else file.read(most)
        if most is None and digest_of(content) != digest:
            raise DamagedBlob(digest)
        return content

    def check(self, digest: str) -> None:
        """Raise `DamagedBlob` if the content does not match the digest."""
        hasher = new_hasher()
        with self.open(digest) as file:
            for _piece in hashed(iter(lambda: file.read(PIECE), b""), hasher):
                pass
        if hasher.hexdigest() != digest:
            raise DamagedBlob(digest)

    def remove(self, digest: str) -> None:
        """Remove the content, if it exists."""
        # `removals` must change before and after: another process may ask for it and for the blob in between.
        self._mark()
        for place in self._places(digest):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place)
        self._mark()

    def removals(self) -> str:
        """A text that changes with every removal. As long as this text is the same, no blob was removed."""
        try:
            status = os.stat(os.path.join(self._directory, _REMOVED))
        except FileNotFoundError:
            self._mark()
            return self.removals()
        return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"

    def digests(self) -> Iterator[str]:
        for shard, names in self._shards():
            yield from {shard + name.removesuffix(".z") for name in names}

    def used(self) -> tuple[int, int]:
        """The number of blobs, and their bytes on disk."""
        sizes = [size for _digest, size in self.sizes()]
        return len(sizes), sum(sizes)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Every digest, with its bytes on disk."""
        for shard, names in self._shards():
            for name in names:
                try:
                    status = os.stat(os.path.join(self._directory, shard, name))
                except FileNotFoundError:
                    continue
                yield shard + name.removesuffix(".z"), status.st_blocks * 512

    def sweep(self) -> None:
        """Remove unfinished files that killed processes left."""
        for name in _names(self._directory):
            place = os.path.join(self._directory, name)
            with contextlib.suppress(FileNotFoundError):
                if name.startswith(_TEMPORARY) and os.stat(place).st_mtime < time.time() - _STALE:
                    os.unlink(place)

    def sync(self) -> None:
        """Sync everything stored so far to disk."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                sync_filesystem(descriptor)
            finally:
                os.close(descriptor)

    def _copy(self, descriptor: int, stopped: Callable[[], bool] | None) -> str:
        hasher, form = new_hasher(), ""
        with self._temporary() as (target, place):
            if self._clone(descriptor, target):
                for _ in hashed(pieces_of(target, stopped), hasher):
                    pass
            elif is_sparse(descriptor) or not pays(beginning_of(descriptor, 1 << 16)):
                write_sparse(hashed(pieces_of(descriptor, stopped), hasher), target)
            else:
                write_compressed(hashed(pieces_of(descriptor, stopped), hasher), target)
                form = ".z"
            digest = hasher.hexdigest()
            self._settle(place, digest, form)
        return digest

    def _clone(self, descriptor: int, target: int) -> bool:
        """Make `target` share the blocks of the open file `descriptor`. Returns False if the filesystem cannot do
        that."""
        device = os.fstat(descriptor).st_dev
        if sys.platform != "linux" or device in self._cannot_clone:
            return False
        try:
            fcntl.ioctl(target, _CLONE, descriptor)
        except OSError:
            self._cannot_clone.add(device)  # The reason does not matter: the caller copies instead.
            return False
        return True

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[tuple[int, str]]:
        place = os.path.join(self._directory, f"{_TEMPORARY}{os.getpid()}-{os.urandom(6).hex()}")
        target = self._create(place, os.O_RDWR | os.O_EXCL)
        try:
            yield target, place
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(place)
            raise
        finally:
            os.close(target)

    def _settle(self, place: str, digest: str, form: str) -> None:
        if self.has(digest):
            os.unlink(place)
            return
        home = self._places(digest)[0] + form
        try:
            os.rename(place, home)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(home), 0o700, exist_ok=True)
            os.rename(place, home)

    def _create(self, place: str, flags: int) -> int:
        flags |= os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(place, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(self._directory, 0o700, exist_ok=True)
            return os.open(place, flags, 0o600)

    def _mark(self) -> None:
        descriptor = self._create(os.path.join(self._directory, _REMOVED), os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, b".")
        finally:
            os.close(descriptor)

    def _places(self, digest: str) -> tuple[str, str]:
        place = f"{self._directory}/{digest[:2]}/{digest[2:]}"
        return place, place + ".z"

    def _find(self, digest: str) -> str | None:
        for place in self._places(digest):
            try:
                size = os.stat(place).st_size
            except FileNotFoundError:
                continue
            if size or digest == _EMPTY:
                return place
        return None

    def _raw(self, digest: str) -> io.RawIOBase:
        """Open the stored content of `digest`, decompressed. Raises `FileNotFoundError` if there is none."""
        for place in self._places(digest):
            try:
                file = io.FileIO(place)
            except FileNotFoundError:
                continue
            if digest == _EMPTY or os.fstat(file.fileno()).st_size:
                return DecompressingReader(file, digest) if place.endswith(".z") else file
            file.close()
        raise FileNotFoundError(errno.ENOENT, "no content is kept under this digest", digest)

    def _shards(self) -> Iterator[tuple[str, list[str]]]:
        for shard in _names(self._directory):
            if len(shard) == 2:
                yield shard, [name for name in _names(os.path.join(self._directory, shard)) if len(name) in (62, 64)]


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
