"""The index of a workspace on disk: for each file, its stamp (see `scan`) and the digest of its content.

The index is only a cache: haft reads a file again if the index does not know the file, and reads all files again if the
index is missing or broken. Data is stored by columns, which load several times faster than rows: a header line, the
paths, the digests, then each field of the stamps. Extended attributes, which few files have, follow at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from array import array
from typing import TYPE_CHECKING, Final

from haft.changes.snapshots.scan import Stamp
from haft.values import dataclass, field

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_MAGIC: Final = b"haft index 2"
_TYPES: Final = "QQQQQQqqq"
"""The types of a stamp's fields: inodes and devices use all 64 bits, times may be before 1970."""


@dataclass(slots=True)
class Index:
    """The files of a workspace, by path, without those whose stamps are unreliable (racy)."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    """By path: the digest of the file."""
    removals: str = ""
    """`Blobs.removals()` at a time when the store held the contents of all these files."""
    attributes: dict[str, str | None] = field(default_factory=dict)
    """By path: the extended attributes of the file, if it has any."""

    def write(self, place: str) -> None:
        """Replace the index on disk atomically."""
        try:
            self._write(place)
        except OverflowError:  # Times after the year 2262 do not fit: leave out these files.
            kept = {path: stamp for path, stamp in self.stamps.items() if max(map(abs, stamp[7:])) < 1 << 63}
            Index(kept, self.contents, self.removals, self.attributes)._write(place)

    def _write(self, place: str) -> None:
        head = f" {len(self.stamps)} {self.removals}\n".encode()
        paths = "\0".join(self.stamps).encode("utf-8", "surrogateescape") + b"\n"
        digests = bytes.fromhex("".join(map(self.contents.__getitem__, self.stamps)))
        rows = self.stamps.values()
        columns = [array(type_, [stamp[at] for stamp in rows]) for at, type_ in enumerate(_TYPES)]
        attributes = json.dumps(self.attributes).encode()
        parts: list[ReadableBuffer] = [head, len(paths).to_bytes(8, "little"), paths, digests, *columns, attributes]
        temporary = f"{place}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
        try:
            with open(temporary, "xb") as file:
                checksum = 0
                file.write(_MAGIC)
                for part in parts:
                    file.write(part)
                    checksum = zlib.crc32(part, checksum)
                file.write(b"%08x" % checksum)
            os.rename(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    @classmethod
    def read(cls, place: str) -> Index:
        """Read the index file `place`. If it is missing or broken, return an empty index."""
        try:
            with open(place, "rb") as file:
                words = file.read()
        except FileNotFoundError:
            return cls()
        body = memoryview(words)[len(_MAGIC) : -8]
        if not words.startswith(_MAGIC) or words[-8:] != b"%08x" % zlib.crc32(body):
            return cls()
        return cls._unpacked(body)

    @classmethod
    def _unpacked(cls, body: memoryview) -> Index:
        end = bytes(body[:200]).index(b"\n")
        count, removals = bytes(body[1:end]).decode().split(" ", 1)
        total = int(count)
        if not total:
            return cls(removals=removals)
        start = end + 9
        stop = start + int.from_bytes(body[end + 1 : start], "little")
        paths = str(body[start : stop - 1], "utf-8", "surrogateescape").split("\0")
        start, stop = stop, stop + 32 * total
        spelt = body[start:stop].hex()
        columns: list[array[int]] = []
        for type_ in _TYPES:
            start, stop = stop, stop + 8 * total
            columns.append(array(type_))
            columns[-1].frombytes(body[start:stop])
        return cls(
            dict(zip(paths, zip(*columns, strict=True), strict=True)),
            {path: spelt[at : at + 64] for path, at in zip(paths, range(0, 64 * total, 64), strict=True)},
            removals,
            json.loads(bytes(body[stop:])),
        )
