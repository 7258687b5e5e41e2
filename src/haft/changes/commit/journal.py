"""Commits: steps taken under a journal, so that a crash at any moment leads to a finished or a reverted commit.

The journal is the manifest of the run, synced before the first step. As long as the run's directory is under `live`,
the commit is not over: if its host dies, another process takes the steps again. A finished commit's directory moves to
`kept`.

If a file cannot be renamed between the area and its path, the steps use a staging directory: a directory `.haft-…` of
the workspace, on the same filesystem as the path. Replaced files are then copied "home": from there to the area.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal

from haft.changes.commit.area import Area
from haft.changes.commit.entry import UNREADABLE, Entry
from haft.changes.commit.exact_copy import copy
from haft.changes.commit.manifest import MANIFEST, TAKEN_BACK, Manifest
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.steps import INSIDE, Interference, Step, StepRunner, as_latin, from_latin
from haft.changes.commit.tree import Tree, is_bound_by_modes, rename, set_mode
from haft.changes.commit.widened_modes import TEMPORARY_ERRORS, WidenedModes
from haft.files import sync_filesystem
from haft.values import replace

Mark = Literal["held", "commit"]

OUT: Final = "out"
_OPENED: Final = "opened"
_UNSOUND: Final = "unsound"


class CommitUnfinished(Exception):
    """The disk failed in the middle of a commit, and again when haft tried to revert or finish the commit. The next
    holder of the workspace lock reverts or finishes it; `becomes` says which. Until then the workspace may hold only
    some of the changes, and nothing may be removed."""

    def __init__(self, path: str, why: str, becomes: Literal["committed", "taken back"]) -> None:
        self.path = path
        self.why = why
        self.becomes = becomes
        super().__init__(f"{path}: {why}")


class CommitRefused(Exception):
    """The commit failed at `path`, all its steps were reverted, and the workspace is as before."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


Turn = Callable[[Manifest, Sequence[Step]], AbstractContextManager[bool]]
"""Called when the journal is written: yields whether the steps may be taken now. If not, the changes were published,
and `resume` takes the steps later."""


def commit(
    area: Area, directory: str, manifest: Manifest, steps: Sequence[Step], made: Mapping[str, int], turn: Turn
) -> Manifest:
    """Apply a change set to the workspace and return the manifest as it was written. `directory` is the run's
    directory, relative to the area. `made` maps paths to the inodes of new files inside directories that move as a
    whole. Raises `CommitRefused`, with every step reverted, if another program changed a path at the same moment or a
    system call failed."""
    full = os.path.join(area.path, directory)
    os.makedirs(os.path.join(full, OUT), mode=0o700, exist_ok=True)
    live = os.path.dirname(full)
    with (
        Tree(area.workspace, forced=True, notes=WidenedModes(live)) as workspace,
        Tree(area.path, forced=True, notes=WidenedModes(live)) as ours,
    ):
        closed = _closed_directories(workspace, steps)
        runner = StepRunner(workspace, ours, {each.path: each.before for each in manifest.entries})
        manifest, steps = _with_waiting_inodes(runner, manifest, steps, made)
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
            with contextlib.suppress(OSError):  # No step was taken: recovery must treat this commit as reverted.
                _rename_journal_as_reverted(full)
            raise
        with turn(manifest, steps) as may_apply:
            if may_apply:
                _take(runner, directory, manifest, steps)
        workspace.restore()
    return manifest


def _take(runner: StepRunner, directory: str, manifest: Manifest, steps: Sequence[Step]) -> None:
    """Take the steps of a commit, or revert all of them."""
    full = os.path.join(runner.area.path, directory)
    taken: list[Step] = []
    try:
        for step in steps:
            taken.append(step)
            runner.apply(step)
        _copy_displaced_home(runner, directory, steps)
    except (Interference, OSError) as error:
        path, why = getattr(error, "path", None) or taken[-1].path, _why(error)
        try:
            _revert_steps(runner, taken)
        except OSError:
            raise CommitUnfinished(path, why, "committed") from error
        try:
            _remove_copies_in_staging(runner, steps)
            runner.workspace.restore()
            _mark_taken_back(full, manifest)
        except OSError:
            raise CommitUnfinished(path, why, "taken back") from error
        raise CommitRefused(path, why) from error
    try:
        _remove_staging(runner, steps)
    except OSError as error:
        raise CommitUnfinished(steps[-1].path, _why(error), "committed") from error


def _with_waiting_inodes(
    runner: StepRunner, manifest: Manifest, steps: Sequence[Step], made: Mapping[str, int]
) -> tuple[Manifest, list[Step]]:
    """Put the current inodes of the new files, which wait at `step.put`, into the manifest and the steps, and return
    both. Steps need the inode to tell a new file from an old one."""
    inodes = dict(made)
    known: list[Step] = []
    for step in steps:
        if step.put is not None and step.after is not None:
            status = runner.status(step.put)
            if status is None:
                raise CommitRefused(step.path, "the new file no longer exists")
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
    """Sync the filesystems of the area and the workspace, so that their files survive a power failure."""
    for path in (area.path,) if area.can_move else (area.path, area.workspace):
        _sync(path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_filesystem(descriptor)
    finally:
        os.close(descriptor)


def _why(error: Exception) -> str:
    if isinstance(error, Interference):
        return "another program changed it at the same moment"
    return getattr(error, "strerror", None) or str(error)


def write_journal(full: str, manifest: Manifest) -> None:
    """Write the manifest into the directory `full` as its journal, and sync the file and the directory to disk."""
    manifest.write(full)
    descriptor = os.open(full, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mark_taken_back(full: str, manifest: Manifest) -> None:
    """Mark the commit as reverted in its journal, so that nobody takes its steps again. If the disk has no room for a
    new journal, rename the old one instead."""
    try:
        write_journal(full, replace(manifest, notes={**manifest.notes, "mark": "held"}))
    except OSError:
        _rename_journal_as_reverted(full)


def _rename_journal_as_reverted(full: str) -> None:
    """Mark a commit as reverted: rename its journal. If the file is still the older manifest of a held change set,
    leave it alone."""
    found = Manifest.read(full)
    if found is not None and found.notes.get("mark") == "commit":
        os.rename(os.path.join(full, MANIFEST), os.path.join(full, TAKEN_BACK))


def has_journal(full: str) -> bool:
    """Whether the directory of a run holds a journal."""
    return any(os.path.exists(os.path.join(full, name)) for name in (MANIFEST, TAKEN_BACK))


def steps_of(manifest: Manifest) -> list[Step]:
    """The steps written in a journal."""
    entries = {each.path: (each.before, each.after) for each in manifest.entries}
    return [Step.from_json(words, _narrowed(words, entries)) for words in manifest.notes.get("steps", ())]


def _narrowed(
    words: list[Any], entries: dict[str, tuple[Entry | None, Entry | None]]
) -> dict[str, tuple[Entry | None, Entry | None]]:
    """The states of one path before and after the step that `words` describe. These states may differ from those in the
    change set, because one path may need two steps: for example, the first moves the old file out, and the second puts
    the new file in. Between these steps, the path does not exist."""
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


def resume(
    area: Area, directory: str, manifest: Manifest, *, is_published: bool = False, is_sound: bool = False
) -> bool:
    """After a crash or disk failure: finish a commit. If that is impossible, or if no step was taken yet, revert the
    commit instead. Returns whether the commit was finished. With `is_published`, the changes count already, so the
    steps are taken even if none was taken yet. `is_sound` says that the power has not failed since the journal was
    written, so that the content of the new files need not be checked."""
    steps = steps_of(manifest)
    full = os.path.join(area.path, directory)
    live = os.path.dirname(full)
    with (
        Tree(area.workspace, forced=True, notes=WidenedModes(live)) as workspace,
        Tree(area.path, forced=True, notes=WidenedModes(live)) as ours,
    ):
        before = {each.path: each.before for each in manifest.entries} if is_published else None
        runner = StepRunner(workspace, ours, before, follows_others=is_published)
        closed = {from_latin(path): mode for path, mode in manifest.notes.get(_OPENED, ())}
        try:
            if not _is_copied_home(runner, directory, steps):
                if not is_published and not _is_any_step_applied(runner, steps):
                    raise Interference("")
                if not is_sound and not _is_sound(runner, manifest, steps):
                    raise Interference("")
                for step in steps:
                    runner.apply(step)
            _copy_displaced_home(runner, directory, steps)
            _remove_staging(runner, steps)
            done = True
        except (Interference, OSError) as error:
            if getattr(error, "errno", None) in TEMPORARY_ERRORS and (
                is_published or _is_copied_home(runner, directory, steps)
            ):
                # This commit can only be finished: it counts already, or all originals are in the area.
                workspace.restore()
                raise
            _revert_steps(runner, steps)
            _remove_copies_in_staging(runner, steps)
            _mark_taken_back(full, manifest)
            done = False
        workspace.restore()
        for path, mode in closed.items():
            if not any(step.verb == "mode" and step.path == path for step in steps):
                with contextlib.suppress(OSError):
                    set_mode(workspace, path, mode)
        sync(area)
    return done


def _is_any_step_applied(runner: StepRunner, steps: Sequence[Step]) -> bool:
    """Whether any step was taken. True for a commit that has no steps."""
    moves = [step for step in steps if step.verb != "mode"]
    if not steps or any(map(runner.is_applied, moves)):
        return True
    runner.workspace.restore()  # The runner has widened modes of directories, and the next line compares modes.
    return any(runner.is_applied(step) for step in steps if step.verb == "mode")


def _is_sound(runner: StepRunner, manifest: Manifest, steps: Sequence[Step], *, in_place: bool = False) -> bool:
    """Whether all new files exist with the right content, in the workspace or where they wait: the power may have
    failed before the content was written. With `in_place`, only files that are in the workspace are checked."""
    for path, wanted, step in _incoming_files(manifest, steps):
        here = runner.workspace.status(path)
        is_ours = here is not None and here.st_ino == wanted.inode
        if is_ours or (not in_place and path != step.path and _is_in_place(runner, step)):
            found = read_entry(runner.workspace, path, forced=True)
        elif in_place:
            continue  # Another file has replaced the new file since.
        else:
            assert step.put is not None
            tree, place = runner.place(step.put)
            found = read_entry(tree, place + path[len(step.path) :], forced=True)
        if found is None or found.content != wanted.content:
            return False
    return True


def _incoming_files(manifest: Manifest, steps: Sequence[Step]) -> Iterator[tuple[str, Entry, Step]]:
    """Yield the path and the state of each new file, and the step that brings the file: the step of its own path, or
    the step of a directory above it."""
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


def _is_in_place(runner: StepRunner, step: Step) -> bool:
    here = runner.workspace.status(step.path)
    return here is not None and step.after is not None and here.st_ino == step.after.inode


def revert_unsynced(area: Area, manifest: Manifest) -> bool:
    """After a power failure: revert a commit if the content of its new files never reached the disk. Returns whether
    the commit was reverted."""
    kept = f"kept/{manifest.run}"
    steps = [_step_after_commit(step, kept) for step in steps_of(manifest)]
    with Tree(area.workspace, forced=True) as workspace, Tree(area.path, forced=True) as ours:
        runner = StepRunner(workspace, ours)
        if _is_sound(runner, manifest, steps, in_place=True):
            return False
        os.makedirs(os.path.join(area.path, kept, _UNSOUND), mode=0o700, exist_ok=True)
        _revert_steps(runner, steps)
        sync(area)
    return True


def _step_after_commit(step: Step, kept: str) -> Step:
    """A step of a finished commit, changed so that it can be reverted: the old file is now in `kept`, and the new file
    goes to a directory of `kept`, because its first place no longer exists."""
    out = None if step.out is None else f"{kept}/{OUT}/{step.number}"
    return replace(step, out=out, put=None if step.put is None else f"{kept}/{_UNSOUND}/{step.number}")


def _revert_steps(runner: StepRunner, steps: Sequence[Step]) -> None:
    """Revert steps, last step first. If another program has taken the path of an old file, that old file stays in the
    run's directory. If the disk fails, the other steps are still reverted, then the error is raised."""
    for tree in (runner.workspace, runner.area):
        tree.allow_unnoted()
    failure: OSError | None = None
    for step in reversed(steps):
        try:
            runner.revert(step)
        except Interference:
            continue
        except OSError as error:
            failure = error if error.errno in TEMPORARY_ERRORS else failure
    if failure is not None:
        raise failure


def _copy_displaced_home(runner: StepRunner, directory: str, steps: Sequence[Step]) -> None:
    """Copy replaced files from the staging directories in the workspace to the run's directory in the area."""
    if not _staging_directories(steps):
        return
    for step, target in _displaced_inside(directory, steps):
        assert step.out is not None
        place, part = step.out[len(INSIDE) :], f"{target}.part"
        if runner.area.status(target) is None and runner.workspace.status(place) is not None:
            remove_inside(runner.area, part)  # An incomplete copy of a host that was killed.
            copy(runner.workspace, place, runner.area, part)
            rename(runner.area, part, runner.area, target)
    for tree in (runner.area, runner.workspace):
        _sync(tree.path)


def _remove_staging(runner: StepRunner, steps: Sequence[Step]) -> None:
    """Remove the staging directories, after all replaced files were copied from there to the area."""
    for staging in _staging_directories(steps):
        remove_inside(runner.workspace, staging)


def _staging_directories(steps: Sequence[Step]) -> set[str]:
    """The staging directories that these steps use, relative to the workspace."""
    places = [where for step in steps for where in (step.out, step.put) if where is not None]
    return {os.path.dirname(where[len(INSIDE) :]) for where in places if where.startswith(INSIDE)}


def _displaced_inside(directory: str, steps: Sequence[Step]) -> list[tuple[Step, str]]:
    """The steps that move the replaced file to a staging directory in the workspace, each with the place in the area
    where this file will be kept."""
    return [
        (step, f"{directory}/{OUT}/{step.number}")
        for step in steps
        if step.out is not None and step.out.startswith(INSIDE)
    ]


def _is_copied_home(runner: StepRunner, directory: str, steps: Sequence[Step]) -> bool:
    """Whether the commit used staging directories and has copied every replaced file to the area: then all steps were
    taken, and only the staging directories remain to be removed."""
    homes = _displaced_inside(directory, steps)
    return bool(homes) and all(runner.area.status(target) is not None for _step, target in homes)


def _remove_copies_in_staging(runner: StepRunner, steps: Sequence[Step]) -> None:
    """After a revert: remove the staging directories, which should hold only copies. If one of them still holds an
    original, leave all of them."""
    for step in steps:
        if step.out is not None and step.out.startswith(INSIDE) and runner.status(step.out) is not None:
            return
        if step.put is not None and step.before is not None and step.put.startswith(INSIDE):
            waiting = runner.status(step.put)
            if waiting is not None and waiting.st_ino == step.before.inode:
                return
    for staging in _staging_directories(steps):
        try:
            remove_inside(runner.workspace, staging)
        except OSError as error:
            if error.errno in TEMPORARY_ERRORS:
                raise


def remove_inside(tree: Tree, path: str) -> None:
    """Remove a file, or a directory with its content, from a tree. Links are not followed."""
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


def _closed_directories(workspace: Tree, steps: Sequence[Step]) -> dict[str, int]:
    """Maps each directory whose mode must be widened during these steps to its original mode. The journal lists these
    directories, so that recovery can restore their modes after a crash."""
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
