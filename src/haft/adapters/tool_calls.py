"""The calls that a framework makes through a service: what all adapters share.

A framework may execute the same tool call again, to go on with it after a pause, and even in another process. So each
call has a key, under which its run is found again: no call is made twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import (
    MODEL_CHARS,
    ApprovalAnswer,
    BadUsage,
    HaftError,
    ModelAnswer,
    Outcome,
    Principal,
    Rights,
    ToolName,
    ToolSpec,
    outcome_from,
)
from haft.service import AskedNow, Pause, Run, accepted_schema, check_arguments
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from haft.service import RunRecord, ToolService

PAGER_TOOL: Final = ToolName("read_output")
_PAGER: Final = "`read_output` with run {run} pages through all of it"
_PAGER_SPEC: Final = ToolSpec(
    PAGER_TOOL,
    "builtin",
    "Read the whole output of a tool call of yours, page by page, if the call showed only its beginning and end.",
    {
        "type": "object",
        "properties": {
            "run": {"type": "string", "description": "The run of the call: `r_…`."},
            "offset": {"type": "integer", "minimum": 0, "description": "Where the page begins. The first begins at 0."},
        },
        "required": ["run"],
        "additionalProperties": False,
    },
)
POLL_SECONDS: Final = 0.1
MOST_WAITING: Final = 1_000


@dataclass(frozen=True, slots=True)
class PausedCall:
    """A call that needs approval. The framework shows it as its own pause."""

    run: str
    """The run that needs approval: that of the call, or one below it."""
    request: str
    """The id of the request. An answer holds for this request only."""
    facts: Mapping[str, Any]
    """What a person needs to see of it: `tool`, `arguments`, `reason`, `preview`, `diff`, and in `chain` the tools that
    wait for it, the outermost first."""

    def to_json(self) -> dict[str, Any]:
        """The form in which a framework keeps the pause."""
        return {"run": self.run, "request": self.request, **self.facts}


class ToolCalls:
    """The tools of a service for one agent of a framework, and its calls."""

    def __init__(
        self,
        service: ToolService,
        prefix: str,
        *,
        tools: Iterable[str] | None = None,
        who: str | Principal | None = None,
        thread: str | None = None,
        pauses: bool = True,
        max_chars: int = MODEL_CHARS,
    ) -> None:
        """`prefix` begins the keys of the calls. `tools` are the names of the tools that the agent gets, or globs for
        names; without it, all. Without `pauses`, calls that need approval go to the approver of the service or to its
        inbox."""
        self.service = service
        self._prefix = prefix
        self._globs = None if tools is None else tuple(tools)
        self._options: dict[str, Any] = {"who": who, "thread": thread}
        self._pauses = pauses
        self._max_chars = max_chars
        self._runs: dict[str, Run] = {}
        """The calls that have not ended for the framework, by their keys."""
        self._given: dict[str, Mapping[str, Any]] = {}
        """Their arguments, as the framework gave them."""
        self._paused: dict[str, PausedCall] = {}
        self._stored_are_known = False
        self.turn = asyncio.Lock()
        """For an adapter that may pause for one call only at a time."""

    def tools(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Name, description and schema of the tools that can be called now."""
        specs = [
            each.spec for each in self.service.tools(thread=self._options["thread"]) if self._offers(each.spec.name)
        ]
        names = {spec.name for spec in specs}
        every = specs if PAGER_TOOL in names else [*specs, _PAGER_SPEC]
        return [(spec.name, *reversed(accepted_schema(spec))) for spec in every]

    def _offers(self, name: str) -> bool:
        return self._globs is None or any(fnmatch.fnmatchcase(name, glob) for glob in self._globs)

    def _rights(self) -> Rights | None:
        """What sub-agents that the agent starts may do at most: no more than the agent itself."""
        if self._globs is None:
            return None
        names = (listing.spec.name for listing in self.service.tools(all=True) if self._offers(listing.spec.name))
        return Rights("a sub-agent of this agent", frozenset(names), binds_subagents_only=True)

    async def call(
        self, name: str, arguments: Mapping[str, Any], key: str, *, pauses: bool = True, exists: bool | None = None
    ) -> PausedCall | ModelAnswer:
        """Find the call that was made under this key, or make it. `exists` says whether it was made, if that is known.
        Returns what the model reads, or what needs approval. Without `pauses`, the call does not pause. If the waiting
        task is cancelled, the call is, too."""
        try:
            if name == PAGER_TOOL and self.service.catalogue.listing(name) is None:
                return await self._page(arguments)
            if not self._offers(name):
                return ModelAnswer(f"there is no tool called `{name}`", is_error=True)
            key, pauses = self._prefix + key, self._pauses and pauses
            found = await self._found(key) if pauses and exists is not False else None
            if found is not None and exists is None and self._given.get(key, arguments) != arguments:
                return ModelAnswer("another call of yours has this id: make the call again", is_error=True)
            if found is None and exists:
                return ModelAnswer("you have no such call", is_error=True)
            if found is None:
                found = self.service.call(
                    name, arguments, pauses=pauses, key=key, rights=self._rights(), **self._options
                )
                self._given[key] = arguments
            return await self._state(key, found)
        except HaftError as error:
            return ModelAnswer(f"error ({error.code}): {error.message}", is_error=True)

    async def _found(self, key: str) -> Run | RunRecord | None:
        """The call with this key, if it has paused; None if there is none."""
        found = self._runs.get(key) or await self.service.paused_runs.find(key)
        if found is None or isinstance(found, Run) or found.is_open:
            return found
        return found if await self.service.paused_runs.has_paused(found) else None

    async def answer(
        self,
        key: str,
        answer: ApprovalAnswer,
        request: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> bool:
        """Answer what the call with this key asks. `request` is the request that the person saw, if that is known. The
        answer is not used if the call has one already, or asks something else by now. `arguments` are those with which
        the framework goes on: if they are not those of the call, the person has changed them. Returns whether there is
        such a call."""
        key = self._prefix + key
        paused, found = self._paused.pop(key, None), await self._found(key)
        if found is None:
            return False
        given = self._given.get(key)
        if not isinstance(found, Run):
            given = (found.paused or {}).get("arguments")
            asked = await self.service.paused_runs.asked(found.id)
            if paused is None and asked is not None and (request is not None or asked.is_only):
                paused = _paused_call(asked)
        if paused is None:
            return True
        if arguments is not None and given is not None and arguments != given and not paused.facts["chain"]:
            answer = replace(answer, arguments=arguments)
            self._given[key] = arguments
        with contextlib.suppress(BadUsage):  # The run has ended meanwhile.
            self._runs[key] = await self.service.resume(paused.run, answer, request=request or paused.request)
        return True

    def asks(self, key: str, request: str) -> bool:
        """Whether the call with this key still waits for the answer to this request."""
        paused = self._paused.get(self._prefix + key)
        return paused is not None and paused.request == request

    async def answer_request(self, request: str, answer: ApprovalAnswer) -> None:
        """Answer a request of any call. Not used if no call asks it any more."""
        for key in await self.waiting():
            if self.asks(key, request):
                await self.answer(key, answer, request)

    async def waiting(self) -> list[str]:
        """The keys of the calls that wait for an approval: those of this process, and those that earlier ones have left
        behind."""
        if not self._stored_are_known:
            self._stored_are_known = True
            for record in await self.service.runs.find(status="blocked-on-user", limit=MOST_WAITING):
                key = record.rest.get("key") or ""
                if key.startswith(self._prefix) and (asked := await self.service.paused_runs.asked(record.id)):
                    self._paused.setdefault(key, _paused_call(asked))
        return [key.removeprefix(self._prefix) for key in self._paused]

    async def _state(self, key: str, found: Run | RunRecord) -> PausedCall | ModelAnswer:
        """What has become of a call: what it asks, or its answer."""
        while not isinstance(found, Run):
            if not found.is_open:
                return self._ended(key, outcome_from(found.outcome))
            if (asked := await self.service.paused_runs.asked(found.id)) is not None:
                return self._asks(key, _paused_call(asked))
            try:
                found = await self.service.resume(found.id)
            except BadUsage:  # It has ended meanwhile, or another process is at work on it.
                await asyncio.sleep(POLL_SECONDS)
                found = await self.service.runs.get(found.id)
        self._runs[key] = found
        try:
            state = await found.pause_or_outcome()
        except asyncio.CancelledError:
            found.cancel()
            raise
        return self._asks(key, _paused_live(state)) if isinstance(state, Pause) else self._ended(key, state)

    def _asks(self, key: str, paused: PausedCall) -> PausedCall:
        self._paused[key] = paused
        return paused

    def _ended(self, key: str, outcome: Outcome) -> ModelAnswer:
        for known in (self._runs, self._given, self._paused):
            known.pop(key, None)
        return outcome.for_model(self._max_chars, pager=_PAGER)

    async def _page(self, arguments: Mapping[str, Any]) -> ModelAnswer:
        """A page of the output of a run of this agent."""
        check_arguments(_PAGER_SPEC, arguments)
        unknown = ModelAnswer("you have no such run", is_error=True)
        try:
            page = await self.service.output(arguments["run"], arguments.get("offset", 0))
        except HaftError:
            return unknown
        who = self.service.principal.acting(self._options["who"], self._options["thread"])
        if (page.record.who, page.record.thread) != (who.who, who.thread):
            return unknown
        more = "" if page.next is None else f"\n[haft] the next page begins at offset {page.next}"
        return ModelAnswer(page.text + more)


def _paused_live(pause: Pause) -> PausedCall:
    request = pause.request
    facts = {
        "tool": request.tool,
        "arguments": dict(request.arguments),
        "reason": request.reason,
        "preview": request.preview,
        "diff": request.diff,
        "chain": list(request.chain_tools),
    }
    return PausedCall(pause.run, request.id or "", facts)


def _paused_call(asked: AskedNow) -> PausedCall:
    shown = asked.waiting.shown
    names = ("tool", "arguments", "reason", "preview", "diff")
    facts = {name: shown[name] for name in names} | {"chain": shown["chainTools"]}
    return PausedCall(asked.waiting.run, asked.waiting.id, facts)
