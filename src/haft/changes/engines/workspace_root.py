"""The workspace directory itself. No engine keeps its mode or extended attributes: a call that changed them says so."""

from __future__ import annotations

import os
import stat
from typing import Final

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of

LAYERED: Final = "it changed the mode or the extended attributes of the workspace directory itself: that does not count"
IN_PLACE: Final = "the mode or the extended attributes of the workspace directory itself changed: undo leaves that"


def state_of(directory: str) -> tuple[int, str | None]:
    """Its mode and its extended attributes, if they may be read."""
    try:
        attributes = attributes_of(directory)
    except UnreadableAttributes:
        attributes = None
    return stat.S_IMODE(os.lstat(directory).st_mode), attributes
