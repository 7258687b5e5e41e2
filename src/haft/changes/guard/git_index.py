"""Whether the index of a repository names only paths that a commit could hold.

Git trusts its index: `git checkout -- .` writes files to all paths in the index, even to a hook in `.git` or to a file
outside of the working tree (we tried it). Git checks a path only when its own commands add it to the index.
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
"""The two possible lengths of object ids. The index does not say which is used: if it can be read with both lengths,
the paths must be fine in both readings."""
_EXTENDED: Final = 0x40
_LENGTH: Final = 0x0FFF


_PLAIN: Final = regex(rb"[!-\-0-}][ -.0-}]*(?:/[!-\-0-}][ -.0-}]*)*(?=\0)")
"""Matches most paths, quickly: those that certainly have no part such as `..` or `.git`."""


def is_sound(content: bytes) -> bool:
    """Whether a commit could hold all the paths in an index. False for an index that cannot be parsed, True for an
    empty file."""
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
    """The paths in the index that do not match `_PLAIN`. Raises `ValueError`, `IndexError` or `struct.error` if the
    index cannot be parsed with object ids of `size` bytes."""
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
    """A number in git's variable-length encoding, seven bits in each byte, and the position after it."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = (value + 1) << 7 | byte & 0x7F
    return value, at + 1
