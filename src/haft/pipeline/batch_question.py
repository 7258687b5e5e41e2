"""One question about all calls of a batch that need approval, for an approver that has a method `approve_batch`.

Each call asks on its own, and waits for its own answer. The approver is asked when all of them are there. If one of
them is cancelled, or answered in the inbox, the question goes on for the others.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from haft.contracts import ApprovalRequest, BadBatchApprover
from haft.pipeline.run import Run

AskTogether = Callable[[Sequence[ApprovalRequest]], Any]
"""The method `approve_batch` of an approver. Like the approver itself, it can be asynchronous or not."""


class BatchQuestion:
    """Collects the requests of a batch, and asks about all of them at once."""

    def __init__(self, asked_about: Callable[[], Collection[Run] | None]) -> None:
        """`asked_about` returns the runs whose requests belong together; None as long as that is not known."""
        self._asked_about = asked_about
        self._open: dict[str, tuple[ApprovalRequest, asyncio.Future[Any]]] = {}
        self._ask: AskTogether | None = None
        self._task: asyncio.Task[None] | None = None

    async def answer(self, request: ApprovalRequest, ask: AskTogether) -> Any:
        """The approver's answer to one request. Cancelling withdraws the request."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[request.run] = (request, answer)
        self._ask = ask
        self.look_again()
        try:
            return await answer
        finally:
            self._open.pop(request.run, None)
            answer.cancel()
            if not self._open and self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})

    def look_again(self) -> None:
        """Ask the approver, if the requests of all calls are there."""
        wanted = self._asked_about()
        if wanted is None or not self._open or self._task is not None or self._ask is None:
            return
        if all(run.id in self._open for run in wanted):
            asked = [self._open[run.id] for run in wanted]
            self._task = asyncio.ensure_future(self._answer_all(self._ask, asked))
            self._task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._task = None

    @staticmethod
    async def _answer_all(ask: AskTogether, asked: Sequence[tuple[ApprovalRequest, asyncio.Future[Any]]]) -> None:
        try:
            given = ask([request for request, _ in asked])
            answers = await given if inspect.isawaitable(given) else given
            if not isinstance(answers, list | tuple) or len(answers) != len(asked):
                raise BadBatchApprover(answers, len(asked))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), given in zip(asked, answers, strict=True):
            if not answer.done():
                answer.set_result(given)
