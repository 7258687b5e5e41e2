"""The manifest: a small file in the folder of an installed template, with the template's id, exact name and workflow.

It is written when the template is installed and is not part of the template: packing leaves it out. A manifest is used
only if its content has the right form. A folder without a valid manifest is an ordinary folder.
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
    """What is kept about an installed template."""

    id: str
    name: str
    workflow: str | None = None
    """The workflow that the template belongs to; None if it belongs to all workflows."""

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "workflow": self.workflow}


def read_manifest(folder: str) -> Manifest | None:
    """The manifest in a folder; None if there is no valid one. Links are not followed."""
    try:
        with open(os.open(os.path.join(folder, MANIFEST_FILE), _READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
                return None
            content = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    identity, name, workflow = (content.get(key) for key in ("id", "name", "workflow"))
    if _is_text(identity) and _is_text(name) and (workflow is None or _is_text(workflow)):
        return Manifest(identity, name, workflow)
    return None


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and not value.isspace()
