"""Whether a fresh toolbox tool will be found where it lies."""

from __future__ import annotations

import os
from collections.abc import Iterator

from haft.authoring.making import ToolKind
from haft.sources.amp_toolbox import ToolboxDirectory, candidate, standard_places


def toolbox_at(kind: ToolKind, directory: str, workspace: str) -> ToolboxDirectory | None:
    """The directory as one that toolbox tools are looked for in; None where it is none."""
    if kind.format != "amp-toolbox":
        return None
    places = standard_places(os.environ, workspace)
    return next((one for one in places if os.path.realpath(one.directory) == os.path.realpath(directory)), None)


def obstacles(name: str, toolbox: ToolboxDirectory, workspace: str) -> Iterator[str]:
    """Why it may not be found all the same."""
    path = os.path.join(toolbox.directory, name)
    problem = candidate(path, toolbox).problem
    if problem is not None:
        yield f"{path} will not be found: {problem}"
    named = [os.path.join(one.directory, name) for one in standard_places(os.environ, workspace)]
    there = [one for one in named if os.path.isfile(one)]
    others = [one for one in there if not os.path.samefile(one, path)]
    if others:
        yield f"there is {others[0]} too: where both say the same name, {there[0]} counts"
