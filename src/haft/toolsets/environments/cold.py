"""Stores why the warm pool cannot keep a template's program loaded, so that other processes can show the reason."""

from __future__ import annotations

import contextlib
import json
import os

from haft.toolsets.environments.places import key_of


def note_cold(state_home: str, folder: str, version: str, why: str) -> None:
    """Save why the warm pool cannot keep this version of a template's program loaded. Errors while saving are
    ignored."""
    path = _path(state_home, folder)
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump({"version": version, "why": why}, file)
        os.replace(f"{path}.new", path)


def why_cold(state_home: str, folder: str, version: str) -> str | None:
    """The saved reason why the warm pool cannot keep this version of a template's program loaded; None if no reason is
    saved."""
    try:
        with open(_path(state_home, folder), encoding="utf-8") as file:
            said = json.load(file)
    except (OSError, ValueError):
        return None
    return str(said["why"]) if said.get("version") == version else None


def _path(state_home: str, folder: str) -> str:
    return os.path.join(state_home, "environments", "cold", key_of(os.path.realpath(folder)))
