"""Whether the index of a repository names only files that a commit could hold.

Git trusts its index: `git checkout -- .` writes files to the names in it, also to a hook in `.git` or to a file outside
of the working tree (measured). Git checks names only when its own commands add them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from haft.files import folded
from haft.lazy import regex

MOST_BYTES: Final = 256 * 1024 * 1024

_HEAD: Final = struct.Struct(">4sLL")
_BEFORE_OBJECT: Final = 40
_OBJECTS: Final = (20, 32)
"""The lengths of object ids. Only the configuration says which is used, so both readings must be sound."""
_EXTENDED: Final = 0x40
_LENGTH: Final = 0x0FFF


_PLAIN: Final = regex(rb"[!-\-0-}][ -.0-}]*(?:/[!-\-0-}][ -.0-}]*)*(?=\0)")
"""Names without any special part: nearly all names, recognized at once."""


def is_sound(content: bytes) -> bool:
    """Whether an index is sound. An unreadable index is not; an empty one is."""
    if len(content) < _HEAD.size or not content.startswith(b"DIRC"):
        return not content
    read = 0
    for size in _OBJECTS:
        try:
            if not all(map(_is_fine, _unusual(content, size))):
                return False
            read += 1
        except (ValueError, IndexError, struct.error):
            continue
    return read > 0


def _is_fine(path: bytes) -> bool:
    # The name of a directory that is not checked out ends with a slash.
    words = path.removesuffix(b"/").decode("utf-8", "surrogateescape").split("/")
    return words == [""] or not any(word in ("", ".", "..") or folded(word) == ".git" for word in words)


def _unusual(content: bytes, size: int) -> Iterator[bytes]:
    """The names in the index that are not plain. Raises an error if it cannot be read with this id length."""
    _, version, count = _HEAD.unpack_from(content)
    if version not in (2, 3, 4):
        raise ValueError(version)
    end = len(content) - size
    is_packed = version == 4
    before_flags = _BEFORE_OBJECT + size
    at, last = _HEAD.size, b""
    for _ in range(count):
        start = at + before_flags + 2
        high, low = content[start - 2], content[start - 1]
        if high & _EXTENDED and version > 2:
            start += 2
        if is_packed:
            dropped, start = _number(content, start)
            if dropped > len(last):
                raise ValueError(dropped)
            stop = content.index(b"\0", start, end)
            last = last[: len(last) - dropped] + content[start:stop]
            at, length = stop + 1, len(last)
            is_plain = _PLAIN.match(last + b"\0") is not None
        else:
            found = _PLAIN.match(content, start)
            is_plain = found is not None
            stop = content.index(b"\0", start, end) if found is None else found.end()
            at, length = at + ((stop - at + 8) & ~7), stop - start
        if (high << 8 | low) & _LENGTH != (length if length < _LENGTH else _LENGTH):
            raise ValueError(length)
        if not is_plain:
            yield last if is_packed else content[start:stop]
    if at > end:
        raise ValueError(at)


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A variable-length number as git encodes it, seven bits in each byte."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = (value + 1) << 7 | byte & 0x7F
    return value, at + 1
