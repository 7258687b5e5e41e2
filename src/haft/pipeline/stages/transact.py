"""Changes and watches: makes the call a transaction, and sees what it changed to its end.

A tool that came to its own end, well or badly, has its changes committed. One that was stopped by a limit has them
held: nothing is lost, and nothing half done counts unasked. One that was cancelled has them thrown away. What is tried
is held until someone has seen it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from haft import changes as changing
from haft.changes import run_uncancellable
from haft.contracts import (
    NO_CHANGES,
    Changes,
    Deadlock,
    Failure,
    Outcome,
    RunId,
    Session,
    ToolFailed,
    Workspace,
    evolve,
)
from haft.pipeline import nesting
from haft.pipeline.chain import Proceed
from haft.pipeline.confinement import Confinements, granted, hosting_of
from haft.pipeline.run import Run
from haft.sandbox import Sandbox
from haft.values import replace

if TYPE_CHECKING:
    from haft.changes import EndAction, EngineSelector, Owner, Scope, Transaction, TransactionResult

REMOTE = Changes(complete=False, reason="it runs elsewhere: what it changes is not tracked")
OUTSIDE = "a command of it ran outside of the layer that was to take in its changes"
_STOPPED = ("timed-out", "limit-exceeded")


class Transact:
    """Under a place of the queue, around the sandbox."""

    def __init__(
        self,
        engine_selector: Callable[[], EngineSelector],
        workspace: Workspace,
        sandbox: Sandbox,
        confinements: Confinements,
    ) -> None:
        self._sandbox = sandbox
        self._confinements = confinements
        self._engine_selector = engine_selector
        self._workspace = workspace
        self._with_sessions: set[Run] = set()
        """The calls whose tools answer one after another."""

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if hosting_of(run) != "session":
            return await self._joined(run, proceed)
        circle = nesting.closes_circle(run, self._with_sessions)
        if circle is not None and circle != nesting.busy_with(run):  # A plugin that calls itself is told so by its own.
            raise Deadlock(
                f"`{run.call.name}` was not called: its plugin answers one call after another, and the one that it"
                f" answers now waits for {circle}, which waits for this one"
            )
        self._with_sessions.add(run)
        try:
            return await self._joined(run, proceed)
        finally:
            self._with_sessions.discard(run)

    async def _joined(self, run: Run, proceed: Proceed) -> Outcome:
        """In the scope of its caller, where it has one."""
        if run.parent is None:
            return await self._carried(run, proceed)
        caller = next((each for each in nesting.callers(run) if each.transaction is not None), None)
        if caller is None:
            return await self._carried(run, proceed)
        lock = next(
            (each.transaction.lock for each in nesting.callers(run) if each.transaction and each.transaction.lock), None
        )
        changes = not run.tool.spec.effects.readonly and not await self._cannot_write(run)
        scope = None if caller.transaction is None else caller.transaction.scope
        if scope is not None and not await scope.wait_for_view():
            scope = None
        with changing.share_lock(lock):
            if caller.transaction is None or caller.transaction.lock is None:
                await self._pause(caller, run)
                return await self._carried(run, proceed, scope)
            if not changes:
                return await self._carried(run, proceed)
            # Who has the workspace alone shares it with one call at a time.
            async with caller.turn_of_children:
                await self._pause(caller, run)
                try:
                    return await self._carried(run, proceed)
                finally:
                    await run_uncancellable(caller.transaction.resume)

    async def _pause(self, caller: Run, run: Run) -> None:
        """Let the caller's changes so far be seen by the call that it makes."""
        transaction, spared, stop = caller.transaction, await self._spared(caller), list[bool]()
        assert transaction is not None
        error = await run_uncancellable(lambda: transaction.pause(spared), lambda: stop.append(True))
        if stop:
            raise asyncio.CancelledError
        if error is not None:
            raise ToolFailed(
                f"`{run.call.name}` was not called: what {caller.id}, which calls it, has changed so far cannot be"
                f" committed before: {error.message}"
            )

    async def _carried(self, run: Run, proceed: Proceed, scope: Scope | None = None) -> Outcome:
        """To its end, in the scope of its caller where that works above a layer; what a call that is cancelled had done
        by others is taken back."""
        try:
            spec = run.tool.spec
            if scope is None and spec.effects.readonly and spec.hosting == "in-process":
                outcome = await proceed(run)  # Nothing to cover, as in `_covered`.
            else:
                outcome = await self._covered(run, proceed, scope)
        except asyncio.CancelledError:
            await self._take_back(run)
            raise
        if outcome.error is not None and outcome.error.code == "cancelled":
            await self._take_back(run)
        return outcome

    async def _take_back(self, run: Run) -> None:
        if not run.made:
            return
        owner = _owner(run)
        back, why_not = await run_uncancellable(lambda: self._engine_selector().undo_nested(owner, run.made))
        if back:
            run.add_note(f"it was cancelled: what {', '.join(back)} changed was taken back")
        if why_not is not None:
            run.add_note(f"it was cancelled, and what it had changed by its calls could not be taken back: {why_not}")

    async def _covered(self, run: Run, proceed: Proceed, scope: Scope | None) -> Outcome:
        tool = run.tool
        spec, hosting = tool.spec, hosting_of(run)
        if hosting == "remote":
            return evolve(await proceed(run), changes=REMOTE)
        if spec.effects.readonly or isinstance(tool, changing.ChangesTool):
            # Nothing to cover, or undo and its like: transactions themselves.
            return await (proceed(run) if scope is None else self._reading(run, proceed, scope))
        if spec.hosting != hosting:
            spec = replace(spec, hosting=hosting)
        if await self._cannot_write(run):
            return evolve(await self._reading(run, proceed, scope), changes=NO_CHANGES)
        owner = _owner(run)

        def tell(message: str) -> None:
            run.note("progress", {"message": message, "fraction": None})

        transaction = await self._engine_selector().begin(
            spec, owner, self._workspace, tell, lambda: _session(run), scope, _started(run)
        )
        if isinstance(transaction, Changes):
            outcome = await proceed(run)
            return evolve(outcome, changes=transaction) if outcome.changes.engine == "none" else outcome
        run.workspace = transaction.workspace
        if isinstance(transaction, changing.SessionTransaction):
            if transaction.written is not None:
                run.add_note(transaction.written.sentence())
        else:
            run.revise(layer=transaction.layer)
        run.transaction = transaction
        try:
            outcome = await proceed(run)
        except BaseException:  # Cancelled, or it could not begin.
            # Where a process that outlives its call was covered by looking at everything, what a person did meanwhile
            # is in there too, and is not thrown away.
            action: EndAction = "hold" if spec.hosting == "session" and transaction.covers_others else "discard"
            run.changes = (await self._end(run, transaction, action, "the call was cancelled")).changes
            raise
        return await self._ended(run, transaction, outcome)

    async def _reading(self, run: Run, proceed: Proceed, scope: Scope | None) -> Outcome:
        """A call that changes nothing itself, and sees what its caller has changed."""
        if scope is None or run.tool.spec.hosting == "session" or isinstance(run.tool, changing.ChangesTool):
            return await proceed(run)
        run.workspace = self._workspace.seen_at(scope.path)
        async with self._engine_selector().readonly_layer(run.id, scope) as layer:
            run.revise(layer=layer if layer.lowers else None)
            return await proceed(run)

    async def _cannot_write(self, run: Run) -> bool:
        """Whether the sandbox keeps it from every file that could be tracked: then there is nothing to cover."""
        hosting = run.tool.spec.hosting
        if hosting in ("in-process", "remote") or (hosting == "per-call" and run.decision.profile != "read-only"):
            return False
        confinement = await self._confinements.of(run)
        return "namespaces" in confinement.layers and not confinement.writable

    async def _ended(self, run: Run, transaction: Transaction, outcome: Outcome) -> Outcome:
        code = None if outcome.error is None else outcome.error.code
        action: EndAction = "commit"
        why = None
        if run.decision.action == "try":
            action, why = "hold", "it was only tried"
        elif code in _STOPPED:
            action, why = "hold", "the call was stopped before it came to its end"
        elif code == "cancelled":
            action = "discard"
        settled = await self._end(run, transaction, action, why)
        run.changes = settled.changes
        if settled.error is not None:
            failure = named(settled.error.failure(), run.id)
            return evolve(outcome, status="error", error=failure, changes=settled.changes)
        if settled.changes.state == "held" and outcome.error is not None and code in _STOPPED:
            more = f"what it had changed is held: `haft diff {run.id}`, `haft changes apply|drop {run.id}`"
            hint = f"{outcome.error.hint}; {more}" if outcome.error.hint else more
            outcome = evolve(outcome, error=replace(outcome.error, hint=hint))
        return self._hinted(evolve(outcome, changes=settled.changes))

    async def _end(
        self, run: Run, transaction: Transaction, action: EndAction, why: str | None = None
    ) -> TransactionResult:
        """See it to its end in a thread. A cancellation is heard until the first file is touched, and from then on only
        after the last."""
        stop: list[bool] = []
        spared = await self._spared(run)
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
                run.changes = Changes(reason="cancelled before its changes were taken in", state="discarded")
                raise asyncio.CancelledError from None

    async def _spared(self, run: Run) -> tuple[str, ...]:
        """What was granted to be written. What runs in this process has no sandbox, and its changes are judged all the
        same."""
        confinement = run.call.confinement
        if confinement is not None and confinement.writable:
            return confinement.writable
        if run.tool.spec.hosting != "in-process" or not granted(run.call).write:
            return ()
        return await self._sandbox.writable(granted(run.call))

    @staticmethod
    def _hinted(outcome: Outcome) -> Outcome:
        """Two things that a layer cannot do look like errors of the program."""
        error = outcome.error
        if error is None or error.code != "tool-failed" or outcome.changes.engine != "overlay":
            return outcome
        if "Invalid cross-device link" in outcome.output:
            more = (
                "a directory that was there before the call cannot be renamed from within it by an ordinary user: copy"
                ' and delete it (as `mv` does), or set `changes.engine = "snapshot"`'
            )
        elif "Value too large for defined data type" in outcome.output:
            more = (
                "a file of another owner cannot be changed from within the call: `haft doctor` finds them; chown them,"
                ' or set `changes.engine = "snapshot"`'
            )
        else:
            return outcome
        return evolve(outcome, error=replace(error, hint=f"{error.hint}; {more}" if error.hint else more))


def _owner(run: Run) -> Owner:
    call = run.call
    return changing.Owner(call.run, call.who, call.thread, call.parent)


def _session(run: Run) -> Session | None:
    """The process that the call goes to, where that outlives calls and was started."""
    found: Session | None = getattr(run.tool, "session", None) if hosting_of(run) == "session" else None
    return found


def _started(run: Run) -> Callable[[], Awaitable[Session]] | None:
    """What starts that process, where it is not there."""
    starting: Callable[[], Awaitable[Session]] | None = getattr(run.tool, "started", None)
    return starting if hosting_of(run) == "session" else None


def named(failure: Failure, run: RunId) -> Failure:
    """The failure with the run in its hint, where commands for it stand."""
    return failure if failure.hint is None else replace(failure, hint=failure.hint.replace("RUN", run))
