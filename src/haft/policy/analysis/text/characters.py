"""Finds characters that make a line look different from what runs, or that shells and terminals do not all read in the
same way.

A person who approves a line must see what will run, and haft and bash must split the line in the same places. So lines
with control characters, invisible characters, unusual spaces or marks of direction are not analysed.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from haft.lazy import regex

MAX_BYTES: Final = 32 * 1024
"""Haft does not parse longer lines."""

_CONTROL: Final = regex(r"[\x00-\x08\x0b-\x1f\x7f]")
_FOREIGN: Final = regex(r"[^\x00-\x7f]")
_REFUSED: Final = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"))
_INVISIBLE: Final = regex(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_NAMED: Final = {"\0": "a NUL", "\r": "a carriage return", "\x1b": "an escape character"}


def is_too_long(command: str) -> bool:
    """Whether a line is too long to be parsed."""
    return len(command) > MAX_BYTES or len(command.encode("utf-8", "surrogatepass")) > MAX_BYTES


def strange_character(command: str) -> str | None:
    """What is wrong with the first character that may mislead a reader, as a sentence; None if there is none."""
    found = _CONTROL.search(command)
    if found is not None:
        what = _NAMED.get(found[0], "a control character")
        return f"it contains {what} (U+{ord(found[0]):04X})"
    for match in _FOREIGN.finditer(command):
        character = match[0]
        if unicodedata.category(character) in _REFUSED or _INVISIBLE.match(character):
            return f"it contains a character that is invisible or looks like another (U+{ord(character):04X})"
    return None
