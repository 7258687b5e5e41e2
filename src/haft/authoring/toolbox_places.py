"""Finds out whether haft will find a new toolbox tool in its directory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from haft.authoring.new_tool import ToolKind
from haft.sources.amp_toolbox import ToolboxDirectory, candidate, standard_places


def toolbox_at(kind: ToolKind, directory: str, workspace: str) -> ToolboxDirectory | None:
    """The toolbox at this directory; None if haft does not search the directory for toolbox tools."""
    if kind.format != "amp-toolbox":
        return None
    places = standard_places(os.environ, workspace)
    return next((one for one in places if os.path.realpath(one.directory) == os.path.realpath(directory)), None)


def obstacles(name: str, toolbox: ToolboxDirectory, workspace: str) -> Iterator[str]:
    """Reasons why haft may not find the tool `name` in a toolbox, or may use another tool instead."""
    path = os.path.join(toolbox.directory, name)
    problem = candidate(path, toolbox).problem
    if problem is not None:
        yield f"haft will not find {path}: {problem}"
    paths = [os.path.join(one.directory, name) for one in standard_places(os.environ, workspace)]
    there = [one for one in paths if os.path.isfile(one)]
    others = [one for one in there if not os.path.samefile(one, path)]
    if others:
        yield f"{others[0]} exists too: if both describe the same name, haft uses {there[0]}"
