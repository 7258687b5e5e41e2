"""Extended attributes as text, so that entries can compare them, manifests keep them, and undo restores them.

Only attributes that belong to the file are tracked: `user.` attributes, access lists, capabilities, and root's
`trusted.` attributes. Labels of a security module such as SELinux belong to the system, and the marks of an overlay
mean nothing outside of the overlay: both are ignored.
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
"""The format of an access list: the sizes of the header and of each row, and the tag of the owner's row."""
_OVERLAYS: Final = ("trusted.overlay.", "user.overlay.")
_MOST_BYTES: Final = 256 * 1024
"""If the attribute values of one path have more bytes than this, only their digests are kept: digests show a change,
but the values cannot be restored."""
_NONE_THERE: Final = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_DIGEST: Final = "sha256:"


class UnreadableAttributes(PermissionError):
    """The file's mode forbids reading its attributes."""


def is_tracked(name: str) -> bool:
    """Whether haft tracks the attribute, because it belongs to the file."""
    if name.startswith(("user.", "trusted.")):
        return not name.startswith(_OVERLAYS)
    return name == CAPABILITIES or name in _ACCESS_LISTS


def attributes_of(place: int | str | bytes, mode: int | None = None) -> str:
    """The tracked extended attributes of a descriptor or of a path, as text; an empty text if there are none. Links are
    not followed. Raises `UnreadableAttributes` if the attributes may not be read. If haft widened the file's mode to
    read them, `mode` is the mode before that."""
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
                    if error.errno != errno.ENODATA:  # Someone removed the attribute after it was listed.
                        raise
    except PermissionError as error:
        raise UnreadableAttributes from error
    except OSError as error:
        if error.errno in _NONE_THERE:
            return ""
        raise
    return _to_text(found)


def _with_owner(access_list: bytes, mode: int) -> bytes:
    """The access list, with the owner's bits of `mode` in the owner's row. The kernel keeps this row equal to the
    owner's bits of the file's mode, so when haft widened the mode, the row changed too."""
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
    """Whether the text of the attributes holds their values, not only digests."""
    return text is None or _DIGEST not in text


def without_names(text: str | None, *names: str) -> str | None:
    """The text of the attributes, without the attributes called `names`. None (unknown) if this text cannot be made,
    because only digests of the values are kept."""
    if not text or not any(name in text for name in names):
        return text
    kept = {name: value for name, value in _from_text(text).items() if name not in names}
    return _to_text({name: bytes.fromhex(value) for name, value in kept.items()}) if can_be_set(text) else None


def value_of(text: str | None, name: str) -> str | None:
    """The value of one attribute, in hexadecimal, or its digest; None if the attribute is absent."""
    return _from_text(text).get(name) if text and name in text else None


def differing_names(one: str | None, other: str | None) -> tuple[str, ...]:
    """The names of attributes that differ between two texts. If one of the texts is None (unknown), no name counts as
    different."""
    if one is None or other is None or one == other:
        return ()
    before, after = _from_text(one), _from_text(other)
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))


def set_attributes(place: int | str | bytes, wanted: str | None) -> list[str]:
    """Set exactly the attributes of the text `wanted`, and remove all others that are tracked. If `wanted` is None
    (unknown), do nothing. Returns the names that could not be set or removed."""
    if wanted is None or sys.platform != "linux":
        return []
    try:
        names = differing_names(attributes_of(place), wanted)
    except UnreadableAttributes:
        return ["its extended attributes"]
    values = _from_text(wanted)
    # The access list comes last, because it can take from the owner the right to set the other attributes.
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
    """The names of the attributes in a text."""
    return tuple(_from_text(text))
