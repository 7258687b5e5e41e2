"""Reads from a state home what a scenario needs of a past run: the call, its outcome, its changes with the content of
the changed files, and the content that other files had when the run began, as far as haft knows it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import BadUsage, HaftError, UnknownRun, iso_time
from haft.runs import RunRecord
from haft.service import ChangesFacade, History, open_changes, open_history, recover_dead_hosts
from haft.testing.calls import git_of
from haft.testing.scenarios.scenario import Kind
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.changes import ChangeSet, PathChange, Side
    from haft.service import StateHome

LARGEST_FILE: Final = 1_000_000
"""Larger files are left out of a recording."""
_NOT_CALLS: Final = frozenset({"undo", "redo", "apply", "drop", "haft run"})
_MOST_CHANGE_SETS: Final = 500


@dataclass(frozen=True)
class FileState:
    """One path as it was before or after the run."""

    kind: Kind
    mode: int
    content: bytes | None = None
    """None: the content is not known, or too large."""
    target: str | None = None
    changed_since: bool = False
    """Whether the path may have been different when the run began."""


@dataclass(frozen=True)
class ChangedPath:
    """One path that the run changed."""

    path: str
    before: FileState | None
    after: FileState | None


@dataclass(frozen=True)
class PastRun:
    """A run that has ended, and what haft kept of it."""

    record: RunRecord
    changed: tuple[ChangedPath, ...] = ()
    pieces: tuple[tuple[str, bytes], ...] = ()
    """The whole kept output: each piece with its stream."""
    children: tuple[RunRecord, ...] = ()
    """The calls that the run made, directly or not, in the order in which they began."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    repositories: Mapping[str, bool] = field(default_factory=dict)
    """Each `.git` in which the run changed something, with whether the run made it. `changed` has no paths in them."""

    @property
    def outcome(self) -> dict[str, Any]:
        return self.record.outcome

    @property
    def workspace(self) -> str:
        return str(self.record.record["workspace"])


class PastRuns:
    """The past runs of a state home, and the files of their workspaces."""

    def __init__(self, home: StateHome) -> None:
        recover_dead_hosts(home)
        history, changes = open_history(home), open_changes(home)
        if history is None or changes is None:
            raise BadUsage(f"there are no runs in {home.path}", hint="call a tool first: `haft tools use NAME`")
        self.history: History = history
        self._changes: ChangesFacade = changes

    def close(self) -> None:
        self._changes.close()
        self.history.close()

    def find(self, name: str) -> PastRun:
        """The run with this id, or with this unique beginning of it. Raises `BadUsage` if it cannot be recorded."""
        record = self.history.find(name)
        _check(record)
        notes: list[str] = []
        children = sorted(map(self.history.find, self.history.made_by(record.id)), key=lambda each: each.started_at)
        changed: dict[str, ChangedPath] = {}
        repositories: dict[str, bool] = {}
        for each in (*children, record):
            for one in self._changed(each, notes, repositories):
                first = changed.get(one.path, one)
                changed[one.path] = ChangedPath(one.path, first.before, one.after)
        pieces = tuple((each.stream, each.data) for each in self.history.output(record))
        return PastRun(record, tuple(changed.values()), pieces, tuple(children), tuple(notes), repositories)

    def before(self, run: PastRun, path: str) -> FileState | None:
        """What a path of the workspace was when the run began; None if it did not exist."""
        for each in run.changed:
            if each.path == path:
                return each.before
        ended = run.record.ended_at or run.record.started_at
        for row in reversed(self._later(run, path, ended)):
            with contextlib.suppress(HaftError):
                found = self._changes.find(row)
                for altered in found.entries:
                    if altered.path == path:
                        return self._state(found, altered, "before")
        return _on_disk(os.path.join(run.workspace, path), ended)

    def _later(self, run: PastRun, path: str, ended: float) -> list[str]:
        """The runs that changed a path after the run, newest first."""
        rows = self._changes.ledger.touching(run.workspace, [path], limit=_MOST_CHANGE_SETS)
        return [row.run for row in rows if row.at > ended and row.run != run.record.id and row.state != "held"]

    def _changed(self, record: RunRecord, notes: list[str], repositories: dict[str, bool]) -> Iterator[ChangedPath]:
        listed = record.record["changes"]["files"]
        if not record.changes["complete"]:
            notes.append(f"what the call changed is not known: {record.changes['reason']}")
        try:
            found = self._changes.find(record.id)
        except UnknownRun:
            if listed:
                raise _not_kept(record, "they were not stored") from None
            return
        except HaftError as error:
            raise _not_kept(record, str(error)) from error
        for each in found.entries:
            if (git := git_of(each.path)) is not None:
                is_made = each.before is None and each.path in (git, f"{git}/HEAD")
                repositories[git] = repositories.get(git, False) or is_made
                continue
            if "other" in (each.before and each.before.kind, each.after and each.after.kind):
                notes.append(f"{each.path} is neither a file, a directory nor a link")
                continue
            before, after = self._state(found, each, "before"), self._state(found, each, "after")
            for side, state in (("before", before), ("after", after)):
                if state is not None and state.kind == "file" and state.content is None:
                    notes.append(f"the content of {each.path} {side} the call is too large, or no longer kept")
            yield ChangedPath(each.path, before, after)

    def _state(self, found: ChangeSet, altered: PathChange, side: Side) -> FileState | None:
        entry = altered.before if side == "before" else altered.after
        if entry is None:
            return None
        mode = stat.S_IMODE(entry.mode)
        if entry.kind == "link":
            return FileState("link", mode, target=entry.content)
        if entry.kind == "directory":
            return FileState("directory", mode)
        content = None
        if entry.size <= LARGEST_FILE:
            with contextlib.suppress(HaftError, OSError):
                stream = self._changes.read(found, altered, side)
                if stream is not None:
                    with stream:
                        content = stream.read()
        return FileState("file", mode, content)


def _check(record: RunRecord) -> None:
    if record.is_open:
        raise BadUsage(f"{record.id} has not ended yet", hint=f"`haft watch {record.id}` follows it")
    if record.tool in _NOT_CALLS or record.record["digest"] is None:
        raise BadUsage(
            f"{record.id} ({record.tool}) cannot be recorded, because it is no call of a tool that haft can repeat",
            hint="`haft log` lists the runs",
        )
    error = record.outcome["error"] or {}
    if record.status == "cancelled" or error.get("code") in ("interrupted", "worker-lost", "timed-out", "busy"):
        what = "was cancelled" if record.status == "cancelled" else f"ended with `{error['code']}`"
        raise BadUsage(
            f"{record.id} cannot be recorded, because it {what}, which depends on the moment",
            hint="record a run that ended by itself",
        )


def _not_kept(record: RunRecord, why: str) -> BadUsage:
    return BadUsage(
        f"{record.id} cannot be recorded, because its changes are not kept: {why}",
        hint="call the tool again, and record that run",
    )


def _on_disk(path: str, ended: float) -> FileState | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        return FileState("directory", mode)
    since = max(found.st_mtime, found.st_ctime) > ended
    if stat.S_ISLNK(found.st_mode):
        return FileState("link", mode, target=os.readlink(path), changed_since=since)
    if not stat.S_ISREG(found.st_mode):
        return None
    content = None
    if found.st_size <= LARGEST_FILE:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            content = file.read()
    return FileState("file", mode, content, changed_since=since)


def when(run: PastRun) -> str:
    """The time of the run, for comments."""
    return iso_time(run.record.started_at)
