"""The files that a packaged server keeps for itself between its starts: a directory of its own in the state home.

A server sees an empty home directory, which is deleted when the server ends, and cannot write into its installation. So
haft tells it, with variables, where it can keep files. Files there are no changes of a call, and cannot be undone.
"""

from __future__ import annotations

import hashlib
import os
from typing import Final

from haft.sources.mcp import Provider

FOLDER: Final = "server-files"
_FILES: Final = {"@modelcontextprotocol/server-memory": ("MEMORY_FILE_PATH", "memory.jsonl")}
"""Packages that keep a file in their own installation, unless a variable names another place: the variable, and the
name of the file."""


def own_files(state_home: str, provider: Provider) -> str:
    """The directory of a server's own files. A server with the same name in another configuration file has another
    directory."""
    key = hashlib.sha256(f"{provider.source}\0{provider.name}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return os.path.join(state_home, FOLDER, f"{provider.name}-{key}")


def variables_for(package: str, folder: str) -> dict[str, str]:
    """The variables that tell a server of this package where it can keep files."""
    told = {"XDG_DATA_HOME": os.path.join(folder, "data"), "XDG_STATE_HOME": os.path.join(folder, "state")}
    if package in _FILES:
        variable, name = _FILES[package]
        told[variable] = os.path.join(folder, name)
    return told
