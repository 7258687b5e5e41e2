"""The tool `batch`: several calls of a client at once, and their results together."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import BadUsage, Outcome, Principal, UnknownTool
from haft.service import BatchedCall, read_calls
from haft.surfaces.mcp.calls import LONGEST_WAIT, CallRequest, Calls
from haft.surfaces.mcp.offers.offered_tools import OfferedTools
from haft.surfaces.mcp.results import result_of, text_result
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from haft.service import BatchRun

BATCH_PROPERTIES: Final[dict[str, Any]] = {
    "calls": {
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "properties": {
                "tool": {"type": "string", "minLength": 1, "description": "The name of the tool."},
                "args": {"type": "object", "description": "Its arguments, as its input schema wants them."},
                "id": {"type": "string", "description": "Your name for the call. Default: its number, from 1."},
                "after": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Ids of earlier calls. If one of them does not succeed, this call is cancelled.",
                },
                "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds."},
            },
            "required": ["tool"],
            "additionalProperties": False,
        },
    },
    "seconds": {
        "type": "number",
        "minimum": 0,
        "maximum": 3600,
        "description": f"How long to wait for all results at most. Default: {LONGEST_WAIT:.0f}; longer while the user "
        "is asked.",
    },
}


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of one of haft's own tools."""

    context: ServerRequestContext[Any, Any]
    caller: Principal
    arguments: Mapping[str, Any]
    params: Mapping[str, Any]


async def call_together(calls: Calls, offered: OfferedTools, own: Container[str], call: OwnCall) -> dict[str, Any]:
    """Make the calls of a batch, and wait for them. If the client cancels its request, all calls are cancelled. `own`
    are haft's own tools, which are in no batch."""
    read = [_offered(each, offered, own, call.caller.thread) for each in read_calls(call.arguments["calls"])]
    request = CallRequest(call.context, "batch", call.arguments, call.caller, call.params)
    batch = calls.join_batch(request) or calls.begin_batch(call.caller, read)
    asked = await calls.wait_batch(request, batch, call.arguments.get("seconds"))
    return await _result(batch, read, calls) if asked is None else asked


def _offered(call: BatchedCall, offered: OfferedTools, own: Container[str], thread: str | None) -> BatchedCall:
    """The call with haft's own name of the tool. A tool that the server does not offer makes this call fail, and no
    other."""
    if call.tool in own:
        return replace(call, refusal=BadUsage(f"`{call.tool}` cannot be called in a batch", hint="call it by itself"))
    real = offered.real_name(call.tool)
    if real is not None:
        return replace(call, tool=real)
    known = [offered.shown_name(listing.spec.name) for listing in offered.listings(thread)]
    error = UnknownTool(call.tool, known)
    if error.hint is None or not error.hint.startswith("did you mean"):
        error.hint = "`search_tools` finds tools"
    return replace(call, refusal=error)


async def _result(batch: BatchRun, read: list[BatchedCall], calls: Calls) -> dict[str, Any]:
    """The results of all calls as one: a text and a structured value with one part for each call."""
    content: list[dict[str, Any]] = []
    listed: list[dict[str, Any]] = []
    waiting = await calls.waiting_requests() if any(run.status == "blocked-on-user" for run in batch.runs) else {}
    for call, run in zip(read, batch.runs, strict=True):
        result = (
            still_running(run.id, run.status, waiting.get(run.id))
            if run.outcome is None
            else _one(run.outcome, call, calls)
        )
        status = run.status if run.outcome is None else run.outcome.status
        content.append({"type": "text", "text": f"[call {call.id}: {call.tool}, {status}]"})
        content += result["content"]
        structured = result.get("structuredContent")
        if structured is None:
            output = "" if run.outcome is None else run.outcome.output
            structured = {"run": run.id, "status": status, "output": output}
        listed.append({"id": call.id, **structured})
    if any(run.id in waiting for run in batch.runs):
        said = f"[haft] `haft approve {batch.id}` approves all calls of this batch that wait, in a terminal of the user"
        content.append({"type": "text", "text": said})
    return {
        "content": content,
        "structuredContent": {"batch": batch.id, "outcomes": listed},
        "isError": any(run.outcome is not None and not run.outcome.ok for run in batch.runs),
    }


def _one(outcome: Outcome, call: BatchedCall, calls: Calls) -> dict[str, Any]:
    return result_of(outcome, server=calls.server_of(outcome.tool, call.arguments))


def still_running(run: str, status: str, request: str | None = None) -> dict[str, Any]:
    """The result of a wait that ended before its run. `request` is the request for approval that the run waits for."""
    waits = "waits for a person's approval" if status == "blocked-on-user" else f"has not ended: {status}"
    named = "" if request is None else f" (`haft approve {request}`)"
    said = f"run {run} {waits}{named}. Nothing went wrong: call `wait` with this run again to go on waiting."
    facts = {"run": run, "status": status, "message": said}
    return text_result(said, facts if request is None else {**facts, "request": request})
