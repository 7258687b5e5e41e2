"""Tracks: making them, finding them, archiving and deleting them.

Every change is one rename: a track is built in a hidden folder and then gets its name; it is archived by moving its
folder, and deleted by hiding the folder before its files go. A command that is killed leaves the track as it was or as
it shall be. What is in the files is the business of `plan`, `decisions` and `view`.
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

from cdd import files, moments, names
from cdd.plan import Plan, read_plan
from cdd.refusals import Refused
from cdd.workspace import Workspace, shipped

FILES: Final = ("spec.md", "plan.md", "decisions.md", "current_state.md")
"""What a person or an agent writes. `metadata.json` is cdd's own."""

SETUP: Final = "setup"

_ARCHIVED: Final = re.compile(r"(\d{14})_(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Track:
    """A folder with a track in it, active or archived."""

    name: str
    path: str

    def read(self, file: str) -> bytes | None:
        """One of its files, or None where it is missing."""
        return files.read(os.path.join(self.path, file))

    def plan(self) -> Plan:
        """What `plan.md` says; a missing one has no tasks."""
        return read_plan(files.text_of(self.read("plan.md") or b""))

    def metadata(self) -> dict[str, Any]:
        """What `metadata.json` holds; a missing one holds nothing."""
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
        """`started_at` or `archived_at`, where it can be read."""
        return moments.from_rfc3339(self.metadata().get(key))


def active(workspace: Workspace) -> list[Track]:
    """The tracks that are worked on, by name."""
    return [Track(name, os.path.join(workspace.tracks, name)) for name in _folders(workspace.tracks)]


def archived(workspace: Workspace) -> list[Track]:
    """The tracks that are done, the oldest first. Each is called by its folder's name."""
    found = [name for name in _folders(workspace.archive) if _ARCHIVED.fullmatch(name)]
    return [Track(name, os.path.join(workspace.archive, name)) for name in found]


def find(workspace: Workspace, name: str) -> Track:
    """The active track of that name."""
    name = names.checked(name)
    path = os.path.join(workspace.required().tracks, name)
    if files.is_folder(path):
        return Track(name, path)
    others = [track.name for track in active(workspace)]
    if archived_as(workspace, name):
        hint = f"it is archived; read it with `cdd view {names.as_word(name)} --archived`."
    else:
        start_it = f"start it with `cdd start {names.as_word(name)}`"
        hint = _near(name, others) or f"{start_it}, or see what there is with `cdd view`."
    raise Refused(f"There is no active track '{name}'.", hint)


def find_archived(workspace: Workspace, name: str) -> Track:
    """The archived track of that name or folder; the newest where there are several."""
    name = names.checked(name)
    found = archived_as(workspace.required(), name)
    if found:
        return found[-1]
    raise Refused(f"There is no archived track '{name}'.", "see what there is with `cdd view --archived`.")


def archived_as(workspace: Workspace, name: str) -> list[Track]:
    """The archived tracks that had this name, the oldest first, or the one whose folder has it."""
    return [track for track in archived(workspace) if name in (track.name, _former_name(track.name))]


def the_only(workspace: Workspace) -> Track:
    """The active track, where there is exactly one."""
    tracks = active(workspace.required())
    if not tracks:
        raise Refused("There is no active track.", "start one with `cdd start NAME`.")
    if len(tracks) > 1:
        listed = ", ".join(track.name for track in tracks)
        raise Refused(f"There are {len(tracks)} active tracks: {listed}.", "name the one you mean.")
    return tracks[0]


def start(workspace: Workspace, name: str) -> Track:
    """Make a track, whole or not at all."""
    name = names.checked(name)
    workspace.prepared()
    path = os.path.join(workspace.tracks, name)
    with workspace.changing():
        if os.path.lexists(path):
            hint = f"go on with it: `cdd recite {names.as_word(name)}`; or choose another name."
            raise Refused(f"There is already an active track '{name}'.", hint)
        hidden = _hidden(workspace, "starting")
        os.mkdir(hidden)
        try:
            for file in FILES:
                folder = "setup" if name == SETUP and file in ("spec.md", "plan.md") else "track"
                text = shipped(folder, file).replace("__NAME__", name)
                files.write(os.path.join(hidden, file), text.encode())
            _write_metadata(hidden, {"name": name, "started_at": moments.rfc3339(moments.now())})
            os.rename(hidden, path)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        files.settle(workspace.tracks)
    return Track(name, path)


def start_setup(workspace: Workspace) -> Track | None:
    """Make the first track, unless it is there or was archived."""
    if os.path.lexists(os.path.join(workspace.tracks, SETUP)) or archived_as(workspace, SETUP):
        return None
    return start(workspace, SETUP)


def archive(workspace: Workspace, name: str) -> tuple[Track, str]:
    """Put a finished track away; where it is now, and how long it took."""
    find(workspace, name)
    workspace.prepared()
    with workspace.changing():
        track = find(workspace, name)
        plan = track.plan()
        if plan.open_tasks:
            count = "an open task" if len(plan.open_tasks) == 1 else f"{len(plan.open_tasks)} open tasks"
            hint = f"see what is next with `cdd recite {names.as_word(track.name)}`."
            raise Refused(f"The plan of '{track.name}' still has {count}:\n{plan.listed_open_tasks()}", hint)
        metadata = track.metadata()
        moment, path = _free_place(workspace, track.name)
        _write_metadata(track.path, {**metadata, "archived_at": moments.rfc3339(moment)})
        try:
            os.rename(track.path, path)
        except OSError:
            _write_metadata(track.path, metadata)
            raise
        files.settle(workspace.archive)
        files.settle(workspace.tracks)
    took = moments.between(moments.from_rfc3339(metadata.get("started_at")), moment)
    return Track(os.path.basename(path), path), took


def delete(workspace: Workspace, name: str) -> None:
    """Remove an active track and all that is in it."""
    find(workspace, name)
    hidden = _hidden(workspace, "deleting")
    with workspace.changing():
        track = find(workspace, name)
        os.rename(track.path, hidden)
        shutil.rmtree(hidden)
        files.settle(workspace.tracks)


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
    """The next second in which no track of this name was archived, and the folder of that moment."""
    moment = moments.now()
    while True:
        path = os.path.join(workspace.archive, f"{moments.compact(moment)}_{name}")
        if not os.path.lexists(path):
            return moment, path
        moment += timedelta(seconds=1)


def _former_name(folder: str) -> str:
    found = _ARCHIVED.fullmatch(folder)
    return found[2] if found else folder


def _near(name: str, others: list[str]) -> str:
    close = difflib.get_close_matches(name, others, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else ""
