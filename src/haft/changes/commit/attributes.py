"""Extended attributes as text, so that entries can compare them, manifests keep them, and undo restores them.

Only attributes that belong to the file are tracked: a user's own, access lists, capabilities, and root's `trusted.`
attributes. Labels of a security module belong to the system, and the marks of an overlay mean nothing elsewhere: both
are ignored.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Final

CAPABILITIES: Final = "security.capability"
_ACCESS_LISTS: Final = ("system.posix_acl_access", "system.posix_acl_default")
_HEAD, _ROW, _OWNER = 4, 8, b"\x01\x00"
"""Access list format: the sizes of its header and of each row, and the tag of the owner's row."""
_OVERLAYS: Final = ("trusted.overlay.", "user.overlay.")
_MOST_BYTES: Final = 256 * 1024
"""The most bytes that are kept of one path's values. Beyond that only digests are kept: they show a change, but cannot
be restored."""
_NONE_THERE: Final = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_DIGEST: Final = "sha256:"


class UnreadableAttributes(PermissionError):
    """The file's mode forbids reading its attributes."""


def is_tracked(name: str) -> bool:
    """Whether an attribute belongs to the file."""
    if name.startswith(("user.", "trusted.")):
        return not name.startswith(_OVERLAYS)
    return name == CAPABILITIES or name in _ACCESS_LISTS


def attributes_of(place: int | str | bytes, mode: int | None = None) -> str:
    """The tracked extended attributes of a descriptor or of a path, as text. Links are not followed. Empty if there are
    none; raises `UnreadableAttributes` if they may not be read. `mode` is the file's real mode, if its owner's bits
    were widened for this reading."""
    if sys.platform != "linux":
        return ""
    follow = isinstance(place, int)
    found: dict[str, bytes] = {}
    try:
        for name in os.listxattr(place, follow_symlinks=follow):
            if is_tracked(name):
                try:
                    value = os.getxattr(place, name, follow_symlinks=follow)
                    is_widened = mode is not None and name == _ACCESS_LISTS[0]
                    found[name] = _with_owner(value, mode or 0) if is_widened else value
                except OSError as error:
                    if error.errno != errno.ENODATA:  # It was removed between two steps.
                        raise
    except PermissionError as error:
        raise UnreadableAttributes from error
    except OSError as error:
        if error.errno in _NONE_THERE:
            return ""
        raise
    return _to_text(found)


def _with_owner(access_list: bytes, mode: int) -> bytes:
    """An access list with the owner's bits of `mode`: the system shows the same bits in both."""
    rows = bytearray(access_list)
    for at in range(_HEAD, len(rows), _ROW):
        if rows[at : at + 2] == _OWNER:
            rows[at + 2 : at + 4] = (mode >> 6 & 7).to_bytes(2, "little")
    return bytes(rows)


def _to_text(found: dict[str, bytes]) -> str:
    if not found:
        return ""
    is_much = sum(map(len, found.values())) > _MOST_BYTES
    return json.dumps([
        [os.fsencode(name).decode("latin-1"), _DIGEST + hashlib.sha256(value).hexdigest() if is_much else value.hex()]
        for name, value in sorted(found.items())
    ])  # fmt: skip


def _from_text(text: str | None) -> dict[str, str]:
    return {os.fsdecode(name.encode("latin-1")): value for name, value in json.loads(text)} if text else {}


def can_be_set(text: str | None) -> bool:
    """Whether the values are kept, not only digests."""
    return text is None or _DIGEST not in text


def without_names(text: str | None, *names: str) -> str | None:
    """The attributes without the named ones."""
    if not text or not any(name in text for name in names):
        return text
    kept = {name: value for name, value in _from_text(text).items() if name not in names}
    return _to_text({name: bytes.fromhex(value) for name, value in kept.items()}) if can_be_set(text) else None


def value_of(text: str | None, name: str) -> str | None:
    """The value of one attribute, as kept; None if it is absent."""
    return _from_text(text).get(name) if text and name in text else None


def differing_names(one: str | None, other: str | None) -> tuple[str, ...]:
    """The names of attributes that differ. Unknown attributes do not differ."""
    if one is None or other is None or one == other:
        return ()
    before, after = _from_text(one), _from_text(other)
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))


def set_attributes(place: int | str | bytes, wanted: str | None) -> list[str]:
    """Set exactly these attributes, if they are known. Returns the names that could not be set or removed."""
    if wanted is None or sys.platform != "linux":
        return []
    try:
        names = differing_names(attributes_of(place), wanted)
    except UnreadableAttributes:
        return ["its extended attributes"]
    values = _from_text(wanted)
    # The access list last: it can take from the owner the right to set the others.
    in_turn = sorted(names, key=lambda name: name == _ACCESS_LISTS[0])
    return [name for name in in_turn if not _is_set(place, name, values.get(name))]


def _is_set(place: int | str | bytes, name: str, value: str | None) -> bool:
    if sys.platform != "linux":
        return False
    follow = isinstance(place, int)
    try:
        if value is None:
            os.removexattr(place, name, follow_symlinks=follow)
        elif value.startswith(_DIGEST):
            return False
        else:
            os.setxattr(place, name, bytes.fromhex(value), follow_symlinks=follow)
    except OSError as error:
        if error.errno in (*_NONE_THERE, errno.EPERM, errno.EACCES, errno.ENODATA):
            return False
        raise
    return True


def names_in(text: str | None) -> Sequence[str]:
    """The names of the attributes."""
    return tuple(_from_text(text))
