"""The last stage: runs the tool and turns its answer into an outcome.

A tool that ignores cancellation cannot hold its run: after a grace the run ends, the tool is abandoned, counted, and
its late answer dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from haft.contracts import (
    NO_CHANGES,
    UNTRACKED,
    Answer,
    Call,
    Failure,
    HaftError,
    Outcome,
    RunId,
    ThreadId,
    Tool,
    ToolName,
    revised,
)
from haft.pipeline.chain import Proceed
from haft.pipeline.context import CallContext
from haft.pipeline.grip import Grip
from haft.pipeline.run import Run

GRACE_SECONDS = 2.5
"""What a tool has to end after cancellation: enough for TERM, a second, and KILL."""


_BLANK = Outcome(RunId(""), ToolName(""), "done", "", ThreadId(""))


class Invoke:
    """Where the call reaches its tool."""

    def __init__(self, live: Mapping[RunId, Run], context: Callable[[Run], CallContext]) -> None:
        self._live = live
        self._context = context
        self.abandoned: set[asyncio.Task[None]] = set()
        """Tools that were let go and still run."""

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        tool = call.tool
        assert tool is not None
        context = self._context(self._live[call.run])
        answer = await Grip(self._work(tool, call, context), GRACE_SECONDS, context.cancel, self._abandon)
        return self._outcome(call, tool, answer)

    @staticmethod
    async def _work(tool: Tool, call: Call, context: CallContext) -> Answer:
        try:
            return await tool.invoke(dict(call.arguments), context)
        except HaftError as error:
            return Answer(failure=error.failure())
        except (Exception, SystemExit) as error:
            # SystemExit must not reach the event loop: it would take the host down with the tool.
            return Answer(failure=Failure("tool-failed", f"{type(error).__name__}: {error}"))

    def _abandon(self, rest: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(rest)
        self.abandoned.add(task)
        task.add_done_callback(self.abandoned.discard)

    @staticmethod
    def _outcome(call: Call, tool: Tool, answer: Answer) -> Outcome:
        changes = answer.changes
        if changes is None:
            changes = NO_CHANGES if tool.spec.effects.readonly else UNTRACKED
        return revised(
            _BLANK,
            run_id=call.run,
            tool=call.name,
            status="done" if answer.failure is None else "error",
            who=call.who,
            thread=call.thread,
            parent=call.parent,
            output=answer.text or "",
            exit_code=answer.exit_code,
            result=answer.result,
            error=answer.failure,
            changes=changes,
            decision=call.decision,
            limits=call.limits,
        )
