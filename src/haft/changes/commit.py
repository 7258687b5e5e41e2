"""Commits: steps taken under a journal, so that a crash at any instant is finished or taken back, never left half done.

The journal is the manifest of the run, synced before the first step. Its end mark is the place of the run's directory:
while that lies under `live`, the commit is not over, and whoever holds the lock of the dead host takes its steps again.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from haft.changes.area import Area
from haft.changes.copying import copy
from haft.changes.entry import UNREADABLE, Entry
from haft.changes.looking import look
from haft.changes.manifest import Manifest
from haft.changes.places import Tree, rename, set_mode
from haft.changes.steps import INSIDE, Ground, Interfered, Step, as_latin, from_latin
from haft.files.syncing import sync_filesystem

Mark = Literal["held", "commit"]

OUT: Final = "out"
_OPENED: Final = "opened"


class Refused(Exception):
    """The commit could not be made, and the workspace is as it was. `path` is where it met something."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


def commit(area: Area, directory: str, manifest: Manifest, steps: Sequence[Step]) -> Manifest:
    """Bring a change set about; `directory` is the run's, below the area. The manifest as it was written. `Refused`
    where someone interfered or the machine refused, with everything taken back."""
    full = os.path.join(area.path, directory)
    os.makedirs(os.path.join(full, OUT), mode=0o700, exist_ok=True)
    with Tree(area.workspace, forced=True) as workspace, Tree(area.path, forced=True) as ours:
        closed = _closed(workspace, steps)
        ground = Ground(workspace, ours)
        manifest, steps = _known_by_inode(ground, manifest, steps)
        notes = {
            **manifest.notes,
            "mark": "commit",
            "steps": [step.to_json() for step in steps],
            _OPENED: [[as_latin(path), mode] for path, mode in closed.items()],
        }
        manifest = replace(manifest, notes=notes)
        write_journal(full, manifest)
        taken: list[Step] = []
        try:
            for step in steps:
                taken.append(step)
                ground.advance(step)
            bring_home(ground, directory, steps)
        except (Interfered, OSError) as error:
            _take_back(ground, taken)
            workspace.restore()
            write_journal(full, replace(manifest, notes={**manifest.notes, "mark": "held"}))
            raise Refused(getattr(error, "path", None) or taken[-1].path, _why(error)) from error
        workspace.restore()
        _sync(area.path)
    return manifest


def _known_by_inode(ground: Ground, manifest: Manifest, steps: Sequence[Step]) -> tuple[Manifest, list[Step]]:
    """What comes in is told from what goes out by its inode: the one that it has where it waits."""
    inodes: dict[str, int] = {}
    known: list[Step] = []
    for step in steps:
        if step.put is not None and step.after is not None:
            status = ground.status(step.put)
            if status is None:
                raise Refused(step.path, "what was to come in is not there any more")
            if status.st_ino != step.after.inode:
                inodes[step.path] = status.st_ino
                step = replace(step, after=replace(step.after, inode=status.st_ino))  # noqa: PLW2901
        known.append(step)
    if inodes:
        entries = tuple(
            replace(each, after=replace(each.after, inode=inodes[each.path]))
            if each.path in inodes and each.after is not None
            else each
            for each in manifest.entries
        )
        manifest = replace(manifest, entries=entries)
    return manifest, known


def _sync(path: str) -> None:
    """Everything on the filesystem of the area, and so of the workspace, survives power loss from here on."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_filesystem(descriptor)
    finally:
        os.close(descriptor)


def _why(error: Exception) -> str:
    if isinstance(error, Interfered):
        return "someone changed it at the same moment"
    return getattr(error, "strerror", None) or str(error)


def write_journal(full: str, manifest: Manifest) -> None:
    """On the disk, with the directory that says so."""
    manifest.write(full)
    descriptor = os.open(full, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def steps_of(manifest: Manifest) -> list[Step]:
    """The steps that a journal names."""
    entries = {each.path: (each.before, each.after) for each in manifest.entries}
    return [Step.from_json(words, _narrowed(words, entries)) for words in manifest.notes.get("steps", ())]


def _narrowed(
    words: list[Any], entries: dict[str, tuple[Entry | None, Entry | None]]
) -> dict[str, tuple[Entry | None, Entry | None]]:
    """A swap that takes nothing out began with nothing there, whatever the change set says of the path as a whole."""
    _number, verb, path, put, out = words
    before, after = entries[from_latin(path)]
    if verb == "swap":
        before, after = before if out is not None else None, after if put is not None else None
    elif verb == "mkdir":
        before = None
    elif verb == "rmdir":
        after = None
    elif before is not None and not before.is_directory:
        before = None
    return {from_latin(path): (before, after)}


def resume(area: Area, directory: str, manifest: Manifest) -> bool:
    """After a crash: finish the commit, or take it back where that cannot be done. Whether it was finished."""
    steps = steps_of(manifest)
    full = os.path.join(area.path, directory)
    with Tree(area.workspace, forced=True) as workspace, Tree(area.path, forced=True) as ours:
        ground = Ground(workspace, ours)
        opened = {from_latin(path): mode for path, mode in manifest.notes.get(_OPENED, ())}
        try:
            if not _is_sound(ground, steps):
                raise Interfered("")
            for step in steps:
                ground.advance(step)
            bring_home(ground, directory, steps)
            done = True
        except (Interfered, OSError):
            _take_back(ground, steps)
            write_journal(full, replace(manifest, notes={**manifest.notes, "mark": "held"}))
            done = False
        workspace.restore()
        for path, mode in opened.items():
            if not any(step.verb == "mode" and step.path == path for step in steps):
                with contextlib.suppress(OSError):
                    set_mode(workspace, path, mode)
        _sync(area.path)
    return done


def _is_sound(ground: Ground, steps: Sequence[Step]) -> bool:
    """Whether all that is to come in is there and whole: the power may have failed before it was written out."""
    for step in steps:
        wanted = step.after
        if step.verb != "swap" or wanted is None or step.put is None or wanted.kind != "file":
            continue
        if wanted.content == UNREADABLE:
            continue
        here = ground.workspace.status(step.path)
        if here is not None and here.st_ino == wanted.inode:
            found = look(ground.workspace, step.path, here, forced=True)
        else:
            tree, place = ground.place(step.put)
            found = look(tree, place, forced=True)
        if found is None or found.content != wanted.content:
            return False
    return True


def _take_back(ground: Ground, steps: Sequence[Step]) -> None:
    for step in reversed(steps):
        # What cannot be taken back stays in the run's directory: nothing is thrown away.
        with contextlib.suppress(Interfered, OSError):
            ground.retreat(step)


def bring_home(ground: Ground, directory: str, steps: Sequence[Step]) -> None:
    """What had to be displaced inside the workspace is copied to where it is kept, and taken away there."""
    stations = set()
    for step in steps:
        for where in (step.out, step.put):
            if where is not None and where.startswith(INSIDE):
                stations.add(os.path.dirname(where[len(INSIDE) :]))
        if step.out is None or not step.out.startswith(INSIDE):
            continue
        place = step.out[len(INSIDE) :]
        target = f"{directory}/{OUT}/{step.number}"
        if ground.area.status(target) is None and ground.workspace.status(place) is not None:
            copy(ground.workspace, place, ground.area, f"{target}.part")
            rename(ground.area, f"{target}.part", ground.area, target)
    for station in stations:
        _remove_inside(ground.workspace, station)


def _remove_inside(tree: Tree, path: str) -> None:
    """A directory of ours in the workspace."""
    status = tree.status(path)
    if status is None:
        return
    found = list(tree.walk(path)) if stat.S_ISDIR(status.st_mode) else []
    for inner, below in reversed(found):
        place, name = tree.at(inner)
        (os.rmdir if stat.S_ISDIR(below.st_mode) else os.unlink)(name, dir_fd=place)
    tree.forget()
    place, name = tree.at(path)
    os.rmdir(name, dir_fd=place)


def _closed(workspace: Tree, steps: Sequence[Step]) -> dict[str, int]:
    """The directories that will have to be opened for a moment, and their modes: the journal must know, or a crash
    would leave them open."""
    if os.geteuid() == 0:
        return {}
    found: dict[str, int] = {}
    above = {""}
    for step in steps:
        path = os.path.dirname(step.path)
        while path and path not in above:
            above.add(path)
            path = os.path.dirname(path)
    with Tree(workspace.path) as quiet:
        for path in sorted(above - {""}):
            with contextlib.suppress(OSError):
                status = quiet.status(path)
                if status is not None and stat.S_ISDIR(status.st_mode) and status.st_mode & 0o700 != 0o700:
                    found[path] = stat.S_IMODE(status.st_mode)
    return found
