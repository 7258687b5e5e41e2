"""The decision log of a track, `decisions.md`. Entries are added and never removed.

An entry begins with its time in brackets. Further lines of a message are indented, so that no message can look like two
entries. Several programs can add entries at once.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cdd import files, timestamps
from cdd.refusals import Refused
from cdd.tracks import Track

LONGEST: Final = 1024 * 1024
"""The most bytes of an entry."""

_INDENT: Final = "    "
_ENTRY: Final = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] (.*)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision."""

    moment: str
    message: str


def log(track: Track, message: str) -> None:
    """Add a message to the track's decisions."""
    entry = entry_of(timestamps.now(), message)
    files.append(os.path.join(track.path, "decisions.md"), entry)


def entry_of(moment: datetime, message: str) -> bytes:
    """The lines of an entry. Every character that some program treats as a line end ends a line here, so that a message
    cannot forge an entry."""
    lines = message.strip().splitlines()
    if not lines:
        raise Refused("The message is empty.", 'give it in quotes: cdd log NAME "what was decided, and why".')
    indented = (_INDENT + line if line else "" for line in lines[1:])
    try:
        content = "\n".join([f"[{timestamps.stamp(moment)}] {lines[0]}", *indented]).encode() + b"\n"
    except UnicodeEncodeError:
        raise Refused("The message is not valid UTF-8.", "write it again in that encoding.") from None
    if len(content) > LONGEST:
        raise Refused("The message is longer than 1 MiB.", "log the decision, and keep the material in a file.")
    return content


def entries(text: str) -> list[Entry]:
    """The entries of a log. Text before and between the entries is skipped."""
    found: list[tuple[str, list[str]]] = []
    within = False
    for line in text.split("\n"):
        begun = _ENTRY.fullmatch(line)
        if begun:
            found.append((begun[1], [begun[2]]))
            within = True
        elif within and (not line or line.startswith(_INDENT)):
            found[-1][1].append(line.removeprefix(_INDENT))
        else:
            within = False
    return [Entry(moment, "\n".join(lines).rstrip("\n")) for moment, lines in found]
