"""Tracks: starts, finds, archives and deletes them.

Every change is one rename: a track is built in a hidden folder, which then gets the track's name; it is archived by
moving its folder, and deleted by hiding the folder before its files are removed. If a command is killed, a track is
either unchanged or completely changed. `plan`, `decisions` and `view` handle the content of the files.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cdd import files, names, timestamps
from cdd.plan import Plan, read_plan
from cdd.refusals import Refused
from cdd.workspace import Workspace, packaged_text

FILES: Final = ("spec.md", "plan.md", "decisions.md", "current_state.md")
"""The files that a person or an agent writes. `metadata.json` is cdd's own."""

SETUP: Final = "setup"

_ARCHIVED: Final = re.compile(r"(\d{14})_(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Track:
    """The folder of a track, active or archived."""

    name: str
    path: str

    def read(self, file: str) -> bytes | None:
        """The content of one of the track's files; None if the file is missing."""
        return files.read(os.path.join(self.path, file))

    def plan(self) -> Plan:
        """The parsed `plan.md`; a plan without tasks if the file is missing."""
        return read_plan(files.text_of(self.read("plan.md") or b""))

    def metadata(self) -> dict[str, Any]:
        """The content of `metadata.json`; empty if the file is missing."""
        content = self.read("metadata.json")
        if content is None:
            return {}
        try:
            held = json.loads(content)
        except (ValueError, RecursionError):
            held = None
        if not isinstance(held, dict):
            where = os.path.join(os.path.relpath(self.path), "metadata.json")
            raise Refused(f"{where} is not a JSON object.", "repair it, or remove it if it holds nothing you need.")
        return held

    def moment(self, key: str) -> datetime | None:
        """The time that the metadata has under a key, `started_at` or `archived_at`; None if it is missing or not
        valid."""
        return timestamps.from_rfc3339(self.metadata().get(key))


def active(workspace: Workspace) -> list[Track]:
    """The active tracks, sorted by name."""
    return [Track(name, os.path.join(workspace.tracks, name)) for name in _folders(workspace.tracks)]


def archived(workspace: Workspace) -> list[Track]:
    """The archived tracks, the oldest first. The name of each is the name of its folder."""
    found = [name for name in _folders(workspace.archive) if _ARCHIVED.fullmatch(name)]
    return [Track(name, os.path.join(workspace.archive, name)) for name in found]


def find(workspace: Workspace, name: str) -> Track:
    """The active track with that name."""
    name = names.checked(name)
    path = os.path.join(workspace.required().tracks, name)
    if files.is_folder(path):
        return Track(name, path)
    others = [track.name for track in active(workspace)]
    if archived_as(workspace, name):
        hint = f"it is archived; read it with `cdd view {names.as_word(name)} --archived`."
    else:
        start_it = f"start it with `cdd start {names.as_word(name)}`"
        hint = _near(name, others) or f"{start_it}, or list the tracks with `cdd view`."
    raise Refused(f"There is no active track '{name}'.", hint)


def find_archived(workspace: Workspace, name: str) -> Track:
    """The archived track with that former name or folder name; the newest if there are several."""
    name = names.checked(name)
    found = archived_as(workspace.required(), name)
    if found:
        return found[-1]
    raise Refused(f"There is no archived track '{name}'.", "list them with `cdd view --archived`.")


def archived_as(workspace: Workspace, name: str) -> list[Track]:
    """The archived tracks whose former name or folder name this is, the oldest first."""
    return [track for track in archived(workspace) if name in (track.name, _former_name(track.name))]


def only_active(workspace: Workspace) -> Track:
    """The only active track. Raises `Refused` if there is none, or more than one."""
    tracks = active(workspace.required())
    if not tracks:
        raise Refused("There is no active track.", "start one with `cdd start NAME`.")
    if len(tracks) > 1:
        listed = ", ".join(track.name for track in tracks)
        raise Refused(f"There are {len(tracks)} active tracks: {listed}.", "name the one you mean.")
    return tracks[0]


def start(workspace: Workspace, name: str) -> Track:
    """Make a track, completely or not at all."""
    name = names.checked(name)
    workspace.make_folders()
    path = os.path.join(workspace.tracks, name)
    with workspace.exclusive():
        if os.path.lexists(path):
            hint = f"go on with it: `cdd recite {names.as_word(name)}`; or choose another name."
            raise Refused(f"There is already an active track '{name}'.", hint)
        hidden = _hidden(workspace, "starting")
        os.mkdir(hidden)
        try:
            for file in FILES:
                folder = "setup" if name == SETUP and file in ("spec.md", "plan.md") else "track"
                text = packaged_text(folder, file).replace("__NAME__", name)
                files.write(os.path.join(hidden, file), text.encode())
            _write_metadata(hidden, {"name": name, "started_at": timestamps.rfc3339(timestamps.now())})
            os.rename(hidden, path)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        files.sync_folder(workspace.tracks)
    return Track(name, path)


def start_setup(workspace: Workspace) -> Track | None:
    """Make the first track, `setup`. Returns None, and makes nothing, if that track exists or was archived."""
    if os.path.lexists(os.path.join(workspace.tracks, SETUP)) or archived_as(workspace, SETUP):
        return None
    return start(workspace, SETUP)


def archive(workspace: Workspace, name: str) -> tuple[Track, str]:
    """Archive a finished track. Returns the archived track, and as text how long the track was active."""
    find(workspace, name)
    workspace.make_folders()
    with workspace.exclusive():
        track = find(workspace, name)
        plan = track.plan()
        if plan.open_tasks:
            count = "an open task" if len(plan.open_tasks) == 1 else f"{len(plan.open_tasks)} open tasks"
            hint = f"see what is next with `cdd recite {names.as_word(track.name)}`."
            raise Refused(f"The plan of '{track.name}' still has {count}:\n{plan.listed_open_tasks()}", hint)
        metadata = track.metadata()
        moment, path = _free_place(workspace, track.name)
        _write_metadata(track.path, {**metadata, "archived_at": timestamps.rfc3339(moment)})
        try:
            os.rename(track.path, path)
        except OSError:
            _write_metadata(track.path, metadata)
            raise
        files.sync_folder(workspace.archive)
        files.sync_folder(workspace.tracks)
    took = timestamps.between(timestamps.from_rfc3339(metadata.get("started_at")), moment)
    return Track(os.path.basename(path), path), took


def delete(workspace: Workspace, name: str) -> None:
    """Remove an active track and all its files."""
    find(workspace, name)
    hidden = _hidden(workspace, "deleting")
    with workspace.exclusive():
        track = find(workspace, name)
        os.rename(track.path, hidden)
        shutil.rmtree(hidden)
        files.sync_folder(workspace.tracks)


def _folders(folder: str) -> list[str]:
    if not files.is_folder(folder):
        return []
    with os.scandir(folder) as entries:
        return sorted(one.name for one in entries if not one.name.startswith(".") and one.is_dir(follow_symlinks=False))


def _hidden(workspace: Workspace, doing: str) -> str:
    return os.path.join(workspace.tracks, f".{doing}-{os.urandom(6).hex()}")


def _write_metadata(folder: str, metadata: dict[str, Any]) -> None:
    text = json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
    files.write(os.path.join(folder, "metadata.json"), text.encode("utf-8", "backslashreplace"))


def _free_place(workspace: Workspace, name: str) -> tuple[datetime, str]:
    """The first second from now on for which the archive has no folder of this track name, and the path of that
    folder."""
    moment = timestamps.now()
    while True:
        path = os.path.join(workspace.archive, f"{timestamps.compact(moment)}_{name}")
        if not os.path.lexists(path):
            return moment, path
        moment += timedelta(seconds=1)


def _former_name(folder: str) -> str:
    found = _ARCHIVED.fullmatch(folder)
    return found[2] if found else folder


def _near(name: str, others: list[str]) -> str:
    close = difflib.get_close_matches(name, others, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else ""
