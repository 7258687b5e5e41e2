"""An append-only file: each piece is appended with one write, as a whole or not at all."""

from __future__ import annotations

import contextlib
import os

from haft.contracts import StorageFailed


def read_between(descriptor: int, start: int, end: int) -> bytes:
    """The bytes of an open file from `start` up to `end`; fewer if the file ends before."""
    parts = []
    while start < end:
        part = os.pread(descriptor, min(end - start, 1 << 20), start)
        if not part:
            break
        parts.append(part)
        start += len(part)
    return b"".join(parts)


class AppendOnlyFile:
    """A file open for appending. This class takes no lock: code that uses it must ensure that only one process or
    thread writes at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(f"{path} cannot be opened", error) from error

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def append(self, piece: bytes) -> None:
        """Append `piece`. If the disk is full, the part that was written is removed again."""
        try:
            written = os.write(self.descriptor, piece)
        except OSError as error:
            raise StorageFailed(f"{self.path} cannot be written", error) from error
        if written == len(piece):
            return
        rest = piece[written:]
        try:
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self.descriptor, self.size() - (len(piece) - len(rest)))
            raise StorageFailed(f"{self.path} cannot be written", error) from error

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`."""
        return read_between(self.descriptor, start, end)

    def sync(self) -> None:
        os.fsync(self.descriptor)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
