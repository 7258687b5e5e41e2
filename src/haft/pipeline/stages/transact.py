"""A stage that changes and watches a call: it makes the call a transaction, and commits, holds or discards its changes
at the end.

If the tool ended by itself, with success or failure, its changes are committed. If a limit stopped the tool, its
changes are held: nothing is lost, but half-finished work gets into the workspace only if a person applies it. If the
tool was cancelled, its changes are discarded. The changes of a trial run are held until a person has reviewed them. The
changes of a whole program (`haft run`) are held however the program ended."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from haft import changes as changing
from haft.changes import run_uncancellable
from haft.contracts import (
    NO_CHANGES,
    Changes,
    Conflict,
    Deadlock,
    Failure,
    HaftError,
    Isolation,
    Outcome,
    RunId,
    Session,
    ToolFailed,
    ToolSpec,
    Workspace,
    evolve,
)
from haft.pipeline import nesting
from haft.pipeline.chain import Proceed
from haft.pipeline.confinement import Confinements, grants_of, hosting_of
from haft.pipeline.run import Run
from haft.sandbox import Sandbox
from haft.schedule import Locks
from haft.values import replace

if TYPE_CHECKING:
    from haft.changes import EndAction, EngineSelector, Owner, Scope, Transaction, TransactionResult, View

REMOTE = Changes(complete=False, reason="it runs elsewhere: its changes are not tracked")
OUTSIDE = "one of its commands ran outside the layer that collects its changes"
HELD_FOR_PERSON = "a person decides about them"
_STOPPED = ("timed-out", "limit-exceeded")


class Transact:
    """Makes each call that may change something a transaction."""

    def __init__(
        self,
        engine_selector: Callable[[], EngineSelector],
        workspace: Workspace,
        sandbox: Sandbox,
        confinements: Confinements,
        isolation: Isolation,
        locks: Locks,
        *,
        waits_for_flush: bool,
    ) -> None:
        self._waits_for_flush = waits_for_flush
        self._isolation = isolation
        self._sandbox = sandbox
        self._confinements = confinements
        self._engine_selector = engine_selector
        self._workspace = workspace
        self._with_sessions: set[Run] = set()
        """The live runs whose tool has a session process, which handles one call at a time."""
        self._lock_waits = locks.waits_of
        locks.other_waits = lambda run: nesting.tool_waits_of(run, self._with_sessions)

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if run.batch is not None:
            run.batch.started(run)
        if hosting_of(run) != "session":
            return await self._run_in_caller_scope(run, proceed)
        circle = nesting.find_deadlock(run, self._with_sessions, self._lock_waits)
        if circle is not None and circle != nesting.busy_with(run):  # A plugin that calls itself gets another error.
            raise Deadlock(
                f"`{run.call.name}` was not called: its process answers one call at a time, and its current call waits"
                f" for {circle}, which waits for this call"
            )
        self._with_sessions.add(run)
        try:
            return await self._run_in_caller_scope(run, proceed)
        finally:
            self._with_sessions.discard(run)

    async def _run_in_caller_scope(self, run: Run, proceed: Proceed) -> Outcome:
        """Run the call. If another run made the call, the call shares the lock or the layer of that run."""
        if run.parent is None:
            try:
                return await self._run_to_end(run, proceed)
            finally:
                if run.view is not None:
                    await self._engine_selector().flush_ready()
        caller = next((each for each in nesting.callers(run) if each.transaction is not None), None)
        if caller is None:
            with changing.exempt([each.view for each in nesting.callers(run) if each.view]):
                try:
                    return await self._run_to_end(run, proceed)
                finally:
                    await self._renew_views(run)
        lock = next(
            (each.transaction.lock for each in nesting.callers(run) if each.transaction and each.transaction.lock), None
        )
        changes = not run.tool.spec.effects.readonly and not await self._cannot_write(run)
        scope = None if caller.transaction is None else caller.transaction.scope
        if scope is not None and not await scope.wait_for_view():
            scope = None
        if scope is None and any(each.transaction and each.transaction.scope for each in nesting.callers(run)):
            raise ToolFailed(
                f"`{run.call.name}` was not called: the layer of its callers cannot be seen from {caller.id}, which"
                " calls it"
            )
        with changing.share_lock(lock), changing.exempt([each.view for each in nesting.callers(run) if each.view]):
            if caller.transaction is None or caller.transaction.lock is None:
                await self._pause(caller, run)
                try:
                    return await self._run_to_end(run, proceed, scope)
                finally:
                    await self._renew_views(run)
            if not changes:
                return await self._run_to_end(run, proceed)
            # A caller that has locked the workspace shares the lock with its calls, with one call at a time.
            async with caller.child_lock:
                await self._pause(caller, run)
                try:
                    return await self._run_to_end(run, proceed)
                finally:
                    await run_uncancellable(caller.transaction.resume)

    async def _renew_views(self, run: Run) -> None:
        """Let the callers of a run see what it committed."""
        for caller in nesting.callers(run):
            view, transaction = caller.view, caller.transaction
            if transaction is not None and transaction.scope is not None:
                return  # The run committed nothing: its changes are in the layer of this caller.
            if view is not None and not view.is_over:
                view.own.append(run.id)
                if transaction is not None and transaction.layer is not None:
                    continue  # Its processes see what they saw from the beginning, so what others commit is a conflict.
                await run_uncancellable(functools.partial(self._engine_selector().renew_view, view))
                seen = await self._engine_selector().seen_through(view, self._workspace)
                if transaction is not None:
                    transaction.show(seen)
                elif caller.workspace is not None:
                    caller.workspace = seen

    async def _take_view(self, run: Run) -> View:
        """Take the view of a call."""

        selector, waiting = self._engine_selector(), _teller(run)
        run.person_mark = selector.person_mark(run.id)
        batch = run.batch
        if batch is not None:  # Before the view: what earlier calls commit while it is taken may not be in it.
            batch.started(run)
        view = await selector.take_view(run.id, waiting)
        while view.lowers and (self._names_missing_path(run) or selector.shows_other(view, _files_of(run))):
            # A command starts in a directory of the workspace's own files, and the files of the tool are compared there
            # with those that were approved. So what is only published yet must get there first.
            selector.end_view(view)
            await selector.settled()
            view = await selector.take_view(run.id, waiting)
        view.isolation = run.call.isolation or run.decision.isolation or self._isolation
        view.reads = None if run.call.footprint is None else run.call.footprint.reads
        if batch is not None:
            view.check = functools.partial(batch.check_commit, run)
        run.view = view
        return view

    def _names_missing_path(self, run: Run) -> bool:
        """Whether the processes of a call may start in a directory that the workspace's own files do not have."""
        spec, arguments = run.tool.spec, run.call.arguments
        named = [run.call.cwd, *(arguments.get(name) for name in spec.paths)] if spec.has_processes else []
        try:
            return any(isinstance(path, str) and self._workspace.identity(path) is None for path in named)
        except HaftError:
            return True

    async def _pause(self, caller: Run, run: Run) -> None:
        """Make everything that the caller has changed so far visible to `run`, a call that the caller makes."""
        transaction, spared, stop = caller.transaction, await self._granted_writes(caller), list[bool]()
        assert transaction is not None
        error = await run_uncancellable(lambda: transaction.pause(spared), lambda: stop.append(True))
        if stop:
            raise asyncio.CancelledError
        if error is not None:
            raise ToolFailed(
                f"`{run.call.name}` was not called: the changes of its caller {caller.id} could not be committed first:"
                f" {error.message}"
            )

    async def _run_to_end(self, run: Run, proceed: Proceed, scope: Scope | None = None) -> Outcome:
        """Run the call to its end. If a caller of this call writes to a layer, this call shares the layer, and `scope`
        describes it. If the call is cancelled, undo the changes of the calls that it made."""
        try:
            spec = run.tool.spec
            if spec.delegates and not nesting.wants_layer(run):
                outcome = evolve(await proceed(run), changes=NO_CHANGES)  # Each of its calls has its own transaction.
            elif scope is None and spec.effects.readonly and spec.hosting == "in-process":
                # The call changes nothing, so `_run_tracked` would do the same. A function of the embedding program
                # reads the workspace itself.
                outcome = await (self._run_viewing(run, proceed) if spec.provenance == "builtin" else proceed(run))
            else:
                outcome = await self._run_tracked(run, proceed, scope)
        except asyncio.CancelledError:
            await self._undo_children(run)
            raise
        finally:
            run.person_mark = None
        if outcome.error is not None and outcome.error.code == "cancelled":
            await self._undo_children(run)
        return outcome

    async def _undo_children(self, run: Run) -> None:
        if not run.descendants:
            return
        owner = _owner(run)
        back, why_not = await run_uncancellable(lambda: self._engine_selector().undo_nested(owner, run.descendants))
        if back:
            run.add_note(f"it was cancelled, and the changes of {', '.join(back)} were undone")
        if why_not is not None:
            run.add_note(f"it was cancelled, and the changes of the calls that it made could not be undone: {why_not}")

    async def _run_tracked(self, run: Run, proceed: Proceed, scope: Scope | None) -> Outcome:
        tool = run.tool
        spec, hosting = tool.spec, hosting_of(run)
        if hosting == "remote" and not isinstance(tool, changing.OwnChanges):
            return evolve(await proceed(run), changes=REMOTE)
        if spec.effects.readonly or isinstance(tool, changing.OwnChanges):
            # The call changes nothing, or is a command such as undo, which makes its own change set.
            return await self._run_reading(run, proceed, scope)
        if spec.hosting != hosting:
            spec = replace(spec, hosting=hosting)
        if await self._cannot_write(run):
            return evolve(await self._run_reading(run, proceed, scope), changes=NO_CHANGES)
        outcome = await self._attempt(run, proceed, scope, spec)
        if self._may_repeat(run, outcome):
            selector = self._engine_selector()
            await run_uncancellable(lambda: selector.drop(run.id))
            run.transaction, run.view, run.changes, run.workspace = None, None, None, None
            run.set_status("queued", {"attempt": 2})
            run.add_note("it met a conflict with another call when it committed, and ran once more")
            outcome = await self._attempt(run, proceed, scope, spec)
        return outcome

    @staticmethod
    def _may_repeat(run: Run, outcome: Outcome) -> bool:
        """Whether a call that met a conflict when it committed may run once more, on the files as they are now: it can
        be repeated without harm, it reached no network, and nobody has seen its output or its changes."""
        error, effects = outcome.error, run.tool.spec.effects
        return (
            error is not None
            and error.code == "conflict"
            and outcome.changes.state == "held"
            and effects.idempotent
            and not effects.network
            and not run.call.holds
            and run.call.preview is None
            and run.decision.action == "allow"
            and run.output_buffer is None
            and run.tool.spec.hosting in ("in-process", "per-call")
            and (run.call.confinement is None or not run.call.confinement.network or not run.tool.spec.has_processes)
            and not run.descendants
            and not run.cancel_requested
        )

    async def _attempt(self, run: Run, proceed: Proceed, scope: Scope | None, spec: ToolSpec) -> Outcome:
        owner = _owner(run)

        def tell(message: str) -> None:
            run.emit("progress", {"message": message, "fraction": None})

        loop, teller = asyncio.get_running_loop(), _teller(run)

        def waiting(other: str | None, is_person: bool) -> None:
            loop.call_soon_threadsafe(teller, other, is_person)

        attachment, selector = run.call.attachment, self._engine_selector()
        wants_layer = nesting.wants_layer(run)
        run.person_mark = selector.person_mark(run.id)
        if attachment is not None and attachment.is_background:
            transaction = await selector.begin_background(owner, tell, waiting)
        elif wants_layer:
            transaction = await selector.begin_in_layer(spec, owner, lambda: self._take_view(run), scope)
        else:
            transaction = await selector.begin(
                spec,
                owner,
                self._workspace,
                tell,
                waiting,
                lambda: self._take_view(run),
                lambda: _session(run),
                scope,
                _started(run),
            )
        if isinstance(transaction, Changes):
            outcome = await proceed(run)
            return evolve(outcome, changes=transaction) if outcome.changes.engine == "none" else outcome
        run.workspace = transaction.workspace
        if isinstance(transaction, changing.SessionTransaction):
            if transaction.written is not None:
                run.add_note(transaction.written.sentence())
        elif not wants_layer:
            run.revise(layer=transaction.layer)
        elif transaction.scope is not None:
            run.workspace = self._workspace.seen_at(transaction.scope.path)
        run.transaction = transaction
        if run.batch is not None:
            transaction.keep_order(functools.partial(run.batch.check_commit, run))
        try:
            outcome = await proceed(run)
        except BaseException:  # The call was cancelled, or could not begin.
            # Snapshots before and after a call of a session also contain what others changed meanwhile. Those changes
            # must not be discarded.
            is_kept = run.call.holds or (spec.hosting == "session" and transaction.covers_others)
            action: EndAction = "hold" if is_kept else "discard"
            run.changes = (await self._finish_transaction(run, transaction, action, "the call was cancelled")).changes
            raise
        return await self._finish_outcome(run, transaction, outcome)

    async def _run_reading(self, run: Run, proceed: Proceed, scope: Scope | None) -> Outcome:
        """Run a call that changes nothing itself. The call sees the changes of its caller."""
        if run.tool.spec.hosting == "session" or isinstance(run.tool, changing.OwnChanges):
            return await proceed(run)
        if scope is None:
            return await self._run_viewing(run, proceed)
        run.workspace = self._workspace.seen_at(scope.path)
        async with self._engine_selector().readonly_layer(run.id, scope) as layer:
            run.revise(layer=layer if layer.lowers else None)
            return await proceed(run)

    async def _run_viewing(self, run: Run, proceed: Proceed) -> Outcome:
        """Run a call that only reads: it sees one committed state of the workspace, as of its start."""
        if changing.has_workspace_alone() or self._engine_selector().is_off:
            return await proceed(run)
        view, in_process = await self._take_view(run), run.tool.spec.hosting == "in-process"
        try:
            async with self._engine_selector().reading(view, self._workspace, in_process=in_process) as (layer, seen):
                run.revise(layer=layer)
                run.workspace = None if seen is self._workspace else seen
                outcome = await proceed(run)
        finally:
            self._note_torn(run)
        return _in_conflict_if_torn(run, outcome)

    def _note_torn(self, run: Run) -> None:
        if run.view is not None and run.view.torn is not None:
            run.add_note(
                f"its view of the workspace was not one committed state: the changes of {run.view.torn} were written"
                " while it ran, because it ran longer than `changes.flush_seconds`"
            )

    async def _cannot_write(self, run: Run) -> bool:
        """Whether the sandbox prevents the call from writing any file that haft tracks, so that there is nothing to
        track."""
        hosting = run.tool.spec.hosting
        if hosting in ("in-process", "remote") or (hosting == "per-call" and run.decision.profile != "read-only"):
            return False
        confinement = await self._confinements.of(run)
        return "namespaces" in confinement.layers and not confinement.writable

    async def _finish_outcome(self, run: Run, transaction: Transaction, outcome: Outcome) -> Outcome:
        code = None if outcome.error is None else outcome.error.code
        action: EndAction = "commit"
        why = None
        if run.decision.action == "try" and nesting.trial_above(run) is None:
            action, why = "hold", "it is a trial run"
        elif run.call.holds:
            action, why = "hold", HELD_FOR_PERSON
        elif code in _STOPPED:
            action, why = "hold", "the call was stopped before it ended by itself"
        elif code == "cancelled":
            action = "discard"
        await self._engine_selector().prepare_commit()
        result = await self._finish_transaction(run, transaction, action, why)
        run.changes = result.changes
        self._note_torn(run)
        if self._waits_for_flush and result.changes.state == "committed":
            await self._engine_selector().settled()
        if result.error is not None:
            failure = with_run_id(result.error.failure(), run.id)
            return evolve(outcome, status="error", error=failure, changes=result.changes)
        if result.changes.state == "held" and outcome.error is not None and code in _STOPPED:
            more = f"its changes are held: `haft diff {run.id}`, `haft changes apply|drop {run.id}`"
            hint = f"{outcome.error.hint}; {more}" if outcome.error.hint else more
            outcome = evolve(outcome, error=replace(outcome.error, hint=hint))
        outcome = self._with_layer_hint(evolve(outcome, changes=result.changes))
        return _in_conflict_if_torn(run, outcome) if result.changes.state == "none" else outcome

    async def _finish_transaction(
        self, run: Run, transaction: Transaction, action: EndAction, why: str | None = None
    ) -> TransactionResult:
        """Finish the transaction in a thread. Until the first file is written, a cancellation stops this work. After
        that, a cancellation takes effect only when the last file has been written."""
        stop: list[bool] = []
        spared = await self._granted_writes(run)
        is_outside = transaction.layer is not None and self._sandbox.ran_outside(transaction.layer)
        doubt = OUTSIDE if is_outside else None
        witness = None if transaction.layer is None else self._sandbox.witness_of(transaction.layer)

        def is_held() -> bool:
            return witness is not None and witness.is_held()

        async with contextlib.AsyncExitStack() as leaving:
            if witness is not None:
                leaving.callback(witness.close)
            moving = await leaving.enter_async_context(transaction.at_rest())
            doubts = "; ".join(filter(None, [doubt, moving])) or None

            def finish() -> TransactionResult:
                return transaction.finish(
                    action,
                    granted_paths=spared,
                    why=why,
                    stopped=lambda: bool(stop),
                    doubt=doubts,
                    is_layer_open=is_held,
                )

            if transaction.is_untouched():
                return finish()
            try:
                return await run_uncancellable(finish, lambda: stop.append(True))
            except changing.CallStopped:
                run.changes = Changes(reason="cancelled before its changes were collected", state="discarded")
                raise asyncio.CancelledError from None

    async def _granted_writes(self, run: Run) -> tuple[str, ...]:
        """The paths that the call may write. An in-process tool has no sandbox, but its changes are checked against
        these paths too."""
        confinement = run.call.confinement
        if confinement is not None and confinement.writable:
            return confinement.writable
        if run.tool.spec.hosting != "in-process" or not grants_of(run.call).write:
            return ()
        return await self._sandbox.writable(grants_of(run.call))

    @staticmethod
    def _with_layer_hint(outcome: Outcome) -> Outcome:
        """The outcome. If the program failed because of one of two known limitations of layers, a hint that says so is
        added to the error."""
        error = outcome.error
        if error is None or error.code != "tool-failed" or outcome.changes.engine != "overlay":
            return outcome
        if "Invalid cross-device link" in outcome.output:
            more = (
                "a call of an ordinary user cannot rename a directory that was there before the call: copy and delete"
                ' it (as `mv` does), or set `changes.engine = "snapshot"`'
            )
        elif "Value too large for defined data type" in outcome.output:
            more = (
                "a call cannot change a file that belongs to another user: `haft doctor` finds such files; chown them,"
                ' or set `changes.engine = "snapshot"`'
            )
        else:
            return outcome
        return evolve(outcome, error=replace(error, hint=f"{error.hint}; {more}" if error.hint else more))


def _teller(run: Run) -> Callable[[str | None, bool], None]:
    """A function that says for which run a call waits, and whether that run waits for a person."""
    last: list[tuple[str | None, bool]] = []

    def tell(other: str | None, is_person: bool) -> None:
        if last != [(other, is_person)]:
            last[:] = [(other, is_person)]
            run.tell_waiting(other, is_person=is_person)

    return tell


def _in_conflict_if_torn(run: Run, outcome: Outcome) -> Outcome:
    """The outcome of a call that changed nothing. With `serial`, it is a conflict if the call's view was torn."""
    view = run.view
    if view is None or view.torn is None or view.isolation != "serial" or outcome.status == "cancelled":
        return outcome
    torn = Conflict("its view of the workspace was torn (isolation `serial`)", hint="call it again")
    return evolve(outcome, status="error", error=torn.failure())


def _files_of(run: Run) -> list[str]:
    """The files of the tool that were found when the call was made."""
    return [path for path, _device, _inode in run.call.found]


def _owner(run: Run) -> Owner:
    call = run.call
    return changing.Owner(call.run, call.who, call.thread, call.parent)


def _session(run: Run) -> Session | None:
    """The session process that handles the call: one process that handles many calls of a tool. None if it has not been
    started, or if the call needs none."""
    found: Session | None = getattr(run.tool, "session", None) if hosting_of(run) == "session" else None
    return found


def _started(run: Run) -> Callable[[], Awaitable[Session]] | None:
    """A function that returns the session process for the call, and first starts this process if it does not run. None
    if the call needs no session process."""
    starting: Callable[[], Awaitable[Session]] | None = getattr(run.tool, "started", None)
    return starting if hosting_of(run) == "session" else None


def with_run_id(failure: Failure, run: RunId) -> Failure:
    """The failure with the run's id in place of `RUN` in its hint."""
    return failure if failure.hint is None else replace(failure, hint=failure.hint.replace("RUN", run))
