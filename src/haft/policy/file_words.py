"""A tool's file in a question, so that a person can read it before approving."""

from __future__ import annotations

import os
from typing import Final

from haft.contracts import ToolSpec

LARGEST: Final = 1_000_000
"""Bytes of a file whose lines are counted."""


def file_words(spec: ToolSpec, workspace: str) -> str:
    """`: PATH, N lines`, the path as seen from the workspace; nothing for a tool that has no file there."""
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
