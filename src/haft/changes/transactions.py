"""Transactions: the changes of one call, found by an engine, then committed, held or discarded.

    begin ─► the call ─► finish: what changed? ─► commit | hold | discard

haft changes the workspace only by the steps of `commit`, and only while it holds the workspace lock, which all
processes take in turn.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Literal

from haft.changes.candidates import last_changes
from haft.changes.commit.area import Area, boot_id, find_area, remove
from haft.changes.commit.images import Originals, Side
from haft.changes.commit.journal import (
    OUT,
    CommitRefused,
    CommitUnfinished,
    commit,
    has_journal,
    resume,
    sync,
    write_journal,
)
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.plan import Sources, steps_for
from haft.changes.commit.read_entry import CallStopped
from haft.changes.commit.steps import INSIDE, Step, as_latin
from haft.changes.commit.tree import Tree
from haft.changes.commit.widened_modes import NOTE_SUFFIX, WidenedModes
from haft.changes.ledger import Row, Verb
from haft.changes.nested_calls import SHARED, Lock, shared_lock
from haft.changes.objections import Guard, Objections, conflict_error, order_conflict
from haft.changes.published.conflicts import CommitHistory
from haft.changes.published.publisher import Publisher
from haft.changes.published.register import Register
from haft.changes.published.views import View, Views
from haft.changes.staging import Staging
from haft.changes.store.blobs import Blobs
from haft.contracts import (
    Changes,
    ChangesState,
    ConflictingPath,
    HaftError,
    HostId,
    Limits,
    StorageFailed,
    ToolFailed,
)
from haft.files import shown
from haft.storage import Lease, Stores
from haft.values import dataclass, replace

EndAction = Literal["commit", "hold", "discard"]

_SHORTEST, _LONGEST = 0.001, 0.1
UNSYNCED: Final = ".unsynced"
CONTAINED: Final = "contained"
"""The directory inside a run's directory that holds the change sets of nested calls that worked in the run's layer."""
_SMALL: Final = 64_000
_MOST_LINKED: Final = 100_000_000
_MANY: Final = 100
"""After a call, up to this many new files of at most `_SMALL` bytes are kept in the blob store, so that the diff can be
shown later."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The run that a change set belongs to, and who made the call."""

    run: str
    who: str
    thread: str
    parent: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"who": self.who, "thread": self.thread, "parent": self.parent}


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """How a transaction ended: the changes with their state, and an error if they were not committed as wanted."""

    changes: Changes
    error: HaftError | None = None


class Transactions:
    """The change sets that one host makes in one workspace."""

    def __init__(
        self,
        home: str,
        stores: Stores,
        blobs: str,
        workspace: str,
        host: str,
        limits: Limits,
        guard: Guard,
        *,
        lease: Lease | None = None,
        synced: bool = False,
        flush_seconds: float = 2.0,
        views: Views | None = None,
    ) -> None:
        """`home` is the state home's directory for all workspaces; `blobs` is the directory of the blob store. A host
        that has lost its `lease` cannot take the workspace lock. If `synced` is true, a commit is synced to disk before
        it returns. If not, the commit is synced shortly after it returns, and a power failure before that may revert
        the commit. `flush_seconds`: how long a published commit may wait for running calls. `views` are the views of
        this host, if they exist already."""
        self._lease = lease
        self._synced = synced
        self._unsynced: list[str] = []
        self._storage_arguments = (home, stores, blobs)
        self.recover_commits: Callable[[Transactions], None] = lambda _left: None
        """Finishes or reverts the unfinished commits that one host left. Called under the workspace lock, with the
        `Transactions` of that host."""
        self.take_back_published: Callable[[Transactions, str], None] = lambda _transactions, _run: None
        """Holds the changes of a run that were published, and could not be written into the workspace."""
        self.workspace = workspace
        self.blobs = Blobs(blobs)
        self.ledger = stores.connect(lease).ledger
        self.limits = limits
        self._home = home
        self._host = host
        self.guard = guard
        self._area: Area | None = None
        self._background: ThreadPoolExecutor | None = None
        self._state_lock = threading.Lock()
        self.on_commit: Callable[[], None] = lambda: None
        """Called after every commit, in the committing thread: it must be quick."""
        self._views = views
        self._flush_seconds = flush_seconds
        self._publisher: Publisher | None = None
        self._is_alive = functools.partial(_is_alive, stores)

    @property
    def area(self) -> Area:
        with self._state_lock:
            if self._area is None:
                area = find_area(self._home, self.workspace)
                os.makedirs(os.path.join(area.live, self._host), mode=0o700, exist_ok=True)
                self._area = area
            return self._area

    @property
    def host(self) -> str:
        return self._host

    @functools.cached_property
    def staging(self) -> Staging:
        return Staging(self.workspace, self.area, self.live_in_area, self.tree)

    @functools.cached_property
    def objections(self) -> Objections:
        return Objections(self.workspace, self.area.path, self.guard, self.limits, self.blobs)

    @property
    def publisher(self) -> Publisher:
        """Publishes and flushes the change sets of this host."""
        area = self.area
        with self._state_lock:
            if self._publisher is None:
                views = self._views or Views(area.path, Register(area.path, self._host, self._is_alive))
                self._publisher = Publisher(self, views, self._flush_seconds)
            return self._publisher

    def of_host(self, host: str, work: Callable[[Transactions], None], *, is_dead: bool) -> None:
        """Call `work` with the transactions of another host, or with these if `host` is this host. Call it under the
        workspace lock. If the other host `is_dead`, its directory is removed as soon as it is empty."""
        if host == self._host:
            return work(self)
        other = Transactions(*self._storage_arguments, self.workspace, host, self.limits, self.guard, lease=self._lease)
        other.staging.mounts = self.staging.mounts
        try:
            return work(other)
        finally:
            other.close(is_own=is_dead)

    @property
    def live(self) -> str:
        """The directory in the area that holds this host's running transactions."""
        return os.path.join(self.area.live, self._host)

    @property
    def live_in_area(self) -> str:
        """The directory `live` of this host, relative to the area."""
        return f"live/{self._host}"

    def widened_modes(self) -> WidenedModes:
        return WidenedModes(self.live)

    def tree(self) -> Tree:
        """The workspace as a `Tree` that can read directories even if their modes forbid it."""
        return Tree(self.workspace, forced=True, notes=self.widened_modes())

    def close(self, *, is_own: bool = True) -> None:
        """Flush what is published and finish the background work, then finish or revert the commits of this host that a
        disk failure interrupted, then close the ledger. If these are the transactions of another host that is alive,
        `is_own` is False: then only the work of this object ends."""
        if is_own and self._publisher is not None:
            _quietly(self._publisher.close)
        if self._background is not None:
            self._background.shutdown(wait=True)
            self._background = None
        if not is_own:
            _quietly(self._sync)
        elif self._area is not None:
            _quietly(self._sync)
            if not self.staging.is_clear or self._host in self._hosts_with_journals():
                _quietly(lambda: os.close(self.take_lock()))
            if self._has_unrestored_modes():
                _quietly(self._recover_own)
            is_needed = self._host in self._hosts_with_journals() or self.published_runs()
            if not is_needed and not self._has_unrestored_modes():
                remove(self.live)
        self.ledger.close()

    def _has_unrestored_modes(self) -> bool:
        """Whether some directory or file may still have the wider mode that haft gave it for a moment, because a disk
        failure kept haft from restoring the old mode. Call this only when no call runs."""
        with contextlib.suppress(OSError):
            return any(name.endswith(NOTE_SUFFIX) for name in os.listdir(self.live))
        return False

    def _recover_own(self) -> None:
        with self.locked():
            self.recover_commits(self)
            for name in os.listdir(self.live):
                if name.endswith(NOTE_SUFFIX):
                    os.unlink(os.path.join(self.live, name))

    # The lock.

    @contextlib.contextmanager
    def locked(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Hold the workspace lock, which excludes all other processes."""
        descriptor = self.take_lock(stopped)
        try:
            yield
        finally:
            os.close(descriptor)

    def take_lock(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Take the workspace lock and return its descriptor; closing the descriptor releases the lock. If the current
        call is nested and its caller holds the lock, return a duplicate of the caller's descriptor. Raises
        `CallStopped` if `stopped` returns True while another process holds the lock."""
        if (shared := shared_lock()) is not None:
            self._recover_left_commits()
            return shared
        descriptor = os.open(self.area.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        pause = _SHORTEST
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if self._lease is not None:
                        self._lease.check()  # Checked under the lock: a host that takes over needs the lock too.
                    self.staging.read_mounts()
                    self._recover_left_commits()
                    return descriptor
                except BlockingIOError:
                    if stopped():
                        raise CallStopped from None
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST)
        except BaseException:
            os.close(descriptor)
            raise

    def _recover_left_commits(self) -> None:
        """Recover unfinished commits before anyone changes the workspace again. This process holds the workspace lock,
        so nobody else is committing now: each journal that it finds was left by a host that was killed or that found
        the disk full."""
        with contextlib.suppress(OSError):
            self.staging.clear_left()
        for host in self._hosts_with_journals():
            with contextlib.suppress(OSError, StorageFailed):  # `recover` reports it when it cleans up after that host.
                self.of_host(host, self.recover_commits, is_dead=True)

    def _hosts_with_journals(self) -> list[str]:
        """The hosts that have a journal in their `live` directory."""
        found = []
        published = self.published_runs()
        with os.scandir(self.area.live) as hosts:
            for host in hosts:
                with contextlib.suppress(OSError), os.scandir(host.path) as runs:
                    if any(
                        has_journal(run.path)
                        for run in runs
                        if not run.name.endswith((".layer", UNSYNCED, NOTE_SUFFIX)) and run.name not in published
                    ):
                        found.append(host.name)
        return found

    def published_runs(self) -> frozenset[str]:
        """The runs whose changes are published and not flushed. Their journals are no sign of a crash."""
        return frozenset(layer.run for layer in self.publisher.register.open_layers())

    def has_journal(self, run: str) -> bool:
        """Whether this host has a journal for the commit of `run`. If so, the commit is unfinished and waits for
        recovery."""
        return has_journal(os.path.join(self.live, run))

    # Ending change sets.

    def end_change_set(
        self,
        owner: Owner,
        manifest: Manifest,
        upper: str,
        action: EndAction,
        *,
        conflicts: Sequence[str] = (),
        granted_paths: Sequence[str] = (),
        judged_paths: Collection[str] = (),
        why: str | None = None,
        error: HaftError | None = None,
        stopped: Callable[[], bool] = lambda: False,
        view: View | None = None,
    ) -> TransactionResult:
        """Commit or hold a change set whose new files wait in `upper`, a directory relative to the area. Call this
        under the workspace lock. If an `error` is given, the change set is held whatever `action` says. The guard has
        already judged `judged_paths`. `view` is the view of the call."""
        if not manifest.entries:
            return TransactionResult(manifest.changes("none"))
        is_accepted = len(granted_paths) > 1 or bool(judged_paths)
        notes = {**manifest.notes, "owner": owner.to_json(), "verb": "call", "accepted": is_accepted}
        manifest = replace(manifest, notes=notes)
        if error is None and action == "commit":
            error = order_conflict(manifest.entries, view, self.publisher.register) or self.objections.to_commit(
                manifest, upper, conflicts, granted_paths, judged_paths
            )
        against: tuple[ConflictingPath, ...] = ()
        if conflicts:
            manifest = replace(manifest, notes={**manifest.notes, "conflicts": [as_latin(path) for path in conflicts]})
            against = tuple(ConflictingPath(path, self.who_changed(path, manifest)) for path in conflicts)
        if error is not None or action == "hold":
            reason = why if error is None else error.message
            return self.end_held(owner, manifest, upper, reason, against, error)
        if stopped():
            raise CallStopped
        try:
            manifest = self.commit(owner.run, manifest, LayerSources(upper, self, owner.run), view=view)
        except CommitUnfinished as left:
            return unfinished_result(manifest, left)
        except CommitRefused as refusal:
            found = (ConflictingPath(refusal.path, self.who_changed(refusal.path, manifest)),)
            reason = f"{shown(refusal.path)}: {refusal.why}"
            return self.end_held(owner, manifest, upper, reason, found, conflict_error([refusal.path], refusal.why))
        self.finish(manifest)
        return TransactionResult(manifest.changes("committed"))

    def commit_part(
        self, owner: Owner, manifest: Manifest, upper: str, *, accepted: bool, view: View | None = None
    ) -> HaftError | None:
        """Commit the changes that a call has made so far, before its nested call begins. Returns the error if that
        fails, otherwise None."""
        notes = {**manifest.notes, "owner": owner.to_json(), "verb": "call", "accepted": accepted}
        manifest = replace(manifest, notes=notes)
        try:
            manifest = self.commit(owner.run, manifest, LayerSources(upper, self, owner.run), view=view)
        except CommitUnfinished as left:
            return unfinished_result(manifest, left).error
        except CommitRefused as refusal:
            self.clear_displaced(owner.run)
            remove(os.path.join(self.live, owner.run))
            return conflict_error([refusal.path], refusal.why)
        self.finish(manifest)
        return None

    def end_held(
        self,
        owner: Owner,
        manifest: Manifest,
        upper: str,
        reason: str | None,
        against: tuple[ConflictingPath, ...] = (),
        error: HaftError | None = None,
    ) -> TransactionResult:
        """Hold a change set. If the disk fails, the result says whether the change set will be held nevertheless or is
        lost (see `disk_failure`)."""
        try:
            self.hold(owner, manifest, upper, reason)
        except (OSError, StorageFailed) as failure:
            return self.disk_failure(manifest, failure)
        self.run_later(lambda: self._keep_small(manifest, "before"))
        return TransactionResult(manifest.changes("held", against, reason), error)

    def disk_failure(self, manifest: Manifest, failure: Exception) -> TransactionResult:
        """The result for a change set that is not in the workspace because the disk failed: held if its journal was
        written, otherwise lost."""
        if self._is_journalled(manifest.run):
            error = ToolFailed(
                f"its changes are held, and not in the workspace, because the disk failed ({failure})",
                hint=f"{_AGAIN}: `haft changes apply RUN`, `haft changes drop RUN`",
            )
            return TransactionResult(manifest.changes("held", reason=error.message), error)
        error = ToolFailed(f"its changes are lost, and not in the workspace, because the disk failed ({failure})")
        return TransactionResult(manifest.changes("discarded", reason=error.message), error)

    def _is_journalled(self, run: str) -> bool:
        try:
            return Manifest.read(os.path.join(self.live, run)) is not None
        except OSError:
            return self.has_journal(run)

    def history(self, view: View | None) -> CommitHistory:
        """What haft committed, as far as it matters for a call with this view."""
        since = None if view is None else view.number
        return CommitHistory(self.publisher.register, since, () if view is None else view.own)

    def who_changed(self, path: str, manifest: Manifest) -> str:
        """The id of the last run that committed a change of this path after the call that `manifest` belongs to had
        begun; `outside` if there is no such run."""
        began = manifest.notes.get("began", 0.0)
        for row in last_changes(self.ledger, self.workspace, [path], 0):
            if row.at < began:
                break
            other = Manifest.read(os.path.join(self.area.path, row.directory))
            if other is not None and any(each.path == path for each in other.entries):
                return row.run
        return "outside"

    def commit(
        self,
        run: str,
        manifest: Manifest,
        sources: Sources,
        mirror: str | None = None,
        view: View | None = None,
        lock: Lock | None = None,
    ) -> Manifest:
        """Commit a change set: write it into the workspace, or publish it (see `published`). The run's directory is
        created under `live`, and stays there until `finish`. Replaced files are moved to this directory. If `mirror` (a
        directory relative to the area) is given, replaced files are moved to `mirror` instead, and keep their own paths
        in that directory. `view` is the view of the call, `lock` its lock if it has one."""
        try:
            return self._commit(run, manifest, sources, mirror, view, lock or SHARED.get())
        except OSError as error:  # Before the first step: nothing changed.
            self.staging.clear(run)
            raise CommitRefused(manifest.entries[0].path, error.strerror or str(error)) from error

    def _commit(
        self,
        run: str,
        manifest: Manifest,
        sources: Sources,
        mirror: str | None,
        view: View | None,
        lock: Lock | None,
    ) -> Manifest:
        staging = self.staging
        staging.begin()
        directory = f"{self.live_in_area}/{run}"
        os.makedirs(os.path.join(self.area.path, directory), mode=0o700, exist_ok=True)

        def out(path: str, number: int) -> str:
            if mirror is not None:
                self._make_below(mirror, os.path.dirname(path))
            if staging.can_rename_to(path):
                return f"{mirror}/{path}" if mirror is not None else f"{directory}/out/{number}"
            return f"{INSIDE}{staging.directory_for(path, run)}/{number}.out"

        self._note_unsynced(run)
        steps = steps_for(manifest.entries, sources, out)
        sources.restore_modes()
        for step in steps:
            for where in (step.out, step.put):
                if where is not None and where.startswith(INSIDE):
                    staging.make(os.path.dirname(where[len(INSIDE) :]))
        may_publish = self.area.can_move and not staging.mounts and mirror is None
        is_alone = lock is not None and lock.is_alone

        def turn(manifest: Manifest, steps: Sequence[Step]) -> contextlib.AbstractContextManager[bool]:
            if is_alone:
                return contextlib.nullcontext(True)
            return self.publisher.turn(manifest, steps, view, may_publish=may_publish)

        return commit(self.area, directory, manifest, steps, sources.made, turn)

    def _make_below(self, place: str, path: str) -> None:
        """Make the directories of `path` in the directory `place`, one name at a time: a path may be too long for one
        system call."""
        with Tree(self.area.path, forced=True) as ours:
            for word in path.split("/") if path else ():
                place = f"{place}/{word}"
                where, name = ours.at(place)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=where)

    def finish(self, manifest: Manifest, *, is_flushed: bool = False) -> None:
        """Add a committed change set to the ledger, then move its directory to `kept`. The order matters, because
        recovery calls `finish` again for each directory that a crash left under `live`. A published change set is
        finished again when it `is_flushed`."""
        run = manifest.run
        is_published = not is_flushed and self.publisher.is_published(run)
        with contextlib.suppress(OSError, StorageFailed):  # The next holder of the lock does it again.
            self.add_to_ledger(manifest)
            self._move_to_kept(run, is_published=is_published)
        if is_published:
            self.run_later(lambda: self._keep_small(manifest))
            self.on_commit()
            return
        if self._synced:
            self._sync()
        else:
            self.run_later(self._sync)
        self.run_later(lambda: self._keep_small(manifest))
        self.run_later(lambda: self._keep_linked(manifest))
        self.on_commit()

    def _move_to_kept(self, run: str, *, is_published: bool = False) -> None:
        """Move the directory of a committed run to `kept`. While the run is published, `kept` has a link to it."""
        live, kept = os.path.join(self.live, run), os.path.join(self.area.kept, run)
        if is_published:
            os.symlink(os.path.join("..", self.live_in_area, run), kept)
            return
        if os.path.islink(kept):
            os.unlink(kept)
        os.rename(live, kept)

    def finish_published(self, run: str, boot: str) -> None:
        """Write the published changes of a run into the workspace, and finish the commit. Call it under the workspace
        lock. If somebody else changed one of the files meanwhile, the changes are held. `boot` is the boot in which
        they were published."""
        full = os.path.join(self.live, run)
        manifest = Manifest.read(full)
        if manifest is None:
            return  # It was finished before.
        directory = f"{self.live_in_area}/{run}"
        if resume(self.area, directory, manifest, is_published=True, is_sound=boot == boot_id()):
            self.remove_new_files(full)
            self.finish(manifest, is_flushed=True)
            self.remove_later(os.path.join(self.live, f"{run}.layer"))
            return
        kept = os.path.join(self.area.kept, run)
        if os.path.islink(kept):
            os.unlink(kept)
        self.take_back_published(self, run)

    def remove_new_files(self, place: str) -> None:
        """Remove what is left of the new files of a committed change set, whose directory is `place`."""
        for name in ("upper", "merged"):
            if os.path.isdir(os.path.join(place, name)):
                with contextlib.suppress(OSError):
                    self.detach_and_remove(os.path.join(place, name))

    def add_to_ledger(self, manifest: Manifest) -> None:
        """Add a committed change set to the ledger, unless it is there already. The change sets of nested calls that it
        contains are added first."""
        for contained in manifest.notes.get("contains", ()):
            self._add_contained(manifest.run, contained)
        owner = manifest.notes["owner"]
        run = manifest.run
        verb: Verb = manifest.notes["verb"]
        reverses = tuple(manifest.notes.get("reverses", ()))
        row = Row(
            seq=0, run=run, workspace=self.workspace, area=self.area.path, who=owner["who"], thread=owner["thread"],
            parent=owner["parent"], verb=verb, reverses=reverses, engine=manifest.engine, state="committed",
            reason=None, at=time.time(), files=len(manifest.entries), kept=True, latest=run,
        )  # fmt: skip
        states = [state for each in reverses for state in self._states(verb, each)]
        self.ledger.put(row, states, [each.path for each in manifest.entries])

    def _add_contained(self, run: str, contained: str) -> None:
        place = os.path.join(self.live, run, CONTAINED, contained)
        found = Manifest.read(place)
        if found is not None:
            remove(os.path.join(self.area.kept, contained))
            os.rename(place, os.path.join(self.area.kept, contained))
        else:
            found = Manifest.read(os.path.join(self.area.kept, contained))
        if found is not None:
            self.add_to_ledger(found)

    def record_discarded(self, manifest: Manifest) -> None:
        """Record in the ledger that the change set of a nested call was discarded together with the change set of its
        caller."""
        row = self.held_row(manifest, None)
        with contextlib.suppress(StorageFailed):
            self.ledger.put(replace(row, state="discarded", kept=False))

    def _states(self, verb: Verb, run: str) -> list[tuple[str, ChangesState]]:
        """The runs that change their state when `run` is undone or redone, each with its new state. If `run` is itself
        an undo or redo, the runs that it had reversed change their states too."""
        become: ChangesState = "undone" if verb == "undo" else "committed"
        other = self.ledger.get(run)
        if other is None or other.verb == "call":
            return [(run, become)]
        again: ChangesState = "committed" if other.verb == "undo" else "undone"
        return [(run, become), *((each, again) for each in other.reverses)]

    def _note_unsynced(self, run: str) -> None:
        """Write a file that says that a run's commit is not synced yet: after a power failure, recovery must check this
        commit."""
        place = os.path.join(self.live, f"{run}{UNSYNCED}")
        with open(place, "w") as file:
            file.write(boot_id())
        with self._state_lock:
            self._unsynced.append(place)

    def _sync(self) -> None:
        """Sync the finished commits to disk, and remove the files that `_note_unsynced` wrote for them. A commit that
        is still running keeps its file, and is synced later."""
        with self._state_lock:
            under_way = [place for place in self._unsynced if os.path.isdir(place.removesuffix(UNSYNCED))]
            over = [place for place in self._unsynced if place not in under_way]
            self._unsynced = under_way
        if over:
            sync(self.area)
            for place in over:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(place)

    def hold(self, owner: Owner, manifest: Manifest, upper: str, reason: str | None) -> None:
        """Hold a change set until someone applies or drops it. Its new files are in `upper`, a directory relative to
        the area."""
        run = owner.run
        full = os.path.join(self.live, run)
        os.makedirs(full, mode=0o700, exist_ok=True)
        notes = {name: value for name, value in manifest.notes.items() if name not in ("steps", "opened")}
        write_journal(full, replace(manifest, notes={**notes, "mark": "held", "why": reason}))
        place = os.path.join(self.area.path, upper)
        if place != os.path.join(full, "upper"):
            os.rename(place, os.path.join(full, "upper"))
        self.clear_displaced(run)
        self.ledger.put(self.held_row(manifest, reason))
        os.rename(full, os.path.join(self.area.held, run))

    def held_row(self, manifest: Manifest, reason: str | None) -> Row:
        owner = manifest.notes["owner"]
        return Row(
            seq=0, run=manifest.run, workspace=self.workspace, area=self.area.path, who=owner["who"],
            thread=owner["thread"], parent=owner["parent"], verb="call", reverses=(), engine=manifest.engine,
            state="held", reason=reason, at=time.time(), files=len(manifest.entries), kept=True, latest=manifest.run,
        )  # fmt: skip

    def clear_displaced(self, run: str) -> None:
        """After a commit was reverted: remove the run's directory for replaced files. If some of these files could not
        be put back, move the directory to `saved` instead."""
        out = os.path.join(self.live, run, OUT)
        with contextlib.suppress(OSError):
            os.rmdir(out)
        if os.path.isdir(out):
            os.makedirs(self.area.saved, mode=0o700, exist_ok=True)
            os.rename(out, os.path.join(self.area.saved, run))

    # Background work.

    def run_later(self, work: Callable[[], None]) -> None:
        """Run `work` in the background thread."""
        with self._state_lock:
            if self._background is None:
                self._background = ThreadPoolExecutor(1, "haft-background")
            background = self._background
        with contextlib.suppress(RuntimeError):
            background.submit(_quietly, work)

    def detach_and_remove(self, path: str) -> None:
        """Remove a file or directory: its path is free at once, its content is deleted in the background."""
        rubbish = os.path.join(self.live, f"{os.urandom(8).hex()}.layer")
        os.rename(path, rubbish)
        self.remove_later(rubbish)

    def remove_later(self, path: str) -> None:
        """Remove a file or directory of haft in the background."""
        self.run_later(lambda: remove(path))

    def _keep_linked(self, manifest: Manifest) -> None:
        """Store the content of originals that still have other hard links, because a write through such a link would
        change the original too."""
        linked = [
            each
            for each in manifest.entries
            if each.before is not None and each.before.kind == "file" and each.before.links > 1
        ]
        if not linked:
            return
        originals = Originals(self.area.path, manifest.run)
        budget = _MOST_LINKED
        with Tree(self.area.path, forced=True) as ours:
            for each in linked:
                place = originals.place(each.path)
                assert each.before is not None
                budget -= each.before.size
                if place is None or budget < 0:
                    continue
                with contextlib.suppress(OSError):
                    descriptor = ours.read(place)
                    try:
                        self.blobs.put(descriptor, each.before.size)
                    finally:
                        os.close(descriptor)

    def _keep_small(self, manifest: Manifest, side: Side = "after") -> None:
        """Store the content of small new files, so that haft can still show the diff after these files change again.
        With `before`, the files that held changes would replace, so that they can be merged with other changes."""
        entries = ((each.path, each.after if side == "after" else each.before) for each in manifest.entries)
        small = [path for path, entry in entries if entry and entry.kind == "file" and entry.size <= _SMALL]
        with self.publisher.committed_tree() as workspace:
            for path in small[:_MANY]:
                with contextlib.suppress(OSError):
                    descriptor = workspace.read(path)
                    try:
                        self.blobs.put(descriptor, os.fstat(descriptor).st_size)
                    finally:
                        os.close(descriptor)


class LayerSources:
    """Tells a commit where the new files of a change set are: in `upper`, a directory relative to the area, under the
    same paths as in the workspace. Implements `Sources`."""

    def __init__(self, upper: str, transactions: Transactions, run: str) -> None:
        self.made: dict[str, int] = {}
        self._upper = upper
        self._transactions = transactions
        self._run = run

    def place_of(self, each: PathChange) -> str | None:
        return self._transactions.staging.make_renamable(self._run, f"{self._upper}/{each.path}", each.path)

    def can_move_whole(self, _path: str) -> bool:
        return True

    def restore_modes(self) -> None:
        """Does nothing: this class changes no modes."""


_AGAIN: Final = "once the disk works again"


def unfinished_result(manifest: Manifest, left: CommitUnfinished) -> TransactionResult:
    """The result of a commit that a disk failure interrupted. It gives the state that the changes will have when the
    next holder of the lock has finished or reverted the commit."""
    where = f"the disk failed in the middle of the commit ({shown(left.path)}: {left.why})"
    if left.becomes == "committed":
        error = ToolFailed(
            f"{where}: some of its changes may not be in the workspace yet",
            hint="once the disk works again, the next call or `haft` command finishes the commit",
        )
    else:
        error = ToolFailed(
            f"{where}: its changes were reverted and are held",
            hint=f"{_AGAIN}: `haft changes apply RUN`, `haft changes drop RUN`",
        )
    state: ChangesState = "committed" if left.becomes == "committed" else "held"
    return TransactionResult(replace(manifest, complete=False).changes(state, reason=error.message), error)


def _is_alive(stores: Stores, host: str) -> bool:
    return stores.leases().is_alive(HostId(host))


def _quietly(work: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):
        work()
