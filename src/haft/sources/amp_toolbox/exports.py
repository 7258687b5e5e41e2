"""Executables that stand for a tool of haft: known by a mark, and taken for that tool instead of being started.

A host that knows nothing of haft starts them, and they call back into it. Here the tool itself is called: one approval,
one run, one transaction.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from haft.contracts import Found, RenamedTool, ToolSpec
from haft.sources.amp_toolbox.discover import Candidate
from haft.sources.amp_toolbox.tool import registered_name

MARK: Final = "# haft-export: "
_HEAD: Final = 8_000


@dataclass(frozen=True, slots=True)
class Export:
    """Which tool an executable stands for."""

    described: str
    """What the executable calls itself."""
    name: str
    """The tool's own name."""
    workspace: str | None
    """Where it is configured; None for one that is there everywhere."""

    def to_json(self) -> dict[str, Any]:
        return {"described": self.described, "name": self.name, "workspace": self.workspace}


Origins = Callable[[Export], Found]
"""Finds the tool, or says why it cannot be had."""


def export_at(path: str) -> Export | None:
    """What an executable stands for; None for one that is a tool by itself."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    for line in head.decode("utf-8", "replace").splitlines()[:5]:
        if line.startswith(MARK):
            try:
                told = json.loads(line.removeprefix(MARK))
            except (ValueError, RecursionError):
                return None
            return _export(told)
    return None


def _export(told: Any) -> Export | None:
    if not isinstance(told, dict):
        return None
    described, name, workspace = (told.get(key) for key in ("described", "name", "workspace"))
    if not isinstance(described, str) or not isinstance(name, str) or not isinstance(workspace, str | None):
        return None
    return Export(described, name, workspace)


def as_the_tool(each: Candidate, export: Export, origins: Origins) -> Found:
    """The tool that an executable stands for, under the executable's name."""
    found = origins(export)
    meta = {key: value for key, value in found.spec.meta.items() if key not in ("skill", "skillFolder")}
    spec: ToolSpec = replace(
        found.spec,
        name=registered_name(export.described),
        kind="amp-toolbox",
        origin=each.path,
        # Whoever vouches for the tool does not vouch for the file that names it: what was agreed to is both.
        files=tuple(dict.fromkeys((each.path, *found.spec.files))),
        meta={**meta, "toolbox": {"form": "export", "describes": export.described}, "export": export.to_json()},
    )
    if found.tool is None:
        return Found(spec, None, found.state, found.reason)
    return Found(spec, RenamedTool(spec, found.tool))
