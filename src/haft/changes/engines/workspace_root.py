"""The workspace directory itself. No engine tracks its mode or extended attributes: if a call changed them, the result
of the call says so."""

from __future__ import annotations

import os
import stat
from typing import Final

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of

LAYERED: Final = (
    "it changed the mode or the extended attributes of the workspace directory itself: that change was discarded"
)
IN_PLACE: Final = (
    "the mode or the extended attributes of the workspace directory itself changed: undo does not restore them"
)


def state_of(directory: str) -> tuple[int, str | None]:
    """The mode of a directory, and its extended attributes; None in place of the attributes if they may not be read."""
    try:
        attributes = attributes_of(directory)
    except UnreadableAttributes:
        attributes = None
    return stat.S_IMODE(os.lstat(directory).st_mode), attributes
