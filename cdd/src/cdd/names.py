"""The rule for track names, which every command asks before it touches a file.

A name becomes a folder's name and a word on a command line, so it has letters and digits of any script, `-`, `_`,
inner spaces and inner dots, and nothing else. Whether such a track exists is not known here.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from cdd.refusals import Refused

LONGEST: Final = 100
LONGEST_IN_BYTES: Final = 200  # a folder's name holds 255, and archiving adds fifteen

_RULE: Final = "use letters, digits, '-', '_', inner spaces and inner dots, as in 'add-login' or 'v2.1_cleanup'"


def checked(name: str) -> str:
    """The name, composed (NFC) so that it is the same folder however it was typed; or a refusal that says why."""
    reason = _objection(name)
    if reason:
        raise Refused(f"{_quoted(name)} cannot be a track's name: {reason}; {_RULE}.")
    return unicodedata.normalize("NFC", name)


def as_word(name: str) -> str:
    """A name as it is typed: in quotes where it has spaces."""
    return f"'{name}'" if " " in name else name


def _objection(name: str) -> str:
    if not name:
        return "it is empty"
    if len(name) > LONGEST:
        return f"it has {len(name)} characters and {LONGEST} is the most"
    for character in name:
        if not _allowed(character):
            return f"it contains {_called(character)}"
    if len(name.encode()) > LONGEST_IN_BYTES:
        return f"it takes {len(name.encode())} bytes and {LONGEST_IN_BYTES} is the most"
    if ".." in name:
        return "it contains '..'"
    if name[0] in ".- ":
        return f"it begins with '{name[0]}'"
    if name[-1] in ". ":
        return f"it ends with '{name[-1]}'"
    return ""


def _allowed(character: str) -> bool:
    return character in "-_. " or unicodedata.category(character)[0] in "LMN"


def _called(character: str) -> str:
    if character in "/\\":
        return f"the separator '{character}'"
    if unicodedata.category(character)[0] in "CZ":
        return f"the character U+{ord(character):04X}"
    return f"'{character}'"


def _quoted(name: str) -> str:
    return f"'{name if len(name) <= LONGEST else name[:40] + '…'}'"
