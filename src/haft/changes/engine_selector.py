"""The choice of the engine that tracks a call's changes, and the reason why a better engine is not available.

Each host tests once whether overlays work. If they do not, the outcome of every run says why. A session process is a
process that a tool keeps running between its calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from haft import changes
from haft.changes import engines
from haft.changes.between_calls import WatchedSession, WorkspaceAfterCall, unexplained_paths
from haft.changes.commit.area import UNFIT_FOR_LAYERS, boot_id, filesystem, identity, mounts_inside
from haft.changes.commit.read_entry import CallStopped
from haft.changes.nested_calls import Lock, committed_by_nested_calls, has_workspace_alone
from haft.changes.published.conflicts import links_of
from haft.changes.published.mounted_views import MountedViews
from haft.changes.published.person_mark import PersonMark
from haft.changes.transactions import EndAction, Owner, TransactionResult, Transactions
from haft.changes.uncancellable import run_uncancellable
from haft.contracts import (
    BadConfig,
    CallError,
    Changes,
    ChangesState,
    Deadlock,
    HaftError,
    Layer,
    LayeredSession,
    Session,
    StartFailed,
    ToolFailed,
    ToolSpec,
    Workspace,
    new_run_id,
)
from haft.values import replace

if TYPE_CHECKING:
    from haft.changes.engines import SessionCalls
    from haft.changes.engines.scope import Scope
    from haft.changes.engines.session import SessionTransaction, WritesBetweenCalls
    from haft.changes.engines.snapshot import SnapshotTransaction
    from haft.changes.published.views import View, WaitNews

Setting = Literal["auto", "overlay", "snapshot", "off"]


class LayerTrial(Protocol):
    """The part of the sandbox that this module needs: it tests whether a layer can be mounted."""

    async def layer_basis(self) -> Mapping[str, Any]:
        """Every fact about the sandbox that may change the result of `no_layer`."""
        ...

    async def no_layer(self, layer: Layer) -> str | None:
        """Start a program in this layer above the workspace. Returns the reason if that fails, None if it works."""
        ...

    async def mount(self, layer: Layer) -> None:
        """Mount a layer, and give its `view` a descriptor of the workspace as it is seen there."""
        ...


OUTLIVES_CALLS = "its process outlives its calls"
OFF = Changes(complete=False, reason="`changes.engine` is `off`")
IN_PROCESS = Changes(complete=False, reason="it runs in this process, where nothing watches what it changes")


class Transaction(Protocol):
    """The transaction of one call, as the pipeline sees it: it follows the call's changes until they are committed,
    held or discarded."""

    @property
    def layer(self) -> Layer | None: ...
    @property
    def workspace(self) -> Workspace | None: ...
    @property
    def scope(self) -> Scope | None:
        """The scope in which nested calls of this call work; None if they work in the workspace itself."""
        ...

    @property
    def lock(self) -> Lock | None:
        """The workspace lock, if the call holds it exclusively; otherwise None."""
        ...

    def keep_order(self, check: Callable[[list[str]], str | None]) -> None:
        """Let `check` say why changed paths may not be committed, because of the order of a batch; None if they
        may."""
        ...

    def show(self, seen: Workspace) -> None:
        """From now on, a tool in this process sees the workspace as `seen` shows it."""
        ...

    def is_untouched(self) -> bool:
        """Whether the call changed nothing, so that `finish` is cheap."""
        ...

    def pause(self, granted_paths: Sequence[str]) -> HaftError | None:
        """Make the changes so far visible to a nested call. Returns the error if that is not possible, otherwise
        None."""
        ...

    def resume(self) -> None:
        """Continue after a nested call, which may have changed the workspace."""
        ...

    def finish(
        self,
        action: EndAction,
        *,
        granted_paths: Sequence[str],
        why: str | None,
        stopped: Callable[[], bool],
        doubt: str | None = None,
        is_layer_open: Callable[[], bool] = lambda: False,
    ) -> TransactionResult:
        """Commit, hold or discard the changes. `doubt` is the reason to suspect changes that the engine could not see;
        None if there is no such reason. `is_layer_open` says whether a process may still have a file of the layer
        open."""
        ...

    def at_rest(self) -> AbstractAsyncContextManager[str | None]:
        """Within this context, no process of the call runs. Yields the reason why the changes may be incomplete, or
        None. Call `finish` inside this context."""
        ...

    @property
    def covers_others(self) -> bool:
        """Whether changes that others made to the workspace during the call are counted as changes of the call."""
        ...


class EngineSelector:
    """Chooses the engine for each call of one host."""

    def __init__(self, transactions: Transactions, setting: Setting, budget: int, trial: LayerTrial) -> None:
        self.transactions = transactions
        self._setting = setting
        self._budget = budget
        self._trial = trial
        self._overlay: str | Literal[False] | None = False
        """Why overlays do not work; None if they work; False if this was not tested yet."""
        self._overlay_lock = asyncio.Lock()
        self._filesystem: str | None = None
        self._calls: dict[Session, SessionCalls] = {}
        """For each session process that works in layers: the object that manages these layers."""
        self._mounted = MountedViews(trial)
        self._left: dict[Session, WorkspaceAfterCall] = {}
        """The workspace after the last call of each session process."""

    @property
    def is_off(self) -> bool:
        """Whether changes are not tracked."""
        return self._setting == "off"

    def place_of_layers(self) -> str | None:
        """The directory that holds the layers of calls; None if the system or the setting allows no layers."""
        if sys.platform != "linux" or self._setting in ("snapshot", "off"):
            return None
        return self.transactions.area.path

    async def why_no_trial(self, spec: ToolSpec) -> str | None:
        """Why a trial run of this tool is not possible; None if it is possible."""
        if spec.trial_in_layer:
            return await self._why_no_layer()
        if spec.hosting == "in-process":
            return None if spec.provenance == "builtin" else "it runs in this process"
        if spec.hosting == "remote":
            return "it runs on another machine"
        return OUTLIVES_CALLS if spec.hosting == "session" else await self._why_no_layer()

    def person_mark(self, run: str) -> PersonMark:
        """The mark that says to all processes whether a call of this host waits for a person."""
        return PersonMark(self.transactions.publisher.register, run)

    async def take_view(self, run: str, waiting: WaitNews) -> View:
        """A view of the committed state, for a call of this run. `waiting` is told which run must end first, if that
        takes long."""
        return await self.transactions.publisher.views.take(run, waiting)

    def shows_other(self, view: View, files: Sequence[str]) -> bool:
        """Whether published layers of a view have some of these files, given by absolute paths."""
        inside = self.transactions.workspace.rstrip("/") + "/"
        wanted = [path.removeprefix(inside) for path in files if path.startswith(inside)]
        if not wanted:
            return False
        area = self.transactions.area.path
        return any(os.path.lexists(os.path.join(area, name, path)) for name, *_which in view.lowers for path in wanted)

    async def prepare_commit(self) -> None:
        """Find out whether layers work here, if other calls run whose views must not change."""
        publisher = self.transactions.publisher
        if not publisher.can_layer and len(publisher.register.views()) > 1:
            await self._why_no_layer()

    async def seen_through(self, view: View, workspace: Workspace) -> Workspace:
        """The workspace as a view shows it, for a tool in this process."""
        if not view.lowers:
            return workspace
        return workspace.seen_at(f"/proc/self/fd/{await self._mounted.descriptor(view)}/.", is_readonly=True)

    @contextlib.asynccontextmanager
    async def reading(
        self, view: View, workspace: Workspace, *, in_process: bool
    ) -> AsyncIterator[tuple[Layer | None, Workspace]]:
        """For a call that only reads: the layer in which its processes see the view, or None if they see the workspace
        itself; and the workspace as the view shows it. The view ends with the context."""
        try:
            seen = await self.seen_through(view, workspace)
            layer = None
            if view.lowers and not in_process:
                layer = Layer(f"{view.run}.view", engines.layer_options(), (0, 0), view.lowers, is_readonly=True)
            yield layer, seen
        finally:
            self.end_view(view)

    def end_view(self, view: View) -> None:
        """End a view."""
        self.transactions.publisher.end_view(view)
        self._mounted.release(view)

    async def flush_ready(self) -> None:
        """When a view has ended: write the committed changes that wait for no view any more into the workspace's own
        files. So when no call runs, nothing waits."""
        if not self.is_settled():
            publisher = self.transactions.publisher
            publisher.start_flusher()  # Somebody must flush them even if the current call is cancelled.
            await run_uncancellable(publisher.flush_ready)

    def renew_view(self, view: View) -> None:
        """Let a call see the state as it is committed now, after a call that it made. Waits in the thread."""
        self.transactions.publisher.views.renew(view)

    async def settled(self) -> None:
        """Wait until all committed changes are in the workspace's own files."""
        publisher = self.transactions.publisher
        if not publisher.register.open_layers():
            return
        stop: list[bool] = []
        try:
            await run_uncancellable(lambda: publisher.settle(lambda: bool(stop)), lambda: stop.append(True))
        except CallStopped:
            raise asyncio.CancelledError from None

    def is_settled(self) -> bool:
        """Whether all committed changes are in the workspace's own files."""
        return not self.transactions.publisher.register.open_layers()

    def published_links(self) -> list[str]:
        """The paths at which committed changes, which are not in the workspace's own files yet, have made or removed a
        link."""
        if self.is_off or self.is_settled():
            return []
        transactions = self.transactions
        return links_of(transactions.publisher.register, transactions.workspace)

    def filesystem_of_workspace(self) -> str:
        """The kind of filesystem that holds the workspace; empty if unknown."""
        if self._filesystem is None:
            self._filesystem = filesystem(self.transactions.workspace)
        return self._filesystem

    def last_commit(self) -> int:
        """A number that is another one after a commit that any running call could miss."""
        return self.transactions.publisher.register.number()

    async def begin(
        self,
        spec: ToolSpec,
        owner: Owner,
        workspace: Workspace,
        report: Callable[[str], None],
        waiting: WaitNews,
        take_view: Callable[[], Awaitable[View]],
        session: Callable[[], Session | None] = lambda: None,
        within: Scope | None = None,
        started: Callable[[], Awaitable[Session]] | None = None,
    ) -> Transaction | Changes:
        """Begin a transaction for one call. If tracking is off, return `Changes` that say so. A thread tells `waiting`
        which run must end first, if that takes long. `take_view` takes the view of the call. `session` gives the tool's
        session process, or None if it does not run now; `started` starts the process if necessary and returns it. If
        the call is nested in a call that works in a layer, `within` is the scope of that caller."""
        if self._setting == "off":
            return OFF
        transactions = self.transactions
        if spec.hosting == "in-process" and (self._setting != "snapshot" or spec.provenance == "builtin"):
            is_complete = spec.provenance == "builtin"
            if within is not None:
                seen = workspace.seen_at(within.path)
                return engines.DeclaredTransaction(transactions, owner, seen, complete=is_complete, scope=within)
            if has_workspace_alone():
                return engines.DeclaredTransaction(transactions, owner, workspace, complete=is_complete)
            view = await take_view()
            try:
                seen = await self.seen_through(view, workspace)
            except BaseException:
                self.end_view(view)
                raise
            return engines.DeclaredTransaction(
                transactions, owner, workspace, complete=is_complete, view=view, seen=seen
            )
        if within is not None and spec.hosting == "session":
            raise self._cannot_call_within(spec.name, within, session())
        if started is not None and (layered := await self._session_transaction(started, owner, take_view)) is not None:
            return layered
        why = OUTLIVES_CALLS if spec.hosting == "session" else await self._why_no_layer()
        if why is None:
            # The host cannot look into the layer of a template that the warm pool keeps loaded: no nested calls there.
            makes_calls = spec.kind != "agent-studio"
            if within is None:
                view = await take_view()
                try:
                    return engines.OverlayTransaction(transactions, owner, makes_calls=makes_calls, view=view)
                except BaseException:
                    self.end_view(view)
                    raise
            # In a thread, because the constructor copies the caller's changes.
            overlay = engines.OverlayTransaction
            return await run_uncancellable(lambda: overlay(transactions, owner, within, makes_calls=makes_calls))
        if self._setting == "overlay" and spec.hosting != "session":
            raise BadConfig(
                f"`changes.engine` is `overlay`, but overlays do not work here: {why}", hint="set it to `auto`"
            )
        watched = WatchedSession(session, self._left) if spec.hosting == "session" else None
        why = why if self._setting == "auto" else None
        snapshot = engines.SnapshotTransaction(transactions, owner, self._budget, why, watched)
        return await self._scanned(snapshot, report, waiting)

    async def begin_in_layer(
        self, spec: ToolSpec, owner: Owner, take_view: Callable[[], Awaitable[View]], within: Scope | None
    ) -> Transaction:
        """Begin a transaction in a layer, for a tool in this process. A helper mounts the layer, and sends a descriptor
        of it. Through it, this process sees the layer, and writes the changes of the tool's calls into it."""
        why = await self._why_no_layer()
        if why is not None:
            raise ToolFailed(f"`{spec.name}` was not run: it would need a layer of its own, and cannot have one: {why}")
        view = await take_view() if within is None else None
        transaction: engines.OverlayTransaction | None = None
        try:
            overlay = functools.partial(engines.OverlayTransaction, makes_calls=True, view=view)
            # In a thread, because the constructor copies the caller's changes.
            transaction = await run_uncancellable(lambda: overlay(self.transactions, owner, within))
            await self._trial.mount(transaction.layer)
            if transaction.scope is None or not await transaction.scope.wait_for_view():
                raise StartFailed(f"`{spec.name}` was not run: its layer could not be mounted")
        except BaseException:
            if transaction is not None:
                transaction.abandon()
            if view is not None:
                self.end_view(view)
            raise
        return transaction

    async def begin_background(
        self, owner: Owner, report: Callable[[str], None], waiting: WaitNews
    ) -> Transaction | Changes:
        """Begin a transaction for a command that works on the workspace itself and lasts longer than other calls can
        wait for."""
        if self._setting == "off":
            return OFF
        background = engines.BackgroundTransaction(self.transactions, owner, self._budget)
        return await self._scanned(background, report, waiting)

    @staticmethod
    async def _scanned(
        transaction: SnapshotTransaction, report: Callable[[str], None], waiting: WaitNews
    ) -> Transaction:
        """The transaction, after its first scan of the workspace."""
        stop: list[bool] = []
        try:
            await run_uncancellable(
                lambda: transaction.begin(lambda: bool(stop), report, waiting), lambda: stop.append(True)
            )
        except CallStopped:
            raise asyncio.CancelledError from None
        if stop:
            transaction.abandon()
            raise asyncio.CancelledError
        return transaction

    @contextlib.asynccontextmanager
    async def readonly_layer(self, run: str, scope: Scope) -> AsyncIterator[Layer]:
        """The layer for a read-only nested call. In this layer, the nested call sees its caller's changes so far."""
        place = os.path.join(self.transactions.live, f"{run}.layer")
        name = f"{self.transactions.live_in_area}/{run}.layer"
        os.mkdir(place, 0o700)
        try:
            lowers = await run_uncancellable(lambda: scope.finished_layers(place, name))
            yield Layer(name, engines.layer_options(), (0, 0), lowers, is_readonly=True)
        finally:
            self.transactions.remove_later(place)

    def _cannot_call_within(self, tool: str, within: Scope, session: Session | None) -> CallError:
        """The error for a nested call that is not possible: its caller works in a layer, and its tool runs in a
        plugin's process."""
        calls = None if session is None else self._calls.get(session)
        if calls is not None and calls.at_work == within.run:
            return Deadlock(
                f"`{tool}` was not called: its process answers one call at a time, and it still answers {within.run},"
                " which waits for this call"
            )
        return ToolFailed(
            f"`{tool}` was not called: its process started before {within.run}, which calls it, and"
            " cannot see the changes that this call has made so far",
            hint="call it from a tool that does not work in a layer: a function in the host's process, a sub-agent"
            " whose isolation is the workspace, or a Python plugin without a write grant",
        )

    async def _session_transaction(
        self, started: Callable[[], Awaitable[Session]], owner: Owner, take_view: Callable[[], Awaitable[View]]
    ) -> SessionTransaction | None:
        """The transaction for a call whose session process works in layers; None if the process works in the workspace
        itself."""
        while (calls := self._calls.get(session := await started())) is not None:
            try:
                return await calls.begin(owner, take_view)
            except engines.SessionEnded:
                await asyncio.gather(session.wait(), return_exceptions=True)
        return None

    async def new_session_calls(
        self, granted_paths: Sequence[str], report: Callable[[WritesBetweenCalls], None]
    ) -> SessionCalls | None:
        """The object that manages the layers of a session process, which is about to start and may write
        `granted_paths`; None if the process will work in the workspace itself."""
        if self._setting == "off" or await self._why_no_layer() is not None:
            return None
        return engines.SessionCalls(self.transactions, granted_paths, report)

    def session_started(self, calls: SessionCalls, session: LayeredSession, key: Session) -> None:
        """Register a session process that has started. `key` is the session object by which tools use this process."""
        calls.session = session
        self._calls[key] = calls

    async def session_ended(self, key: Session) -> None:
        """Collect the files that a session process wrote after its last call. Call this when the process has ended."""
        calls = self._calls.pop(key, None)
        if calls is not None:
            await calls.collect_writes()

    def changed_since(self, session: Session, stopped: Callable[[], bool]) -> tuple[str, list[str]]:
        """The last run of a session process that has ended, and the paths that changed since that run, protected paths
        first. Raises `CallStopped` if `stopped` returns True while this waits for the workspace lock."""
        left = self._left.pop(session, None)
        if left is None:
            return "", []
        with self.transactions.locked(stopped):
            found = engines.snapshots_of(self.transactions).examine(
                left.snapshot, self.transactions.workspace, 0, lambda: False
            )
            return left.run, unexplained_paths(self.transactions, left, found.changes)

    async def _why_no_layer(self) -> str | None:
        """Why the next call cannot work in a layer above the workspace; None if it can."""
        if self._setting in ("snapshot", "off"):
            return f"`changes.engine` is `{self._setting}`"
        why = await self.why_no_overlay()
        if why is None and (inside := mounts_inside(self.transactions.workspace)):
            return f"other filesystems are mounted in the workspace ({', '.join(inside[:3])})"
        return why

    def apply(self, run: str, granted_paths: Sequence[str]) -> TransactionResult:
        """Commit the held changes of a run of this host. They stay held if they touch protected paths that are not in
        `granted_paths`."""
        return changes.apply(self.transactions, run, granted_paths=granted_paths)

    def drop(self, run: str) -> Changes:
        """Discard the held changes of a run."""
        return changes.drop(self.transactions, run)

    def undo_nested(self, caller: Owner, made: Sequence[str]) -> tuple[list[str], str | None]:
        """Undo the changes that nested calls of the cancelled call `caller` committed. `made` are the ids of the nested
        runs. Returns the undone runs, and the reason if the undo failed, otherwise None."""
        rows = committed_by_nested_calls(self.transactions.ledger, caller.run, made)
        if not rows:
            return [], None
        try:
            changes.reverse(self.transactions, "undo", rows, replace(caller, run=new_run_id(), parent=caller.run))
        except HaftError as error:
            return [], error.message
        return [row.run for row in rows if row.run in made], None

    def state(self, run: str) -> ChangesState:
        """The current state of a run's changes, from the ledger: another process may have set it."""
        row = self.transactions.ledger.get(run)
        return "none" if row is None else row.state

    def diff_text(self, run: str) -> str:
        """The diff of a run's changes, for a person."""
        with contextlib.closing(changes.KeptChanges(self.transactions.ledger, self.transactions.blobs)) as kept:
            return changes.diff_text(kept, run)

    async def why_no_overlay(self) -> str | None:
        """Why calls cannot work in a layer above the workspace; None if they can. haft finds out by starting a program
        in a layer. A success is cached on disk until the machine's configuration changes."""
        async with self._overlay_lock:
            if self._overlay is False:
                self._overlay = await self._try_overlay()
                self.transactions.publisher.can_layer = self._overlay is None
            return self._overlay

    async def _try_overlay(self) -> str | None:
        if sys.platform != "linux":
            return "only Linux has overlays"
        transactions = self.transactions
        kind = filesystem(transactions.area.path)
        if kind in UNFIT_FOR_LAYERS:
            return f"a layer cannot lie on {kind}"
        area, workspace = transactions.area, transactions.workspace
        facts = {
            "kernel": os.uname().release, "boot": boot_id(), "process": _confinement(),
            "filesystems": [kind, filesystem(workspace)],
            "places": [area.path, *identity(area.path), *identity(workspace)],
            "moves": area.can_move, "options": engines.layer_options(), "sandbox": await self._trial.layer_basis(),
        }  # fmt: skip
        noted = os.path.join(os.path.dirname(area.lock), "overlay")
        try:
            with open(noted) as file:
                known = json.load(file)
            if known == facts:
                return None  # Only success is cached: a failure may have been repaired since.
        except (OSError, ValueError):
            pass
        owner = Owner("trial-" + os.urandom(6).hex(), "", "")
        try:
            transaction = engines.OverlayTransaction(transactions, owner)
        except OSError as error:
            return str(error)
        try:
            problem = await self._trial.no_layer(transaction.layer)
        except HaftError as error:
            problem = error.message
        finally:
            transaction.drop()
        if problem is None:
            temporary = f"{noted}.{os.getpid()}"
            with open(temporary, "w") as file:
                json.dump(facts, file)
            os.rename(temporary, noted)
        return problem


def _confinement() -> list[str]:
    """What the kernel says about this process's user and restrictions. `why_no_overlay` caches its result together with
    these facts, because a restarted container may have fewer rights."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        found = [" ".join(line.split()) for line in file if line.startswith(_CONFINEMENT_FIELDS)]
    with contextlib.suppress(OSError), open("/proc/self/attr/current", encoding="utf-8", errors="replace") as file:
        found.append(file.read().strip("\0\n"))
    return found


_CONFINEMENT_FIELDS = ("Uid:", "Gid:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:")
