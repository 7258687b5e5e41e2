"""How the content of a blob is stored: as it is, with its holes, or compressed.

The module `blobs` chooses the form and the file; this module reads and writes descriptors. Content is processed piece
by piece, so that large files need little memory.
"""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from haft.contracts import ToolFailed

if TYPE_CHECKING:
    from hashlib import _Hash

    from _typeshed import WriteableBuffer

PIECE: Final = 1 << 18
_BLOCK: Final = 4096
_ZEROS: Final = bytes(_BLOCK)
_SAMPLE: Final = 1 << 16
_LEAST: Final = 512
"""Smaller content is not compressed: it takes one disk block in any case."""
_LEVEL: Final = 1


class DamagedBlob(ValueError):
    """The stored content differs from its digest."""

    def __init__(self, digest: str) -> None:
        super().__init__(f"the stored content {digest[:12]} is damaged")
        self.digest = digest


def pieces_of(descriptor: int, stopped: Callable[[], bool] | None = None) -> Iterator[bytes]:
    """The content of an open file from its start, in pieces. Raises `ToolFailed` if `stopped` returns True between two
    pieces."""
    at = 0
    while piece := os.pread(descriptor, PIECE, at):
        if stopped is not None and stopped():
            raise ToolFailed("the call was stopped while it read a file")
        yield piece
        at += len(piece)


def beginning_of(descriptor: int, most: int) -> bytes:
    """Up to `most` bytes from the start of a file."""
    content = os.pread(descriptor, most, 0)
    # Except on unusual filesystems, one read returns all; a second read, which returns nothing, confirms that.
    while len(content) < most and (more := os.pread(descriptor, most - len(content), len(content))):
        content += more
    return content


def is_sparse(descriptor: int) -> bool:
    """Whether at least half of the file is holes. Such a file is not compressed: holes need no space, and compressing
    them takes time."""
    status = os.fstat(descriptor)
    return status.st_blocks * 1024 <= status.st_size


def new_hasher() -> _Hash:
    """A hasher for the kind of digest that `haft.files` uses."""
    return hashlib.sha256()


def hashed(pieces: Iterable[bytes], hasher: _Hash) -> Iterator[bytes]:
    """Yield the pieces unchanged, and update `hasher` with each."""
    for piece in pieces:
        hasher.update(piece)
        yield piece


def digest_of_descriptor(descriptor: int, stopped: Callable[[], bool] | None = None) -> str:
    """The digest of the whole content of an open file."""
    hasher = new_hasher()
    for piece in pieces_of(descriptor, stopped):
        hasher.update(piece)
    return hasher.hexdigest()


def compressed(content: bytes) -> bytes | None:
    """The compressed content; None if compression would save too little space."""
    if not pays(content):
        return None
    smaller = zlib.compress(content, _LEVEL)
    return smaller if len(smaller) < len(content) else None


def pays(beginning: bytes) -> bool:
    """Whether content that begins like this is worth compressing."""
    sample = beginning[:_SAMPLE]
    return len(sample) >= _LEAST and len(zlib.compress(sample, _LEVEL)) * 10 < len(sample) * 9


def write_all(descriptor: int, content: bytes) -> None:
    """Write everything, with as many writes as needed."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def write_compressed(pieces: Iterable[bytes], descriptor: int) -> None:
    """Write pieces into an empty file as one compressed stream."""
    packer = zlib.compressobj(_LEVEL)
    for piece in pieces:
        write_all(descriptor, packer.compress(piece))
    write_all(descriptor, packer.flush())


def write_sparse(pieces: Iterable[bytes], descriptor: int) -> None:
    """Write pieces into an empty file; blocks of zeros become holes."""
    end = 0
    for piece in pieces:
        for start, stop in _runs(piece):
            at, rest = end + start, memoryview(piece)[start:stop]
            while rest:
                written = os.pwrite(descriptor, rest, at)
                at, rest = at + written, rest[written:]
        end += len(piece)
    os.ftruncate(descriptor, end)


def _runs(piece: bytes) -> Iterator[tuple[int, int]]:
    """The start and end of each range of `piece` in which every block has a byte other than zero."""
    start = -1
    for at in range(0, len(piece), _BLOCK):
        block = piece[at : at + _BLOCK]
        if block == _ZEROS or (len(block) < _BLOCK and not any(block)):
            if start >= 0:
                yield start, at
            start = -1
        elif start < 0:
            start = at
    if start >= 0:
        yield start, len(piece)


class DecompressingReader(io.RawIOBase):
    """The content of a compressed file, as a stream. Closing the stream closes the file."""

    def __init__(self, file: io.FileIO, digest: str) -> None:
        self._file = file
        self._digest = digest
        self._unpacker = zlib.decompressobj()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._unpacker.eof:
            # Empty input makes the decompressor return the rest of its buffer.
            data = self._rest or self._file.read(PIECE)
            try:
                found = self._unpacker.decompress(data, len(view))
            except zlib.error:
                raise DamagedBlob(self._digest) from None
            self._rest = self._unpacker.unconsumed_tail
            if found:
                view[: len(found)] = found
                return len(found)
            if not data:
                raise DamagedBlob(self._digest)
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()
