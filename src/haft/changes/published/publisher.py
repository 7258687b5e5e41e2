"""Decides how a commit reaches the workspace: at once, or as a published layer that is flushed later.

A commit is written into the workspace at once if no other call has a view that does not include it. Otherwise it is
published. The layer is flushed when all older views have ended. A layer does not wait longer than
`changes.flush_seconds`: then the older views are torn, and their calls say so.

Everything here runs in threads. Except in `take_alone`, the caller holds the workspace lock.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.changes.commit.area import boot_id
from haft.changes.commit.manifest import Manifest
from haft.changes.commit.read_entry import CallStopped
from haft.changes.commit.steps import Step
from haft.changes.commit.tree import Tree
from haft.changes.published.committed_tree import CommittedTree
from haft.changes.published.conflicts import record_of
from haft.changes.published.layer_files import make_layer
from haft.changes.published.register import PublishedLayer, Register, TakenView
from haft.changes.published.views import EXEMPT, View, Views
from haft.contracts import Conflict
from haft.files import remove

if TYPE_CHECKING:
    from haft.changes.transactions import Transactions

MOST_OPEN: Final = 60
"""How many layers may wait: an overlay over more layers gets slow, and its mount options have a limit."""
_PAUSE: Final = 0.005
_LEAST_SECONDS: Final = 2.0
"""How long a commit that cannot be published waits for older views, if `changes.flush_seconds` sets no limit."""


class Publisher:
    """Publishes and flushes the change sets of one host in one workspace."""

    def __init__(self, transactions: Transactions, views: Views, flush_seconds: float) -> None:
        self._transactions = transactions
        self._flush_seconds = flush_seconds
        self._boot = boot_id()
        self.views = views
        self.can_layer = False
        """Whether the calls of this host can see layers. Set when that is known."""
        self._flusher: threading.Thread | None = None
        self._flusher_lock = threading.Lock()
        self._wake = threading.Event()
        self._is_closed = False
        views.on_release = self._wake.set

    @property
    def register(self) -> Register:
        return self.views.register

    def committed_tree(self) -> Tree:
        """The committed state of the workspace, for reading."""
        transactions = self._transactions
        layers = [self.register.files(layer) for layer in reversed(self.register.open_layers())]
        if not layers:
            return transactions.tree()
        return CommittedTree(transactions.workspace, layers, forced=True, notes=transactions.widened_modes())

    def is_published(self, run: str) -> bool:
        """Whether the changes of a run are committed, but not in the workspace's own files."""
        return any(layer.run == run for layer in self.register.open_layers())

    def end_view(self, view: View, *, flushes: bool = False) -> None:
        """End a view. With `flushes`, the changes that waited for this view only are in the workspace when this
        returns."""
        self.views.release(view)
        if flushes:
            self.flush_ready()

    def flush_ready(self) -> None:
        """Flush the layers that wait for no view any more."""
        if self._may_flush():
            with contextlib.suppress(OSError), self._transactions.locked():
                self.flush(force=False)

    def held_up_by_person(self) -> str | None:
        """The call that waits for a person, and that has the workspace alone, or whose view published changes wait for
        without a limit; None if there is no such call."""
        persons = self.register.waiting_for_person()
        if not persons or (holder := self.register.holder()) in persons:
            return holder if persons else None
        waiting = self.register.open_layers()
        if self._flush_seconds or not waiting:
            return None
        exempt = {view.name for view in EXEMPT.get()}
        older = self.register.older_views(waiting[0].number, exempt)
        return next((view.run for view in older if view.run in persons), None)

    # Committing.

    @contextlib.contextmanager
    def turn(self, manifest: Manifest, steps: Sequence[Step], own: View | None, *, may_publish: bool) -> Iterator[bool]:
        """Yields True if the steps may be taken now: within this context, nobody can take a view. Yields False if the
        changes were published instead. `own` is the view of the call."""
        exempt = {view.name for view in EXEMPT.get()} | ({own.name} if own is not None else set())
        may_publish = may_publish and self.can_layer
        prepared = self._prepared(manifest, steps) if may_publish and self._is_waiting_necessary(exempt) else None
        while True:
            lock = self.register.wait_for_lock(exclusive=True)
            try:
                self.register.note_holder(lock, manifest.run)
                older = self.register.older_views(self.register.number() + 1, exempt)
                is_plain = not self.register.open_layers()
                if is_plain and not (older and may_publish):
                    self._wait_and_tear(older, exempt, manifest.run)
                    break
                if prepared is not None:
                    self.register.publish(prepared, manifest.run, self._record(manifest))
            except BaseException:
                self.register.unlock(lock)
                raise
            self.register.unlock(lock)
            if prepared is not None:
                self.start_flusher()
                yield False
                return
            if may_publish:
                prepared = self._prepared(manifest, steps)
                may_publish = prepared is not None
            else:
                self.flush(force=True)
        try:
            if prepared is not None:
                remove(prepared)
            self.record_at_once(manifest, exempt)
            yield True
        finally:
            self.register.unlock(lock)

    def record_at_once(self, manifest: Manifest, exempt: Collection[str] = ()) -> None:
        """Record changes that reach the workspace at once, if calls have views without them. Called under the exclusive
        lock."""
        if any(view.name not in exempt for view in self.register.views()):
            self.register.add_record(manifest.run, self._record(manifest))

    def _record(self, manifest: Manifest) -> dict[str, Any]:
        return {**record_of(self._transactions.host, manifest.entries), "boot": self._boot}

    def _is_waiting_necessary(self, exempt: set[str]) -> bool:
        return bool(self.register.open_layers() or self.register.older_views(self.register.number() + 1, exempt))

    def _prepared(self, manifest: Manifest, steps: Sequence[Step]) -> str | None:
        """The directory with the files of a new layer; None if they cannot be made here."""
        transactions = self._transactions
        place = self.register.place_for(manifest.run)
        remove(place)
        try:
            with self.committed_tree() as committed, Tree(transactions.area.path, forced=True) as area:
                make_layer(steps, committed, area, os.path.relpath(place, transactions.area.path))
            return place
        except OSError:
            remove(place)
            return None

    def _wait_and_tear(self, older: Sequence[TakenView], exempt: set[str], run: str) -> None:
        """Wait until older views have ended, but not longer than they may delay a commit. Then tear those that are
        left. Called under the exclusive lock, so nobody takes a new view."""
        end = time.monotonic() + (self._flush_seconds or _LEAST_SECONDS)
        while older and time.monotonic() < end:
            time.sleep(_PAUSE)
            older = self.register.older_views(self.register.number() + 1, exempt)
        for view in older:
            self.register.tear(view, run)

    def take_alone(self, run: str, stopped: Callable[[], bool] = lambda: False) -> int:
        """Have the workspace alone: wait until all views have ended, and let nobody take a new one. Returns a
        descriptor for `Register.unlock`, which ends this. The caller holds the workspace lock."""
        exempt = {view.name for view in EXEMPT.get()}
        while not self.flush(force=False):
            if stopped():
                raise CallStopped
            time.sleep(_PAUSE)
        lock = self.register.wait_for_lock(exclusive=True, stopped=stopped)
        try:
            self.register.note_holder(lock, run)
            self._wait_and_tear(self.register.older_views(self.register.number() + 1, exempt), exempt, run)
        except BaseException:
            self.register.unlock(lock)
            raise
        return lock

    # Flushing.

    def flush(self, *, force: bool) -> bool:
        """Flush the layers that no older view needs to be kept away from, or all of them. Returns whether none is
        left."""
        exempt = {view.name for view in EXEMPT.get()}
        waiting = self.register.open_layers()
        for layer in waiting:
            with self.register.locked():
                older = self.register.older_views(layer.number, exempt)
                if older and not force and not self._is_due(layer, len(waiting)):
                    return False
                for view in older:
                    self.register.tear(view, layer.run)
            self._flush(layer)
            with self.register.locked():
                self.register.mark_flushed(layer)
                self.register.collect()
        return True

    def _flush(self, layer: PublishedLayer) -> None:
        record = self.register.record(layer)
        host, boot = record.get("host", self._transactions.host), record.get("boot", "")
        self._transactions.of_host(host, lambda owner: owner.finish_published(layer.run, boot), is_dead=False)

    def _is_due(self, layer: PublishedLayer, waiting: int) -> bool:
        if waiting > MOST_OPEN:
            return True
        return self._flush_seconds > 0 and self.register.age(layer) >= self._flush_seconds

    def settle(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait until all published changes are in the workspace. Takes the workspace lock."""
        if self.register.open_layers():
            with self.locked_and_settled(stopped):
                pass

    @contextlib.contextmanager
    def locked_and_settled(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Hold the workspace lock, when all committed changes are in the workspace's own files."""
        while True:
            with self._transactions.locked(stopped):
                if self.flush(force=False):
                    yield
                    return
            if stopped():
                raise CallStopped
            time.sleep(_PAUSE)

    def gives_way(self, stopped: Callable[[], bool]) -> bool:
        """For the waits of a command of a person: `stopped()`. Raises `Conflict` if the command would wait for a call
        that itself waits for a person."""
        if (run := self.held_up_by_person()) is not None:
            raise Conflict(
                f"nothing was changed: {run} has the workspace, and waits for a person",
                hint=f"answer it (`haft inbox`) or cancel it (`haft cancel {run}`), then try again",
            )
        return stopped()

    def start_flusher(self) -> None:
        """Let a thread flush the layers as soon as that is possible."""
        with self._flusher_lock:
            if self._flusher is None and not self._is_closed:
                self._flusher = threading.Thread(target=self._flush_all, name="haft-flusher", daemon=True)
                self._flusher.start()

    def _flush_all(self) -> None:
        while True:
            self._wake.clear()
            try:
                if self._may_flush():
                    with self._transactions.locked(lambda: self._is_closed):
                        self.flush(force=False)
            except Exception:  # noqa: S110  the next attempt, or the next host, flushes it
                pass
            with self._flusher_lock:
                if self._is_closed or not self.register.open_layers():
                    self._flusher = None
                    return
            self._wake.wait(_PAUSE * 2)

    def _may_flush(self) -> bool:
        waiting = self.register.open_layers()
        return bool(waiting) and (
            not self.register.older_views(waiting[0].number) or self._is_due(waiting[0], len(waiting))
        )

    def close(self) -> None:
        """Flush everything. Waits for older views no longer than a layer may wait. If a layer may wait without a limit,
        the host of those views flushes it later."""
        end = time.monotonic() + (self._flush_seconds or _LEAST_SECONDS)
        with contextlib.suppress(OSError):
            while self.register.open_layers() and time.monotonic() < end:
                with self._transactions.locked():
                    if self.flush(force=False):
                        break
                time.sleep(_PAUSE)
            if self._flush_seconds and self.register.open_layers():
                with self._transactions.locked():
                    self.flush(force=True)
            with self.register.locked():
                self.register.collect()
        self._is_closed = True
        self._wake.set()
        flusher = self._flusher
        if flusher is not None:
            flusher.join()
