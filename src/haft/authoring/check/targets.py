"""What a path is: which format it has, and what of a folder is to be checked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from haft.contracts import BadUsage
from haft.sources.agent_studio.checking import ENTRY
from haft.sources.amp_toolbox.finding import is_data
from haft.sources.bash_plugin.finding import DESCRIPTOR as PLUGINS_FILE
from haft.sources.bash_plugin.finding import is_bash_plugin
from haft.sources.checks.files import look
from haft.sources.checks.findings import Finding
from haft.sources.python.checking import is_python_tools
from haft.sources.skills.checking import tool_folders
from haft.sources.skills.skill import SKILL_FILE, TOOL_FOLDERS, lies_in

Format = Literal["amp-toolbox", "bash-plugin", "agent-studio", "python", "skill"]


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to check."""

    path: str
    format: Format
    folder: str | None = None
    """The skill's that it is part of."""
    within: str | None = None
    """The workspace that it lies in, which it may not lead out of; absolute."""


def targets_of(path: str, workspace: str | None = None) -> Iterator[Target]:
    """What is to be checked at a path: one thing, or what lies in a folder."""
    if not os.path.lexists(path):
        raise BadUsage(f"there is no `{path}`", hint="give the path of a tool, a folder or a skill, or a tool's name")
    if not os.path.isdir(path):
        yield target_at(path, workspace)
    elif os.path.lexists(os.path.join(path, ENTRY)):
        yield Target(path, "agent-studio")
    elif os.path.lexists(os.path.join(path, SKILL_FILE)):
        yield Target(path, "skill")
        for inner in tool_folders(path):
            yield from _files(inner, workspace)
    elif os.path.lexists(os.path.join(path, PLUGINS_FILE)):
        yield from _plugins(path)
    else:
        yield from _files(path, workspace)
        yield from _below(path, workspace)


def _below(path: str, workspace: str | None) -> Iterator[Target]:
    """Templates, skills and plugins that lie in a folder, one step down."""
    for name in sorted(os.listdir(path)):
        inner = os.path.join(path, name)
        marks = (ENTRY, SKILL_FILE, PLUGINS_FILE)
        if not name.startswith(".") and any(os.path.isfile(os.path.join(inner, mark)) for mark in marks):
            yield from targets_of(inner, workspace)


def _plugins(path: str) -> Iterator[Target]:
    """The bash tools that a plugin's own file names, as far as they lie in its folder."""
    descriptor = os.path.join(path, PLUGINS_FILE)
    looked = look(descriptor)
    if isinstance(looked, Finding):
        raise BadUsage(f"`{descriptor}` cannot be read: {looked.message}", hint=looked.hint)
    try:
        said = json.loads(looked.content)
        inside = os.path.join(path, str(said.get("subdirectory", "")))
        files = [os.path.join(inside, each["file"]) for each in said.get("bash_tools", [])]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadUsage(
            f"`{descriptor}` cannot be read: {error}", hint='write {"bash_tools": [{"file": "my_tool.bash"}]}'
        ) from error
    for file in files:
        if "\0" in file:
            raise BadUsage(f"`{descriptor}` names a file with a NUL character in its name")
        if not lies_in(os.path.abspath(file), os.path.abspath(path)) or not lies_in(
            os.path.realpath(file), os.path.realpath(path)
        ):
            raise BadUsage(f"`{descriptor}` names a file outside of its folder: `{file}`")
        yield Target(file, "bash-plugin")


def target_at(path: str, workspace: str | None = None) -> Target:
    """One file, with the skill and the workspace that it lies in."""
    directory = os.path.dirname(os.path.abspath(path))
    above = os.path.dirname(directory)
    is_bundled = os.path.basename(directory) in TOOL_FOLDERS and os.path.lexists(os.path.join(above, SKILL_FILE))
    root = None if workspace is None else os.path.abspath(workspace)
    is_inside = root is not None and f"{directory}/".startswith(root.rstrip("/") + "/")
    return Target(path, format_of(path), above if is_bundled else None, root if is_inside else None)


def _files(directory: str, workspace: str | None) -> Iterator[Target]:
    """The files that a toolbox would take: nothing hidden, no data, no directories."""
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if _counts(entry))
    except OSError as error:
        raise BadUsage(f"`{directory}` cannot be read: {error.strerror}") from error
    for name in names:
        yield target_at(os.path.join(directory, name), workspace)


def _counts(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or is_data(entry.name):
        return False
    try:
        return not entry.is_dir()
    except OSError:  # a link that leads to itself
        return True


def format_of(path: str) -> Format:
    """The format of a file, by what it says. What says nothing is taken for a toolbox executable."""
    looked = look(path)
    if isinstance(looked, Finding):
        return "amp-toolbox"
    if path.endswith(".py") and is_python_tools(looked):
        return "python"
    return "bash-plugin" if looked.is_text and is_bash_plugin(looked.content) else "amp-toolbox"
