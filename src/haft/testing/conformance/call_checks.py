"""Checks of a source whose tool is called through a whole service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.contracts import Outcome
from haft.service import ToolService
from haft.testing.conformance.case import SourceCase
from haft.testing.conformance.listing_checks import Problems

CallCheck = Callable[[ToolService, SourceCase], Problems]
_PATIENCE_SECONDS: Final = 60


async def _called(service: ToolService, case: SourceCase, arguments: Mapping[str, Any]) -> Outcome:
    return await service.call(case.tool, dict(arguments), timeout=_PATIENCE_SECONDS)


async def can_be_called(service: ToolService, case: SourceCase) -> Problems:
    """A call with valid arguments is done, and has the output of the tool."""
    outcome = await _called(service, case, case.arguments)
    if outcome.status != "done":
        yield f"the call ended as {outcome.status}: {_reason(outcome)}"
    elif case.output is not None and case.output not in outcome.output:
        yield f"the output must contain {case.output!r}, and is {outcome.output[:500]!r}"


async def refuses_wrong_arguments(service: ToolService, case: SourceCase) -> Problems:
    """A call whose arguments break the schema ends with `invalid-arguments`, and the tool does not run."""
    if case.wrong_arguments is None:
        return
    outcome = await _called(service, case, case.wrong_arguments)
    code = None if outcome.error is None else outcome.error.code
    if code != "invalid-arguments":
        yield f"the call ended as {outcome.status} with the error {code}, and not with invalid-arguments"


async def reports_failures(service: ToolService, case: SourceCase) -> Problems:
    """A failure of the tool is an outcome with the status `error` and a message, and later calls still work."""
    if case.failing_arguments is None:
        return
    outcome = await _called(service, case, case.failing_arguments)
    if outcome.status != "error":
        yield f"a call that fails ended as {outcome.status}"
    elif outcome.error is None or not outcome.error.message.strip():
        yield "a call that fails has no message"
    elif outcome.error.code in ("internal", "invalid-arguments", "unknown-tool"):
        yield f"a call in which the tool fails has the error {outcome.error.code}: {_reason(outcome)}"
    after = await _called(service, case, case.arguments)
    if after.status != "done":
        yield f"after a failed call, the next one ended as {after.status}: {_reason(after)}"


async def can_be_cancelled(service: ToolService, case: SourceCase) -> Problems:
    """A call that is cancelled ends as `cancelled`, and later calls still work."""
    if case.slow_arguments is None:
        return
    run = service.call(case.tool, dict(case.slow_arguments), timeout=_PATIENCE_SECONDS)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while run.status in ("queued", "blocked-on-user"):  # noqa: ASYNC110  a run has no event for that
                await asyncio.sleep(0.01)
    except TimeoutError:
        yield "the call did not begin"
    run.cancel()
    outcome = await run
    if outcome.status != "cancelled":
        yield f"a cancelled call ended as {outcome.status}: {_reason(outcome)}"
    after = await _called(service, case, case.arguments)
    if after.status != "done":
        yield f"after a cancelled call, the next one ended as {after.status}: {_reason(after)}"


def _reason(outcome: Outcome) -> str:
    return "no error" if outcome.error is None else f"{outcome.error.code}: {outcome.error.message}"
