"""Paths that a person types for files of a workspace: for `haft changes apply` and `haft approve --path`."""

from __future__ import annotations

import os

from haft.contracts import BadUsage
from haft.surfaces.cli.place import current_directory


def in_workspace(path: str, workspace: str) -> str:
    """A path that the person named, relative to the workspace. If the current directory is not in the workspace, the
    path is taken as relative to the workspace already."""
    here = os.path.realpath(current_directory())
    inside = workspace.rstrip("/") + "/"
    if not os.path.isabs(path) and not f"{here}/".startswith(inside):
        return os.path.normpath(path)
    found = os.path.normpath(os.path.join(here, path))
    if not f"{found}/".startswith(inside):
        raise BadUsage(f"`{path}` is not in the workspace {workspace}")
    return os.path.relpath(found, workspace)
