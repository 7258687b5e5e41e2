"""Batches: several calls that are made at once, with the effects and outcomes of their order in the list."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from haft.contracts import UNKNOWN, BatchId, Event, HaftError, Outcome, Principal, RunId, configured
from haft.pipeline import Batch, BatchPlan, Run, plan, read_calls
from haft.service.assembly import Host
from haft.service.call_arguments import check_arguments, check_call
from haft.service.principals import to_text


class BatchRun:
    """A batch in progress: await it for the outcomes, iterate over it for the events of all calls, cancel it."""

    def __init__(self, batch: Batch, runs: Sequence[Run]) -> None:
        self.id: BatchId = batch.id
        self.runs = tuple(runs)
        """One run for each call, in the order of the list."""
        self.ids = tuple(member.call.id for member in batch.members)
        """The caller's ids of the calls, in the order of the list."""

    def __await__(self) -> Generator[Any, None, list[Outcome]]:
        """Wait for all calls. Returns their outcomes in the order of the list. Cancelling the waiting task does not
        cancel the batch."""
        return (yield from self._outcomes().__await__())

    async def _outcomes(self) -> list[Outcome]:
        return [await run for run in self.runs]

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events of all calls from now on, as they come. The last event of each call is its outcome."""
        return merged([aiter(run) for run in self.runs])

    def id_of(self, run: RunId) -> str:
        """The caller's id of the call that has this run."""
        return self.ids[next(at for at, each in enumerate(self.runs) if each.id == run)]

    def cancel(self, by: Principal | None = None) -> bool:
        """Cancel all calls that have not ended. Returns False if all of them had ended."""
        return _cancel(self.runs, by)


def _cancel(runs: Sequence[Run], by: Principal | None) -> bool:
    """Cancel runs, the last one first, so that none starts because an earlier one has ended. Returns False if all of
    them had ended."""
    ended = [not run.cancel(by) for run in reversed(runs)]
    return not all(ended)


async def merged(streams: Sequence[AsyncIterator[Event]]) -> AsyncIterator[Event]:
    """The items of all streams, as they come."""
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    async def copy(stream: AsyncIterator[Event]) -> None:
        async for event in stream:
            queue.put_nowait(event)
        queue.put_nowait(None)

    tasks = [asyncio.ensure_future(copy(stream)) for stream in streams]
    try:
        left = len(tasks)
        while left:
            event = await queue.get()
            if event is None:
                left -= 1
            else:
                yield event
    finally:
        for task in tasks:
            task.cancel()


class HostBatches:
    """The batches of one host."""

    def __init__(self, host: Host, call: Callable[..., Run]) -> None:
        self._host = host
        self._call = call

    def start(
        self, calls: Iterable[Any], *, timeout: float | None = None, run_ids: Sequence[RunId] = (), **options: Any
    ) -> BatchRun:
        """Make the calls of a batch. `timeout` holds for the calls that set none; `options` hold for all of them.
        `run_ids` are the ids of their runs, if they were made before."""
        read = read_calls(calls)
        pipeline = self._host.running()
        cwd = options.get("cwd")
        for call in read:
            check_call(
                call.tool,
                call.arguments,
                timeout=timeout if call.timeout is None else call.timeout,
                cwd="." if cwd is None else cwd,
                env=options.get("env"),
                config=options.get("config"),
                grants=options.get("grants"),
                isolation=options.get("isolation"),
            )
        batch = pipeline.batch(read)
        runs: list[Run] = []
        try:
            for member, run_id in zip_longest(batch.members, run_ids):
                seconds = timeout if member.call.timeout is None else member.call.timeout
                call = member.call
                run = self._call(call.tool, call.arguments, timeout=seconds, claim=call.claim, run_id=run_id, **options)
                batch.add(member, run)
                runs.append(run)
        except BaseException:  # No call has executed a step yet, so none will do anything.
            for run in runs:
                run.cancel()
            raise
        return BatchRun(batch, runs)

    async def plan(self, calls: Iterable[Any], *, thread: str | None = None, cwd: str | None = None) -> BatchPlan:
        """The order in which the calls of a batch would run. Calls no tool, and asks nobody."""
        read = read_calls(calls)
        pipeline = self._host.running()
        footprints, problems = [], []
        for call in read:
            footprint, problem = UNKNOWN, None
            try:
                await self._host.disk.renew(call.tool)
                tool = configured(self._host.catalogue.get(call.tool, thread or self._host.thread), {})
                if not tool.spec.preprocesses:  # To preprocess the arguments would run the tool's code.
                    check_arguments(tool.spec, call.arguments)
                directory = self._host.directory if cwd is None else cwd
                footprint = await pipeline.footprint_of(tool, call.arguments, directory)
            except HaftError as error:
                problem = error.message
            footprints.append(footprint)
            problems.append(problem)
        return plan(read, footprints, problems)

    def cancel_live(self, batch: str, principal: Principal) -> bool:
        """Cancel the calls of a batch of this host that have not ended. Returns False if there are none."""
        pipeline = self._host.running()
        return _cancel([run for run in pipeline.live.values() if run.call.batch == batch], principal)

    def stop(self, batch: str, who: str | Principal | None = None) -> bool:
        """Cancel a batch of this host or of another host. Returns False if all its calls had ended. Raises `UnknownRun`
        if there is no such batch. Blocks the event loop."""
        principal = self._host.acting(who)
        if self._host.pipeline is not None and self.cancel_live(batch, principal):
            return True
        history = self._host.history()
        is_open = [run for run in history.of_batch(batch) if run.is_open]
        for run in reversed(is_open):
            history.request_cancel(run.id, to_text(principal))
        return bool(is_open)

    async def cancel(self, batch: str, *, who: str | Principal | None = None) -> bool:
        """Like `stop`, without blocking the event loop."""
        principal = self._host.acting(who)
        if self._host.pipeline is not None and self.cancel_live(batch, principal):
            return True
        found = await self._host.with_history(lambda history: history.of_batch(batch))
        is_open = [run for run in found if run.is_open]
        for run in reversed(is_open):
            with contextlib.suppress(HaftError):
                await self._host.with_history(
                    lambda history, name=run.id: history.request_cancel(name, to_text(principal))  # type: ignore[misc]
                )
        return bool(is_open)
