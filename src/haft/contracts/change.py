"""The changes that a call made, path by path."""

from __future__ import annotations

import base64
from typing import Any, Literal

from haft.values import dataclass

ChangeType = Literal["create", "modify", "delete"]
ChangeKind = Literal["file", "directory", "link", "other"]
Engine = Literal["overlay", "snapshot", "declared", "none"]
ChangesState = Literal["none", "committed", "held", "discarded", "undone"]


def path_to_json(path: str) -> dict[str, str]:
    """The JSON fields of a path. A path that is not UTF-8 also gets a field with its bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raw = path.encode("utf-8", "surrogateescape")
        return {"path": raw.decode("utf-8", "replace"), "pathBytes": base64.b64encode(raw).decode()}
    return {"path": path}


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one path. `before` and `after` are digests of its content."""

    path: str
    """Relative to the workspace. Bytes that are not UTF-8 are surrogate escapes."""
    type: ChangeType
    kind: ChangeKind = "file"
    before: str | None = None
    after: str | None = None
    mode_before: int | None = None
    mode_after: int | None = None
    renamed_from: str | None = None
    """The former path, if the call renamed the file."""
    attributes: tuple[str, ...] = ()
    """The names of extended attributes that were added, removed or changed; empty for a deleted path."""

    def to_json(self) -> dict[str, Any]:
        shape: dict[str, Any] = {**path_to_json(self.path), "type": self.type, "kind": self.kind}
        if self.before is not None:
            shape["before"] = self.before
        if self.after is not None:
            shape["after"] = self.after
        if self.mode_before is not None and self.mode_before != self.mode_after:
            shape["modeBefore"] = f"{self.mode_before & 0o7777:04o}"
        if self.mode_after is not None and self.mode_before != self.mode_after:
            shape["modeAfter"] = f"{self.mode_after & 0o7777:04o}"
        if self.renamed_from is not None:
            shape["from"] = path_to_json(self.renamed_from)["path"]
        if self.attributes:
            shape["attributes"] = [path_to_json(name)["path"] for name in self.attributes]
        return shape


@dataclass(frozen=True, slots=True)
class ConflictingPath:
    """A path with a conflict, and who else changed it: a run, or `outside`."""

    path: str
    by: str = "outside"

    def to_json(self) -> dict[str, Any]:
        return {**path_to_json(self.path), "by": self.by}


@dataclass(frozen=True, slots=True)
class Changes:
    """The change set of one run, with the engine that found it and whether it is complete."""

    engine: Engine = "none"
    complete: bool = True
    reason: str | None = None
    """Why the set is not complete, why it is held, or why haft did not use a better engine."""
    state: ChangesState = "none"
    files: tuple[Change, ...] = ()
    conflicts: tuple[ConflictingPath, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "complete": self.complete,
            "reason": self.reason,
            "state": self.state,
            "files": [change.to_json() for change in self.files],
            "conflicts": [conflict.to_json() for conflict in self.conflicts],
        }


NO_CHANGES = Changes()
"""The change set of a run whose tool changes nothing."""

UNTRACKED = Changes(complete=False, reason="this tool's changes are not tracked")
"""The change set of a run whose tool may have changed anything, because haft did not track it."""
