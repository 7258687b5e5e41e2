"""Finds the targets of a check: which format a path has, and which files of a folder are checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from haft.contracts import BadUsage
from haft.sources import Target, ToolSource
from haft.sources.amp_toolbox import is_data
from haft.sources.skills import SKILL_FILE, TOOL_FOLDERS


def targets_of(sources: Sequence[ToolSource], path: str, workspace: str | None = None) -> Iterator[Target]:
    """The targets at a path: the path itself, or the files of a folder."""
    if not os.path.lexists(path):
        raise BadUsage(
            f"`{path}` does not exist", hint="give the path of a tool, a folder or a skill, or a tool's name"
        )
    source = next((one for one in sources if one.recognizes(path)), None)
    if source is not None:
        yield from _recognized(sources, source, path, workspace)
        return
    if not os.path.isdir(path):
        raise BadUsage(f"`{path}` is not a tool of any known format")
    yield from _files(sources, path, workspace)
    for name in sorted(os.listdir(path)):
        inner = os.path.join(path, name)
        if not name.startswith(".") and os.path.isdir(inner):
            source = next((one for one in sources if one.recognizes(inner)), None)
            if source is not None:
                yield from _recognized(sources, source, inner, workspace)


def _recognized(
    sources: Sequence[ToolSource], source: ToolSource, path: str, workspace: str | None
) -> Iterator[Target]:
    for target in source.targets(path):
        yield placed(target, workspace)
        for inner in target.holds:
            yield from _files(sources, inner, workspace)


def placed(target: Target, workspace: str | None = None) -> Target:
    """A copy of the target with two more facts: the folder of the skill, if the target's file is a tool of a skill; and
    the workspace, if the file lies in the workspace."""
    if os.path.isdir(target.path):
        return target
    directory = os.path.dirname(os.path.abspath(target.path))
    above = os.path.dirname(directory)
    is_bundled = os.path.basename(directory) in TOOL_FOLDERS and os.path.lexists(os.path.join(above, SKILL_FILE))
    root = None if workspace is None else os.path.abspath(workspace)
    is_inside = root is not None and f"{directory}/".startswith(root.rstrip("/") + "/")
    return replace(target, folder=above if is_bundled else None, within=root if is_inside else None)


def _files(sources: Sequence[ToolSource], directory: str, workspace: str | None) -> Iterator[Target]:
    """The files that a toolbox would load: no hidden files, no data files, no directories."""
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if _counts(entry))
    except OSError as error:
        raise BadUsage(f"`{directory}` cannot be read: {error.strerror}") from error
    for name in names:
        yield from targets_of(sources, os.path.join(directory, name), workspace)


def _counts(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or is_data(entry.name):
        return False
    try:
        return not entry.is_dir()
    except OSError:  # A link to itself.
        return True
