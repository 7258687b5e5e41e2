"""The last stage: runs the tool, and turns its answer into an outcome.

A tool that ignores cancellation cannot block its run: after a grace period the run ends, the tool is abandoned and
counted, and its answer is dropped. All nested calls of a run end before the run itself ends. The stage waits for the
nested calls if the tool succeeded, and cancels them if the tool failed or was cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.contracts import (
    NO_CHANGES,
    UNTRACKED,
    Answer,
    CallFaults,
    Failure,
    HaftError,
    LimitsApplied,
    Outcome,
    RunId,
    ThreadId,
    ToolName,
    evolve,
    own_copy,
)
from haft.pipeline import nesting
from haft.pipeline.chain import Proceed
from haft.pipeline.context import CallContext
from haft.pipeline.run import Run
from haft.pipeline.untrusted_calls import UntrustedCalls

MAX_CONTENT_CHARACTERS: Final = 20_000_000
"""The size of all content blocks of an outcome, as text."""
MAX_BLOCKS: Final = 1_000

_BLANK = Outcome(RunId(""), ToolName(""), "done", "", ThreadId(""))


class Invoke:
    """Runs the tool."""

    def __init__(
        self, context: Callable[[Run], CallContext], untrusted: UntrustedCalls, faults: CallFaults | None = None
    ) -> None:
        self._context = context
        self._untrusted = untrusted
        self._faults = faults

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # Work that must not be interrupted, such as mounting, went on.
            raise asyncio.CancelledError
        context = self._context(run)
        within = nesting.CURRENT.set(run)
        try:
            if self._faults is None:
                answer = await self._untrusted.guard(self._work(run, context), context.cancel)
            else:
                async with self._faults.around(run.tool.spec):
                    answer = await self._untrusted.guard(self._work(run, context), context.cancel)
        except BaseException:
            await nesting.wait_for_children(run, cancel=True)
            raise
        finally:
            nesting.CURRENT.reset(within)
        run.tool_has_ended = True
        if run.children:
            await nesting.wait_for_children(run, cancel=answer.failure is not None)
        return self._outcome(run, answer)

    @staticmethod
    async def _work(run: Run, context: CallContext) -> Answer:
        try:
            return await run.tool.invoke(own_copy(run.call.arguments), context)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except HaftError as error:
            return Answer(failure=error.failure(), hit=getattr(error, "limit", None))
        except BaseException as error:
            # Every exception in a tool is a failure of the tool. Even SystemExit must not end the host.
            return Answer(failure=Failure("tool-failed", f"{type(error).__name__}: {error}"))

    @staticmethod
    def _outcome(run: Run, answer: Answer) -> Outcome:
        call = run.call
        limits = call.limits
        if answer.hit is not None and limits is not None:
            limits = LimitsApplied(limits.applied, answer.hit, limits.enforced)
        changes = answer.changes
        if changes is None:
            changes = NO_CHANGES if run.tool.spec.effects.readonly else UNTRACKED
        return evolve(
            _BLANK,
            run_id=call.run,
            tool=call.name,
            status="done" if answer.failure is None else "error",
            who=call.principal.who,
            thread=call.principal.thread or "",
            parent=call.parent,
            output=answer.text or "",
            exit_code=answer.exit_code,
            result=answer.result,
            error=answer.failure,
            changes=changes,
            decision=call.decision,
            limits=limits,
            sandbox=call.confinement,
            content=_bounded_content(run, answer.content),
        )


def _bounded_content(run: Run, content: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
    """The content blocks of an answer, as far as they are not too large for an outcome."""
    kept: list[Mapping[str, Any]] = []
    size = 0
    for block in content:
        size += len(repr(block))
        if size > MAX_CONTENT_CHARACTERS or len(kept) >= MAX_BLOCKS:
            left = len(content) - len(kept)
            run.add_note(f"{left} of {len(content)} content blocks were left out, because they are too large")
            break
        kept.append(block)
    return tuple(kept)
