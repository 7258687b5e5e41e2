"""The file that makes a directory a backup. It is written last, and replaced at once: a backup that was interrupted
either has no marker, or still has the marker of the backup before."""

from __future__ import annotations

import json
import os
from typing import Any, Final

from haft.contracts import BadUsage
from haft.service.private_files import sync_directory
from haft.values import dataclass

NAME: Final = "haft-backup.json"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Marker:
    """What a backup says of itself."""

    directory: str
    """The name of the directory with the copy of the state home."""
    made_at: str
    home: str
    """The path of the state home."""
    version: str
    areas: tuple[tuple[str, str], ...] = ()
    """The area of each workspace: its path when the backup was made, and its name in `changes/`."""

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "directory": self.directory,
            "madeAt": self.made_at,
            "home": self.home,
            "version": self.version,
            "areas": [list(each) for each in self.areas],
        }


def write_marker(backup: str, marker: Marker) -> None:
    """Make the backup complete. Everything else must be on the disk already."""
    fresh = os.path.join(backup, f"{NAME}.new")
    with open(fresh, "w", encoding="utf-8") as file:
        json.dump(marker.to_json(), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, os.path.join(backup, NAME))
    sync_directory(backup)


def read_marker(backup: str) -> Marker:
    """The marker of a backup. Raises `BadUsage` if the directory is no complete backup that this haft can read."""
    try:
        with open(os.path.join(backup, NAME), encoding="utf-8") as file:
            found = json.load(file)
        if found["format"] != FORMAT:
            raise BadUsage(f"the backup {backup} was made by a newer haft ({found['version']})", hint="update haft")
        name = str(found["directory"])
        if os.path.basename(name) != name or not os.path.isdir(os.path.join(backup, name)):
            raise ValueError(name)
        areas = tuple((str(path), str(key)) for path, key in found["areas"])
        return Marker(name, str(found["madeAt"]), str(found["home"]), str(found["version"]), areas)
    except FileNotFoundError:
        hint = "a backup that was interrupted has no marker: make it again with `haft store backup DIR`"
        raise BadUsage(f"{backup} is no complete backup: it has no {NAME}", hint=hint) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadUsage(f"{os.path.join(backup, NAME)} cannot be read: {error}") from error
