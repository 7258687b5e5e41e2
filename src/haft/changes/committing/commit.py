"""Commits: steps taken under a journal, so that a crash at any instant is finished or taken back, never left half done.

The journal is the manifest of the run, synced before the first step. Its end mark is the place of the run's directory:
while that lies under `live`, the commit is not over, and whoever holds the lock of the dead host takes its steps again.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from haft.changes.committing.area import Area
from haft.changes.committing.copying import copy
from haft.changes.committing.entry import UNREADABLE, Entry
from haft.changes.committing.looking import look
from haft.changes.committing.manifest import MANIFEST, TAKEN_BACK, Manifest
from haft.changes.committing.opened import PASSING, Opened
from haft.changes.committing.places import Tree, is_bound_by_modes, rename, set_mode
from haft.changes.committing.steps import INSIDE, Ground, Interfered, Step, as_latin, from_latin
from haft.files import sync_filesystem
from haft.values import replace

Mark = Literal["held", "commit"]

OUT: Final = "out"
_OPENED: Final = "opened"
_UNSOUND: Final = "unsound"


class Unfinished(Exception):
    """The disk failed in the middle of a commit, and what is left cannot be written down now. Whoever takes the lock
    next makes of it what `becomes` says: nothing but the journal may be relied on until then, and nothing removed."""

    def __init__(self, path: str, why: str, becomes: Literal["committed", "taken back"]) -> None:
        self.path = path
        self.why = why
        self.becomes = becomes
        super().__init__(f"{path}: {why}")


class Refused(Exception):
    """The commit could not be made, and the workspace is as it was. `path` is where it met something."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


def commit(area: Area, directory: str, manifest: Manifest, steps: Sequence[Step], made: Mapping[str, int]) -> Manifest:
    """Bring a change set about; `directory` is the run's, below the area. `made` are the inodes of files that come with
    a directory and are not known by the manifest. The manifest as it was written. `Refused` where someone interfered or
    the machine refused, with everything taken back."""
    full = os.path.join(area.path, directory)
    os.makedirs(os.path.join(full, OUT), mode=0o700, exist_ok=True)
    live = os.path.dirname(full)
    with (
        Tree(area.workspace, forced=True, opened=Opened(live)) as workspace,
        Tree(area.path, forced=True, opened=Opened(live)) as ours,
    ):
        closed = _closed(workspace, steps)
        ground = Ground(workspace, ours, {each.path: each.before for each in manifest.entries})
        manifest, steps = _known_by_inode(ground, manifest, steps, made)
        notes = {
            **manifest.notes,
            "mark": "commit",
            "steps": [step.to_json() for step in steps],
            _OPENED: [[as_latin(path), mode] for path, mode in closed.items()],
        }
        manifest = replace(manifest, notes=notes)
        try:
            write_journal(full, manifest)
        except OSError:
            with contextlib.suppress(OSError):  # No step was taken: whoever finds the journal calls it off.
                _call_off(full)
            raise
        taken: list[Step] = []
        try:
            for step in steps:
                taken.append(step)
                ground.advance(step)
            _bring_home(ground, directory, steps)
        except (Interfered, OSError) as error:
            path, why = getattr(error, "path", None) or taken[-1].path, _why(error)
            try:
                _take_back(ground, taken)
            except OSError:
                raise Unfinished(path, why, "committed") from error
            try:
                _clear_stations(ground, steps)
                workspace.restore()
                _mark_taken_back(full, manifest)
            except OSError:
                raise Unfinished(path, why, "taken back") from error
            raise Refused(path, why) from error
        try:
            _clear(ground, steps)
        except OSError as error:
            raise Unfinished(steps[-1].path, _why(error), "committed") from error
        workspace.restore()
    return manifest


def _known_by_inode(
    ground: Ground, manifest: Manifest, steps: Sequence[Step], made: Mapping[str, int]
) -> tuple[Manifest, list[Step]]:
    """What comes in is told from what goes out by its inode: the one that it has where it waits."""
    inodes = dict(made)
    known: list[Step] = []
    for step in steps:
        if step.put is not None and step.after is not None:
            status = ground.status(step.put)
            if status is None:
                raise Refused(step.path, "what was to come in is not there any more")
            if status.st_ino != step.after.inode:
                inodes[step.path] = status.st_ino
                step = replace(step, after=replace(step.after, inode=status.st_ino))
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


def sync(area: Area) -> None:
    """Everything in the area and in the workspace survives power loss from here on."""
    for path in (area.path,) if area.moves else (area.path, area.workspace):
        _sync(path)


def _sync(path: str) -> None:
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


def _mark_taken_back(full: str, manifest: Manifest) -> None:
    """So that nobody takes its steps again. Where the disk has no room for that, the name has to say it."""
    try:
        write_journal(full, replace(manifest, notes={**manifest.notes, "mark": "held"}))
    except OSError:
        _call_off(full)


def _call_off(full: str) -> None:
    """What was held may have a manifest from before: it is right as it is."""
    found = Manifest.read(full)
    if found is not None and found.notes.get("mark") == "commit":
        os.rename(os.path.join(full, MANIFEST), os.path.join(full, TAKEN_BACK))


def is_left(full: str) -> bool:
    """Whether the directory of a run holds a journal."""
    return any(os.path.exists(os.path.join(full, name)) for name in (MANIFEST, TAKEN_BACK))


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
    """After a crash, or after the disk failed: finish the commit, or take it back where that cannot be done. One of
    which no step was taken is called off. Whether it was finished."""
    steps = steps_of(manifest)
    full = os.path.join(area.path, directory)
    live = os.path.dirname(full)
    with (
        Tree(area.workspace, forced=True, opened=Opened(live)) as workspace,
        Tree(area.path, forced=True, opened=Opened(live)) as ours,
    ):
        ground = Ground(workspace, ours)
        closed = {from_latin(path): mode for path, mode in manifest.notes.get(_OPENED, ())}
        try:
            if not _is_home(ground, directory, steps):
                if not _is_begun(ground, steps) or not _is_sound(ground, manifest, steps):
                    raise Interfered("")
                for step in steps:
                    ground.advance(step)
            _bring_home(ground, directory, steps)
            _clear(ground, steps)
            done = True
        except (Interfered, OSError) as error:
            if getattr(error, "errno", None) in PASSING and _is_home(ground, directory, steps):
                raise  # It cannot be taken back any more.
            _take_back(ground, steps)
            _clear_stations(ground, steps)
            _mark_taken_back(full, manifest)
            done = False
        workspace.restore()
        for path, mode in closed.items():
            if not any(step.verb == "mode" and step.path == path for step in steps):
                with contextlib.suppress(OSError):
                    set_mode(workspace, path, mode)
        sync(area)
    return done


def _is_begun(ground: Ground, steps: Sequence[Step]) -> bool:
    """Whether any step was taken. Where none is left to take, all were."""
    moves = [step for step in steps if step.verb != "mode"]
    if not steps or any(map(ground.is_taken, moves)):
        return True
    ground.workspace.restore()  # What was opened to look into it has another mode meanwhile.
    return any(ground.is_taken(step) for step in steps if step.verb == "mode")


def _is_sound(ground: Ground, manifest: Manifest, steps: Sequence[Step], *, in_place: bool = False) -> bool:
    """Whether all that is to come in is there and whole: the power may have failed before it was written out."""
    for path, wanted, step in _files_of(manifest, steps):
        here = ground.workspace.status(path)
        is_ours = here is not None and here.st_ino == wanted.inode
        if is_ours or (not in_place and path != step.path and _is_in(ground, step)):
            found = look(ground.workspace, path, forced=True)
        elif in_place:
            continue  # Someone has replaced it since.
        else:
            assert step.put is not None
            tree, place = ground.place(step.put)
            found = look(tree, place + path[len(step.path) :], forced=True)
        if found is None or found.content != wanted.content:
            return False
    return True


def _files_of(manifest: Manifest, steps: Sequence[Step]) -> Iterator[tuple[str, Entry, Step]]:
    """The files that come in, each with the step that brings it: its own, or that of a directory above it."""
    coming = {step.path: step for step in steps if step.verb == "swap" and step.put is not None}
    for each in manifest.entries:
        wanted = each.after
        if wanted is None or wanted.kind != "file" or wanted.content == UNREADABLE:
            continue
        above = each.path
        while above and above not in coming:
            above = os.path.dirname(above)
        step = coming.get(above)
        if step is not None and step.after is not None:
            yield each.path, step.after if above == each.path else wanted, step


def _is_in(ground: Ground, step: Step) -> bool:
    here = ground.workspace.status(step.path)
    return here is not None and step.after is not None and here.st_ino == step.after.inode


def undo_unsound(area: Area, manifest: Manifest) -> bool:
    """After the power failed: take back a commit whose files never came onto the disk. Whether that was so."""
    kept = f"kept/{manifest.run}"
    steps = [_moved(step, kept) for step in steps_of(manifest)]
    with Tree(area.workspace, forced=True) as workspace, Tree(area.path, forced=True) as ours:
        ground = Ground(workspace, ours)
        if _is_sound(ground, manifest, steps, in_place=True):
            return False
        os.makedirs(os.path.join(area.path, kept, _UNSOUND), mode=0o700, exist_ok=True)
        _take_back(ground, steps)
        sync(area)
    return True


def _moved(step: Step, kept: str) -> Step:
    """The same step after the end of its commit: what it displaced has moved on, and what it put in place came from
    where nothing is any more."""
    out = None if step.out is None else f"{kept}/{OUT}/{step.number}"
    return replace(step, out=out, put=None if step.put is None else f"{kept}/{_UNSOUND}/{step.number}")


def _take_back(ground: Ground, steps: Sequence[Step]) -> None:
    """Where someone is in the way, what cannot be taken back stays in the run's directory: nothing is thrown away.
    Where the disk fails, all others are taken back, and then that error is raised."""
    for tree in (ground.workspace, ground.area):
        tree.insist_no_more()
    failure: OSError | None = None
    for step in reversed(steps):
        try:
            ground.retreat(step)
        except Interfered:
            continue
        except OSError as error:
            failure = error if error.errno in PASSING else failure
    if failure is not None:
        raise failure


def _bring_home(ground: Ground, directory: str, steps: Sequence[Step]) -> None:
    """What had to be displaced inside the workspace is copied to where it is kept."""
    if not _stations(steps):
        return
    for step, target in _homes(directory, steps):
        assert step.out is not None
        place, part = step.out[len(INSIDE) :], f"{target}.part"
        if ground.area.status(target) is None and ground.workspace.status(place) is not None:
            remove_inside(ground.area, part)  # Someone was killed while copying it.
            copy(ground.workspace, place, ground.area, part)
            rename(ground.area, part, ground.area, target)
    for tree in (ground.area, ground.workspace):
        _sync(tree.path)


def _clear(ground: Ground, steps: Sequence[Step]) -> None:
    """Once all is home, take away the stations."""
    for station in _stations(steps):
        remove_inside(ground.workspace, station)


def _stations(steps: Sequence[Step]) -> set[str]:
    """The directories of ours inside the workspace that steps lead through."""
    places = [where for step in steps for where in (step.out, step.put) if where is not None]
    return {os.path.dirname(where[len(INSIDE) :]) for where in places if where.startswith(INSIDE)}


def _homes(directory: str, steps: Sequence[Step]) -> list[tuple[Step, str]]:
    """The steps that displace something inside the workspace, and where it is to be kept."""
    return [
        (step, f"{directory}/{OUT}/{step.number}")
        for step in steps
        if step.out is not None and step.out.startswith(INSIDE)
    ]


def _is_home(ground: Ground, directory: str, steps: Sequence[Step]) -> bool:
    """Whether every step was taken and all that they displaced is where it is kept: only the stations are left."""
    homes = _homes(directory, steps)
    return bool(homes) and all(ground.area.status(target) is not None for _step, target in homes)


def _clear_stations(ground: Ground, steps: Sequence[Step]) -> None:
    """Once all is taken back only copies are left in them; where an original is, everything stays."""
    for step in steps:
        if step.out is not None and step.out.startswith(INSIDE) and ground.status(step.out) is not None:
            return
        if step.put is not None and step.before is not None and step.put.startswith(INSIDE):
            waiting = ground.status(step.put)
            if waiting is not None and waiting.st_ino == step.before.inode:
                return
    for station in _stations(steps):
        try:
            remove_inside(ground.workspace, station)
        except OSError as error:
            if error.errno in PASSING:
                raise


def remove_inside(tree: Tree, path: str) -> None:
    """Something of ours with all that it holds, and no link followed."""
    status = tree.status(path)
    if status is None:
        return
    found = list(tree.walk(path)) if stat.S_ISDIR(status.st_mode) else []
    for inner, below in reversed(found):
        place, name = tree.at(inner)
        (os.rmdir if stat.S_ISDIR(below.st_mode) else os.unlink)(name, dir_fd=place)
    tree.forget()
    place, name = tree.at(path)
    (os.rmdir if stat.S_ISDIR(status.st_mode) else os.unlink)(name, dir_fd=place)


def _closed(workspace: Tree, steps: Sequence[Step]) -> dict[str, int]:
    """The directories that will have to be opened for a moment, and their modes: the journal must know, or a crash
    would leave them open."""
    if not is_bound_by_modes():
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
