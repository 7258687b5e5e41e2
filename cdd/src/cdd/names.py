"""The rule for track names. Every command checks the name before it touches a file.

A name becomes the name of a folder and a word on a command line. So it has only letters and digits of any script, `-`,
`_`, inner spaces and inner dots. This module does not check whether the track exists.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from cdd.refusals import Refused

LONGEST: Final = 100
LONGEST_IN_BYTES: Final = 200  # a folder's name has at most 255 bytes, and archiving adds fifteen

_RULE: Final = "use letters, digits, '-', '_', inner spaces and inner dots, as in 'add-login' or 'v2.1_cleanup'"


def checked(name: str) -> str:
    """The name in Unicode's composed form (NFC), so that a name gives the same folder however it was typed. Raises
    `Refused`, with the reason, if the name is not valid."""
    reason = _objection(name)
    if reason:
        raise Refused(f"{_quoted(name)} cannot be a track's name: {reason}; {_RULE}.")
    return unicodedata.normalize("NFC", name)


def as_word(name: str) -> str:
    """The name as a word on a command line: in quotes if it has spaces."""
    return f"'{name}'" if " " in name else name


def _objection(name: str) -> str:
    if not name:
        return "it is empty"
    if len(name) > LONGEST:
        return f"it has {len(name)} characters, and at most {LONGEST} are allowed"
    for character in name:
        if not _allowed(character):
            return f"it contains {_called(character)}"
    if len(name.encode()) > LONGEST_IN_BYTES:
        return f"it takes {len(name.encode())} bytes, and at most {LONGEST_IN_BYTES} are allowed"
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
