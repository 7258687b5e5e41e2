"""Executables that `haft toolbox export` made from tools of haft. haft recognizes them by a mark.

Another agent starts the executable, which calls haft. haft itself calls the tool directly instead of starting the
executable, so there is one approval, one run and one transaction.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from haft.contracts import DiscoveredTool, RenamedTool, ToolSpec
from haft.sources.amp_toolbox.discover import Candidate
from haft.sources.amp_toolbox.tool import registered_name

MARK: Final = "# haft-export: "
_HEAD: Final = 8_000


@dataclass(frozen=True, slots=True)
class Export:
    """The tool that an exported executable stands for."""

    described: str
    """The name in the executable's own description."""
    name: str
    """The tool's own name."""
    workspace: str | None
    """The workspace that configures the tool; None if the tool exists in every workspace."""

    def to_json(self) -> dict[str, Any]:
        return {"described": self.described, "name": self.name, "workspace": self.workspace}


Origins = Callable[[Export], DiscoveredTool]
"""A function that returns the tool of an export, or why the tool is not available."""


def export_at(path: str) -> Export | None:
    """The export at a path; None if the executable is not exported."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    for line in head.decode("utf-8", "replace").splitlines()[:5]:
        if line.startswith(MARK):
            try:
                facts = json.loads(line.removeprefix(MARK))
            except (ValueError, RecursionError):
                return None
            return _export(facts)
    return None


def _export(facts: Any) -> Export | None:
    if not isinstance(facts, dict):
        return None
    described, name, workspace = (facts.get(key) for key in ("described", "name", "workspace"))
    if not isinstance(described, str) or not isinstance(name, str) or not isinstance(workspace, str | None):
        return None
    return Export(described, name, workspace)


def exported_tool(each: Candidate, export: Export, origins: Origins) -> DiscoveredTool:
    """The tool of an export, under the name of the executable."""
    found = origins(export)
    meta = {key: value for key, value in found.spec.meta.items() if key not in ("skill", "skillFolder")}
    spec: ToolSpec = replace(
        found.spec,
        name=registered_name(export.described),
        kind="amp-toolbox",
        origin=each.path,
        # An approval covers the files of the tool, and also the executable that names the tool.
        files=tuple(dict.fromkeys((each.path, *found.spec.files))),
        meta={**meta, "toolbox": {"form": "export", "describes": export.described}, "export": export.to_json()},
    )
    if found.tool is None:
        return DiscoveredTool(spec, None, found.state, found.reason)
    return DiscoveredTool(spec, RenamedTool(spec, found.tool))
