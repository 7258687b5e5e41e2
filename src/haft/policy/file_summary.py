"""Names the file of a tool in a prompt, so that a person can read the file before they approve."""

from __future__ import annotations

import os
from typing import Final

from haft.contracts import ToolSpec

LARGEST: Final = 1_000_000
"""The size in bytes up to which haft counts the lines of a file."""


def file_summary(spec: ToolSpec, workspace: str) -> str:
    """`: PATH, N lines`, with the path relative to the workspace; an empty text if the tool has no file in the
    workspace."""
    path = next(iter(spec.files), spec.origin)
    root = os.path.realpath(workspace)
    if not f"{path}/".startswith(f"{root}/") or not os.path.isfile(path):
        return ""
    shown = os.path.relpath(path, root)
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError:
        return f": {shown}"
    if b"\0" in data or len(data) > LARGEST:
        return f": {shown}, {os.path.getsize(path):_} bytes"
    lines = len(data.splitlines())
    return f": {shown}, {lines} line{'s' * (lines != 1)}"
