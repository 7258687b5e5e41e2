"""Calls of MCP clients: from a `tools/call` request to a run, and from its outcome to the result.

`CallRequest` is what is known about one request. `Calls` starts its run. Waiting for the run is a step of its own
(`Wait`), so that a dialogue about an approval can end the wait before the run ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError

from haft.contracts import BadUsage, Event, HaftError, Outcome, Principal
from haft.surfaces.mcp.offers.log_messages import is_wanted, level_of, send_log
from haft.surfaces.mcp.offers.offered_tools import OfferedTools
from haft.surfaces.mcp.results import result_of, text_result
from haft.values import dataclass

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from haft.service import BatchRun, Run, ToolService

UNKNOWN_TOOL: Final = -32602
SKILL: Final = "skill"
CLAIM_KEY: Final = "haft/claim"
"""The field of `_meta` in which a client says why it makes a call, in a sentence of its own."""
SERVER_TOOL: Final = "mcp__"
"""How the names of tools of hosted MCP servers begin. After it comes the server, whose name has no `_`."""
PROGRESS_SECONDS: Final = 0.5
"""The shortest time between two notifications about output. Output can come much faster than anyone reads."""


LONGEST_WAIT: Final = 50.0
"""Seconds that `wait` and `batch` wait by default: some clients give up on a call after 60."""
MOST_UNFINISHED: Final = 256
"""How many runs of one client may be in progress, or wait, at once. More would bury the inbox of the person."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One `tools/call` request."""

    context: ServerRequestContext[Any, Any]
    tool: str
    """haft's name of the tool, not the offered one."""
    arguments: Mapping[str, Any]
    caller: Principal
    params: Mapping[str, Any]
    """The parameters as the client sent them, with `inputResponses`, `requestState` and `task` if it sent these."""
    joined: bool = False
    """Whether the request only waits for a run that another request started. If the client cancels the request, the
    run goes on."""


CallerOf = Callable[["ServerRequestContext[Any, Any]"], Principal]
"""Who makes a request, and in which thread."""

Wait = Callable[[CallRequest, "Run"], Awaitable["Outcome | dict[str, Any]"]]
"""Waits for a run on behalf of a request. Returns the outcome, or another result of the call, as MCP writes it."""

WaitBatch = Callable[[CallRequest, "BatchRun", "float | None"], Awaitable["dict[str, Any] | None"]]
"""Waits for a batch on behalf of a request, for so many seconds. Returns a result that asks the client something, or
None: then the calls or the wait have ended."""

JoinBatch = Callable[[CallRequest], "BatchRun | None"]
"""The batch that a repeated request waits for; None if the request starts a new one."""

Join = Callable[[CallRequest], Awaitable["Run | Outcome | None"]]
"""The run that a repeated request waits for, or its outcome; None if the request starts a new run."""


class Calls:
    """Makes the calls of one server."""

    def __init__(self, service: ToolService, offered: OfferedTools, caller_of: CallerOf) -> None:
        self._service = service
        self._offered = offered
        self.caller_of = caller_of
        self.wait: Wait = wait_for_outcome
        self.join: Join = no_join
        self.wait_batch: WaitBatch
        self.join_batch: JoinBatch
        self._unfinished: dict[str, list[Run]] = {}
        """The runs that each client started, without those that are known to have ended."""
        self.after_skill: Callable[[], Awaitable[None]] | None = None
        """Called after a client has read a skill, because the skill's tools are there from then on."""

    async def call(
        self,
        context: ServerRequestContext[Any, Any],
        name: str,
        arguments: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Call the tool that clients know as `name`, and return the result as MCP writes it."""
        real = self._offered.real_name(name)
        if real is None:
            raise unknown_tool(f"this server does not offer a tool `{name}`")
        ended = await self.run(context, real, arguments, params)
        return ended if isinstance(ended, dict) else self.result(ended, arguments)

    async def run(
        self,
        context: ServerRequestContext[Any, Any],
        tool: str,
        arguments: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> Outcome | dict[str, Any]:
        """Call a tool by haft's own name for it. Returns the outcome; or a result for the client, if the request ends
        before the run."""
        caller = self.caller_of(context)
        request = CallRequest(context, tool, arguments, caller, params)
        run = await self.join(request)
        if isinstance(run, Outcome):
            return run
        if run is None:
            try:
                run = self._begin(
                    caller,
                    lambda: self._service.call(
                        tool,
                        arguments,
                        who=caller,
                        thread=caller.thread,
                        rights=self._offered.rights,
                        claim=_claim_of(params),
                    ),
                )
            except HaftError as error:  # The arguments are no JSON object, or the service is closing.
                return failure_result(error)
        ended = await self.wait(request, run)
        if tool == SKILL and self.after_skill is not None:
            await self.after_skill()
        return ended

    def begin_batch(self, caller: Principal, calls: Sequence[Any]) -> BatchRun:
        """Start the calls of a batch. Raises `BadUsage` if the list is wrong, or too many runs of this client have not
        ended."""
        self._check_unfinished(caller, len(calls))
        batch = self._service.batch(calls, who=caller, thread=caller.thread, rights=self._offered.rights)
        self._unfinished[caller.who] += batch.runs
        return batch

    async def waiting_requests(self) -> dict[str, str]:
        """The requests of this workspace that wait for a person, by the runs that wait for them."""
        found = await self._service.approvals.waiting()
        return {(each.shown["chain"] or [each.run])[0]: each.id for each in reversed(found)}

    async def follow(self, context: ServerRequestContext[Any, Any], start: Callable[[], Run]) -> Outcome:
        """Start a run that is no call of a tool, and wait for its end. No dialogue ends the wait earlier."""
        caller = self.caller_of(context)
        run = self._begin(caller, start)
        request = CallRequest(context, run.call.name, run.call.arguments, caller, context.params or {})
        return await wait_for_outcome(request, run)

    def _begin(self, caller: Principal, start: Callable[[], Run]) -> Run:
        """Start a run of a client. Raises `BadUsage` if too many of its runs have not ended."""
        self._check_unfinished(caller)
        run = start()
        self._unfinished[caller.who].append(run)
        return run

    def _check_unfinished(self, caller: Principal, more: int = 1) -> None:
        """Raise `BadUsage` if too many runs of this client would not have ended with `more` new ones."""
        if more > MOST_UNFINISHED:
            raise BadUsage(f"a batch has at most {MOST_UNFINISHED} calls here", hint="make several batches")
        runs = self._unfinished.setdefault(caller.who, [])
        if len(runs) + more > MOST_UNFINISHED:
            runs[:] = [run for run in runs if run.outcome is None]
        if len(runs) + more > MOST_UNFINISHED:
            raise BadUsage(
                f"{len(runs)} of your runs have not ended, and no more can be started",
                hint="`runs` lists them; `wait` waits for one, and `cancel` stops one",
            )

    def result(self, outcome: Outcome, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a call with these arguments, whose run has ended."""
        if outcome.error is not None and outcome.error.code == "unknown-tool":
            hint = outcome.error.hint or ""
            hint = f"; {hint}" if hint.startswith("did you mean") else ""  # Other hints are for the command line.
            raise unknown_tool(f"{outcome.error.message}{hint}")
        listing = self._service.catalogue.listing(outcome.tool)
        return result_of(
            outcome,
            declares_schema=listing is not None and listing.spec.output_schema is not None,
            server=self.server_of(outcome.tool, arguments),
        )

    def server_of(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """The hosted MCP server that writes the output of a call; None if no server does."""
        listing = self._service.catalogue.listing(tool)
        if listing is None:  # The server may have been removed since.
            return tool.removeprefix(SERVER_TOOL).partition("__")[0] if tool.startswith(SERVER_TOOL) else None
        if listing.spec.kind != "mcp":
            return None
        server = listing.spec.meta.get("mcp", {}).get("server", arguments.get("server"))
        return None if server is None else str(server)


async def no_join(request: CallRequest) -> None:
    """Let every request start a new run."""


class UnknownToolError(MCPError):
    """A client called a tool that does not exist, or is not offered."""


def unknown_tool(message: str) -> UnknownToolError:
    """The error of a call whose tool does not exist, or is not offered."""
    return UnknownToolError(code=UNKNOWN_TOOL, message=f"Unknown tool: {message}")


def failure_result(error: HaftError) -> dict[str, Any]:
    """An error that happened before there was a run, as a result that the model can read."""
    failure = error.failure().to_json()
    hint = f"\nhint: {failure['hint']}" if failure.get("hint") else ""
    structured = {"status": "error", "error": {key: value for key, value in failure.items() if value is not None}}
    return text_result(f"error ({failure['code']}): {failure['message']}{hint}", structured, is_error=True)


async def wait_for_outcome(request: CallRequest, run: Run) -> Outcome:
    """Wait for the outcome and report progress meanwhile. If the client cancels its request, the run is cancelled."""
    try:
        if wants_events(request):
            async with progress_of(request, run):
                return await run
        return await run
    except asyncio.CancelledError:
        if not request.joined:
            run.cancel(request.caller)
        raise


def wants_progress(params: Mapping[str, Any]) -> bool:
    """Whether the client sent a progress token."""
    meta = params.get("_meta")
    return isinstance(meta, Mapping) and meta.get("progressToken") is not None


def _claim_of(params: Mapping[str, Any]) -> str | None:
    """The sentence in which the client says why it makes the call; None if it says nothing."""
    meta = params.get("_meta")
    claim = meta.get(CLAIM_KEY) if isinstance(meta, Mapping) else None
    return claim if isinstance(claim, str) else None


def wants_events(request: CallRequest) -> bool:
    """Whether the client wants to hear of the run before it ends: its progress, or log messages."""
    return wants_progress(request.params) or level_of(request.context) is not None


@contextlib.asynccontextmanager
async def progress_of(request: CallRequest, run: Run) -> AsyncIterator[None]:
    """A context manager that reports the events of the run to the client. At its end, everything that the tool said
    about its progress has been reported."""
    task = asyncio.create_task(ProgressReport(request).follow(run))
    try:
        yield
        await task  # The run has ended, and so do its events.
    finally:
        task.cancel()


class ProgressReport:
    """Tells the client of one request about its run: as progress, and as log messages if the client wants some. MCP
    wants each value of progress to be higher than the one before."""

    def __init__(self, request: CallRequest) -> None:
        self._context = request.context
        self._tool = request.tool
        self._level = level_of(request.context)
        self._value = -1.0
        self._last_output = 0.0

    def follow(self, events: AsyncIterable[Event]) -> Coroutine[Any, Any, None]:
        """Report the events of a run until it ends. From this call on, no event is missed."""
        return self._follow(aiter(events))

    async def _follow(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            await self._tell(event)

    async def _tell(self, event: Event) -> None:
        if event.type == "progress":
            fraction = event.facts.get("fraction")
            await self.say(event.text, fraction if isinstance(fraction, int | float) else None)
            if fraction is None:
                await self._log("info", event.text)
        elif event.type in ("stdout", "stderr") and event.text.strip():
            await self._log("debug", event.text)
            now = asyncio.get_running_loop().time()
            if now - self._last_output >= PROGRESS_SECONDS:
                self._last_output = now
                await self.say(event.text.strip().splitlines()[-1][:200])
        elif event.type == "status" and event.status == "blocked-on-user":
            reason = event.facts.get("reason")
            await self.say(f"waiting for a person's approval{f': {reason}' if reason else ''}")

    async def say(self, message: str, fraction: float | None = None) -> None:
        """Report progress. `fraction` says how much is done, from 0 to 1."""
        least = self._value + 0.001
        self._value = max(0.0, least) if fraction is None else max(least, round(fraction * 100, 3))
        total = None if fraction is None else 100.0
        with contextlib.suppress(Exception):  # The client may be gone; the run goes on.
            await self._context.session.report_progress(self._value, total, message or None)

    async def _log(self, level: str, text: str) -> None:
        if self._level is not None and is_wanted(level, self._level):
            with contextlib.suppress(Exception):
                await send_log(self._context, level, text, self._tool)
