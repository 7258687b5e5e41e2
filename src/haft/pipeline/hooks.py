"""The optional hooks of a tool: `preview` says in one line what a call would do, `explain` says why a call failed.

Both run the tool's own code, with a short timeout. Neither can block a call, end it, or disguise it: a preview is shown
beside the arguments and never replaces them. An explanation replaces the output of a failed call and never its error.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from haft.contracts import Call, HaftError, Outcome, ToolContext, evolve, own_copy
from haft.pipeline.run import Run
from haft.values import replace

HOOK_SECONDS: Final = 5.0
MAX_PREVIEW_LENGTH: Final = 500
MAX_TAIL_LENGTH: Final = 300


async def preview_of(call: Call, context: ToolContext) -> str | None:
    """The preview line of a tool for a call; None if the tool has none, fails or takes too long."""
    tool: Any = call.tool
    if not tool.spec.previews:
        return None
    try:
        async with asyncio.timeout(HOOK_SECONDS):
            said: str = await tool.preview(own_copy(call.arguments), context)
    except (TimeoutError, HaftError, OSError):
        return None
    line = call.secrets.masked_text(said).strip().split("\n", 1)[0].strip()
    return (line if len(line) <= MAX_PREVIEW_LENGTH else f"{line[:MAX_PREVIEW_LENGTH]}…") or None


async def explain_failure(run: Run, outcome: Outcome, context: ToolContext, seconds: float, most: int) -> Outcome:
    """The outcome of a failed or timed-out call, with at most `most` bytes of the tool's explanation as its output. The
    outcome stays as it is if the tool has no explanation."""
    call = run.call
    tool: Any = run.tool
    error = outcome.error
    if not tool.spec.explains or error is None or error.code not in ("tool-failed", "timed-out"):
        return outcome
    timed_out = seconds if error.code == "timed-out" else None
    if timed_out is not None:
        tail = " ".join(outcome.stderr.strip().splitlines()[-3:])[-MAX_TAIL_LENGTH:]
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
