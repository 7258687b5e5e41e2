"""Finds the programs with which servers are installed and run: node, npm, bun and Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

from haft.contracts import ToolFailed
from haft.files import steps_of
from haft.lazy import regex
from haft.sandbox import is_below

_NPM_BESIDE_NODE: Final = ("lib", "node_modules", "npm", "bin", "npm-cli.js")
_VERSION: Final = regex(r"(?:python)?(\d+(?:\.\d+){0,2})")


def base_python() -> str:
    """The interpreter that environments use."""
    from haft.toolsets.environments.places import base_python as found  # Loads the format of templates.

    return found()


def find_program(name: str, env: Mapping[str, str], workspace: str) -> str | None:
    """The absolute path of a program on PATH; None if there is none. Directories of the workspace do not count, because
    calls can write there."""
    entries = env.get("PATH", os.defpath).split(os.pathsep)
    real = os.path.realpath(workspace)
    usable = [
        entry
        for entry in entries
        if os.path.isabs(entry) and not is_below(os.path.realpath(entry), (real,)) and not is_below(entry, (workspace,))
    ]
    import shutil

    return shutil.which(name, path=os.pathsep.join(usable))


def find_node(env: Mapping[str, str], workspace: str) -> str | None:
    """The absolute path of node without links; None if there is none."""
    found = find_program("node", env, workspace)
    return None if found is None else os.path.realpath(found)


def find_npm(node: str, env: Mapping[str, str], workspace: str) -> str | None:
    """The absolute path of npm's script; None if there is none. The one that came with node is preferred."""
    beside = os.path.join(os.path.dirname(os.path.dirname(node)), *_NPM_BESIDE_NODE)
    if os.path.isfile(beside):
        return beside
    found = find_program("npm", env, workspace)
    if found is None or not (real := os.path.realpath(found)).endswith("npm-cli.js"):
        return None
    return real


def find_python(asked: str | None, env: Mapping[str, str], workspace: str) -> str:
    """The absolute path of the Python that a command asks for; haft's own if the command asks for none. Raises
    `ToolFailed` if there is no such Python."""
    if asked is None:
        return base_python()
    if os.path.isabs(asked) and os.path.isfile(asked) and not is_below(os.path.realpath(asked), (workspace,)):
        return asked
    found = _VERSION.fullmatch(asked)
    if found is not None:
        wanted = tuple(map(int, found[1].split(".")))
        if sys.version_info[: len(wanted)] == wanted:
            return base_python()
        program = find_program(f"python{found[1]}", env, workspace)
        if program is not None:
            return program
    raise ToolFailed(
        f"the command asks for Python `{asked}`, which was not found",
        hint="install it so that it is on the PATH, or remove the option",
    )


def readable_for(python: str) -> tuple[str, ...]:
    """The directories that must be readable to run a Python."""
    steps = list(steps_of(python))
    prefix = sys.base_prefix if python == base_python() else os.path.dirname(os.path.dirname(os.path.realpath(python)))
    return tuple(dict.fromkeys((prefix, *(os.path.dirname(step) for step in steps))))
