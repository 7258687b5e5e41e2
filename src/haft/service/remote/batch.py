"""A batch on a server, with the interface of `BatchRun`: await it, iterate over the events of its calls, cancel it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Sequence
from typing import TYPE_CHECKING, Any

from haft.contracts import BadUsage, BatchId, Event, Outcome, RunId
from haft.service.facades.batches import merged

if TYPE_CHECKING:
    from haft.pipeline import BatchedCall
    from haft.service.remote.run import RemoteRun


class RemoteBatch:
    """A batch in progress."""

    def __init__(self, calls: Sequence[BatchedCall], runs: Sequence[RemoteRun]) -> None:
        self.runs = tuple(runs)
        """One run for each call, in the order of the list."""
        self.ids = tuple(call.id for call in calls)
        """The caller's ids of the calls, in the order of the list."""
        self._id: BatchId | None = None

    @property
    def id(self) -> BatchId:
        """The id, which is known once the server has answered: see `accepted`."""
        if self._id is None:
            raise BadUsage("the server makes the id of the batch: `await batch.accepted()`, or await the batch")
        return self._id

    def know(self, batch: str) -> None:
        """The server has told the id."""
        self._id = BatchId(batch)

    async def accepted(self) -> None:
        """Wait until the server has the batch. Raises the server's error if it refuses."""
        for run in self.runs:
            await run.accepted()

    def __await__(self) -> Generator[Any, None, list[Outcome]]:
        """Wait for all calls. Returns their outcomes in the order of the list. Cancelling the waiting task does not
        cancel the batch."""
        return (yield from self._outcomes().__await__())

    async def _outcomes(self) -> list[Outcome]:
        return [await run for run in self.runs]

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events of all calls, as they come. The last event of each call is its outcome."""
        return merged([aiter(run) for run in self.runs])

    def id_of(self, run: RunId) -> str:
        """The caller's id of the call that has this run."""
        return self.ids[next(at for at, each in enumerate(self.runs) if each.id == run)]

    def cancel(self, by: object = None) -> asyncio.Task[bool]:
        """Cancel all calls that have not ended. The task returns False if all of them had ended."""
        return asyncio.get_running_loop().create_task(self._cancel())

    async def _cancel(self) -> bool:
        return any(await asyncio.gather(*(run.cancel() for run in reversed(self.runs))))
