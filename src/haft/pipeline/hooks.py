"""What some tools can do besides running: say in a line what a call would do, and explain how one failed.

Both are foreign code with a short time of their own. Neither can hold a call, end it, or make it look like another: a
preview stands beside the arguments, never in their place, and an explanation stands in for the output of a call that
failed, never for the failure.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from haft.contracts import Call, HaftError, Outcome, ToolContext, evolve, own_copy
from haft.pipeline.run import Run
from haft.values import replace

HOOK_SECONDS: Final = 5.0
LONGEST_PREVIEW: Final = 500
LONGEST_TAIL: Final = 300


async def preview_of(call: Call, context: ToolContext) -> str | None:
    """The line that a tool has for a call; None where it has none, fails or takes too long."""
    tool: Any = call.tool
    if not tool.spec.previews:
        return None
    try:
        async with asyncio.timeout(HOOK_SECONDS):
            said: str = await tool.preview(own_copy(call.arguments), context)
    except (TimeoutError, HaftError, OSError):
        return None
    line = call.secrets.masked_text(said).strip().split("\n", 1)[0].strip()
    return (line if len(line) <= LONGEST_PREVIEW else f"{line[:LONGEST_PREVIEW]}…") or None


async def explained(run: Run, outcome: Outcome, context: ToolContext, seconds: float, most: int) -> Outcome:
    """The outcome of a call that failed or ran out of time, in the words that its tool has for it; `most` bytes."""
    call = run.call
    tool: Any = run.tool
    error = outcome.error
    if not tool.spec.explains or error is None or error.code not in ("tool-failed", "timed-out"):
        return outcome
    timed_out = seconds if error.code == "timed-out" else None
    if timed_out is not None:
        tail = " ".join(outcome.stderr.strip().splitlines()[-3:])[-LONGEST_TAIL:]
        words = f"`{call.name}` timed out after {timed_out:g} s" + (f": {tail}" if tail else "")
        outcome = evolve(outcome, error=replace(error, message=words))
    try:
        async with asyncio.timeout(2 * HOOK_SECONDS):
            text: str | None = await tool.explain(own_copy(call.arguments), context, outcome.exit_code, timed_out)
    except (TimeoutError, HaftError, OSError):
        return outcome
    if not text:
        return outcome
    data = call.secrets.masked_text(text).encode("utf-8", "replace")
    shown = data[:most].decode("utf-8", "ignore")
    return evolve(outcome, output=shown, output_bytes=len(data), truncated=len(data) > most)
