"""The running pipeline: makes a run for each call, executes it in its own task, and ends all runs when it closes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from haft.contracts import BadUsage, Call, ConnectionObserver, Footprint, RunId, Tool, callers_trace
from haft.pipeline import nesting
from haft.pipeline.batch import Batch
from haft.pipeline.batched_calls import BatchedCall
from haft.pipeline.chain import fold
from haft.pipeline.connections import RunConnections, refuse
from haft.pipeline.order import Dependencies, stages
from haft.pipeline.pauses import Pauses, Pausing, Resumed, can_go_on, outlives_host
from haft.pipeline.run import Run
from haft.pipeline.run_watcher import timed
from haft.pipeline.stages import Record
from haft.pipeline.untrusted_calls import UntrustedCalls
from haft.runs import RunRecord


class Pipeline:
    """Runs the calls of one host through the stages."""

    def __init__(self, dependencies: Dependencies, after_each: Callable[[], None] | None = None) -> None:
        self._after_each = after_each
        self._watcher = dependencies.watcher
        self._live: dict[RunId, Run] = {}
        self._taken_over: dict[RunId, tuple[RunRecord, Resumed | None]] = {}
        self._untrusted = UntrustedCalls()
        order = stages(dependencies, self._live, self._untrusted)
        self._footprints = dependencies.footprints
        record = order[0]
        assert isinstance(record, Record)
        self._record = record
        self._first_stage = fold(order if self._watcher is None else timed(order))
        self._thread = threading.get_ident()

    @property
    def live(self) -> Mapping[RunId, Run]:
        """The runs that have not ended."""
        return self._live

    @property
    def abandoned(self) -> int:
        """How many tools ignored their cancellation and still run."""
        return self._untrusted.abandoned

    def call(self, call: Call, *, pauses: bool = False) -> Run:
        """Start a run. The run goes on even if nobody awaits or observes it. The run of a nested call ends no later
        than the run of its caller. With `pauses`, requests for approval of the call, and of all calls below it, become
        pauses. Raises `BadUsage` in another thread than that of the event loop."""
        if threading.get_ident() != self._thread:
            raise BadUsage(
                f"`{call.name}` can be called only in the thread in which the service is open",
                hint="in a tool that is not `async`, use `context.call(name, arguments)`",
            )
        if call.parent is None:
            run = Run(call, self._record)
        else:
            run = Run(call, self._record, self.caller(call.parent))
            nesting.attach_to_caller(run)
        if pauses and run.pausing is None:
            run.pausing = Pausing(Pauses(call.run), call)
        if (found := self._taken_over.pop(call.run, None)) is not None:
            record, resumed = found
            run.restore(record.started_at, record.rest["states"])
            if run.pausing is not None:
                run.pausing.resumed = resumed
        trace = callers_trace() if run.parent is None else run.parent.call.trace
        if trace is not None:
            run.revise(trace=trace)
        if self._watcher is not None:
            self._watcher.began(run)
        self._live[call.run] = run
        # The event loop has only weak references to tasks. So the run refers to its own task, and `live` refers to the
        # run until it has ended.
        run.attach_task(asyncio.get_running_loop().create_task(self._carry(run)))
        return run

    def take_over(self, record: RunRecord, resumed: Resumed | None) -> None:
        """Note that this host has taken over a paused run. The next call with the id of the run goes on with it."""
        self._taken_over[record.id] = (record, resumed)

    def forget_taken_over(self, runs: Iterable[RunId]) -> list[RunRecord]:
        """Forget those of the runs that were taken over, and that nobody has called again. Returns them."""
        found = (self._taken_over.pop(run, None) for run in runs)
        return [each[0] for each in found if each is not None]

    def batch(self, calls: Sequence[BatchedCall]) -> Batch:
        """A batch of these calls, which have no runs yet."""
        return Batch(calls, self._footprint_of)

    async def footprint_of(self, tool: Tool, arguments: Mapping[str, Any], cwd: str) -> Footprint:
        """What a call of the tool with these arguments may touch, before anything is decided about it."""
        return await self._footprints.of(tool, arguments, cwd=cwd)

    async def _footprint_of(self, run: Run) -> Footprint:
        call = run.call
        footprint = await self._footprints.of(
            run.tool,
            call.arguments,
            cwd=call.cwd,
            env=call.env,
            grants=call.grants,
            decision=call.decision,
            is_nested=run.parent is not None,
        )
        run.revise(footprint=footprint)
        return footprint

    def connections_of(self, run: RunId) -> ConnectionObserver | None:
        """The observer of a live run's connections, for a process that outlives its calls. Returns None if the run has
        ended."""
        live = self._live.get(run)
        if live is None:
            return None
        if live.connections is None:
            live.connections = RunConnections(live, refuse)
        return live.connections

    def caller(self, name: str) -> Run:
        """The run with the id `name`, as the caller of a new call; raises `BadUsage` if no live run of this host has
        this id."""
        run = self._live.get(RunId(name))
        if run is None:
            raise BadUsage(
                f"`{name}` cannot be the parent of a call: it is not a run of this host, or it has ended",
                hint="name a run that is still in progress, or give no parent",
            )
        return run

    def within(self) -> Run | None:
        """The run of this host whose tool executes the current code; None if there is no such run, or if its tool has
        ended."""
        run = nesting.CURRENT.get()
        return run if run is not None and self._live.get(run.id) is run and not run.tool_has_ended else None

    async def _carry(self, run: Run) -> None:
        # This changes the variable only in this task. An approver that runs in it is not part of the tool that made the
        # call.
        nesting.CURRENT.set(None)
        run.task_started()
        if self._watcher is not None:
            self._watcher.began_task(run)
        try:
            outcome = await self._first_stage(run)
        finally:
            if run.children:
                with contextlib.suppress(asyncio.CancelledError):
                    await nesting.wait_for_children(run, cancel=True)
            del self._live[run.call.run]
            if run.parent is not None:
                nesting.detach_from_caller(run)
        if run.batch is not None:
            run.batch.end(run, outcome)
        if self._watcher is not None:
            self._watcher.ended(run, outcome)
        run.finish(outcome)
        if self._after_each is not None:
            self._after_each()

    async def close(self) -> None:
        """Cancel all live runs, and wait until they have ended. Paused runs that can go on in another host stay
        open."""
        waiting = [run for run in self._live.values() if outlives_host(run)]
        callers = (self._live.get(record.parent or RunId("")) for record, _resumed in self._taken_over.values())
        for last in (*waiting, *(run for run in callers if run is not None and can_go_on(run))):
            for run in (last, *nesting.callers(last)):
                run.leave_open()
        while self._live:
            runs = list(self._live.values())
            for run in runs:
                run.cancel()
            for run in runs:
                await run
        self._record.close()
