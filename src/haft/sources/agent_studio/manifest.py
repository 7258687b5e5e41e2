"""The small file that an installed template's folder holds: its identity, its exact name, and whose it is.

It is written when a template is installed and is no part of the template: packing leaves it out. What stands in it is
believed only as far as it has the right form; a folder without one, or with one that is spoiled, is a plain folder.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

MANIFEST_FILE: Final = ".template.json"
_LARGEST: Final = 65_536
_LONGEST: Final = 1_000
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is kept of an installed template."""

    id: str
    name: str
    workflow: str | None = None
    """The workflow that it belongs to; None: everybody's."""

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "workflow": self.workflow}


def read_manifest(folder: str) -> Manifest | None:
    """The manifest in a folder; None where there is none that can be used. A link is not followed."""
    try:
        with open(os.open(os.path.join(folder, MANIFEST_FILE), _READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
                return None
            said = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    identity, name, workflow = (said.get(key) for key in ("id", "name", "workflow"))
    if _is_text(identity) and _is_text(name) and (workflow is None or _is_text(workflow)):
        return Manifest(identity, name, workflow)
    return None


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and not value.isspace()
