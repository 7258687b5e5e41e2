"""The facade `service.observed`: calls of an agent's own tools that haft does not run, but decides about and records.

    before: the agent's hook asks ─► `begin`: decide, perhaps approve, store the named files ─► the agent runs the call
    after:  the agent's hook tells ─► `end`: compare the files, add their changes to the history, end the run

Such a call is a run like any other: it is in `haft log` and in the audit log, and its edits can be undone. haft does
not confine it, and knows only the files that the call names. Without the second message the run ends as unknown.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from haft.changes import ObservedFiles, OwnChanges, Owner, run_uncancellable
from haft.contracts import (
    Action,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Call,
    CallError,
    Changes,
    Decision,
    Effects,
    Failure,
    HaftError,
    Launcher,
    Outcome,
    Principal,
    Profile,
    RunId,
    Stream,
    ToolContext,
    ToolName,
    ToolSpec,
    Unanswered,
    UnknownEnd,
    new_run_id,
    own_copy,
)
from haft.files import shown
from haft.pipeline import Run
from haft.policy import PolicyQuery
from haft.service.assembly import Host
from haft.values import dataclass, replace

LONGEST_FAILURE: Final = 1_000
ANSWER_SECONDS: Final = 0.1
"""How long a call that only reads rests when its hook can answer: the agent does not wait for what follows."""
_STRICTNESS: Final[tuple[Action, ...]] = ("allow", "try", "ask", "delegate", "reject")
_ANYTHING: Final[Mapping[str, Any]] = {"type": "object"}
_OUTSIDE: Final = Decision(
    action="ask",
    layer="built-in",
    rule="everything else needs approval",
    source="haft's own rules",
    by="rule",
    reason="it changes a file outside the workspace, where haft cannot undo it",
)


@dataclass(frozen=True, slots=True)
class Observed:
    """A call that an agent is about to make with one of its own tools."""

    tool: str
    """The agent's name of the tool."""
    arguments: Mapping[str, Any]
    agent: str
    session: str
    cwd: str
    """The directory of the agent: absolute."""
    decided_as: str | None = None
    """The tool of haft that does the same; None if there is none."""
    decided_with: Sequence[Mapping[str, Any]] = ()
    """The arguments of that tool: one set for each file that the call names, mostly."""
    files: Sequence[str] = ()
    """The files that the call may change: absolute paths."""
    changes: bool = True
    """Whether the call may change something."""
    note: str | None = None
    """A text for the person, such as why haft does not run the call itself."""
    held: str | None = None
    """Why the agent's own prompt is not enough to approve this call; None if it is."""


@dataclass(frozen=True, slots=True)
class ObservedDecision:
    """What the hook answers its agent about a call."""

    action: Literal["none", "ask", "deny"]
    """`none`: haft has nothing against the call, and leaves it to the agent's own rules and prompt."""
    run: RunId
    reason: str = ""


class ObservedCalls:
    """The calls of agents' own tools in one workspace."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._live: dict[str, tuple[Run, _Attachment]] = {}
        """The calls whose end is not known, by the key of the caller of `begin`."""

    @property
    def is_busy(self) -> bool:
        """Whether the end of a call is awaited."""
        return bool(self._live)

    async def begin(
        self, key: str, observed: Observed, *, asks_agent: bool, wait_seconds: float, denies: str | None = None
    ) -> ObservedDecision:
        """Decide about a call. `key` is how `end` names it. `asks_agent`: the agent can show a prompt to a person;
        without it, a call that needs approval waits `wait_seconds` in the inbox. `denies` is a reason to reject the
        call whatever the rules say. Cancelling cancels the run."""
        host = self._host
        trusted = observed.agent in host.trusted_clients
        attachment = _Attachment(
            observed.agent,
            asks_agent=asks_agent,
            wait_seconds=wait_seconds,
            trusted=trusted,
            changes=observed.changes,
        )
        inside = [path for file in observed.files for path in inside_of(file, host.root.root)]
        files = ObservedFiles(host.changes(), inside) if inside else None
        decision = self._decide(observed, files, inside) if denies is None else _rejected(denies)
        missed = await asyncio.to_thread(files.remember) if files is not None and decision.action != "reject" else []
        tool = _ObservedTool(observed, attachment, files)
        call = Call(
            run=new_run_id(),
            name=tool.spec.name,
            arguments=own_copy(observed.arguments),
            principal=host.acting(Principal(observed.agent, thread=observed.session, kind="agent")),
            cwd=_within(observed.cwd, host.root.root),
            tool=tool,
            decision=None if decision.action == "delegate" else decision,
            attachment=attachment,
            secrets=host.known(),
        )
        run = host.running().call(call)
        run.add_note(_not_covered(observed, len(inside)))
        if observed.note is not None:
            run.add_note(observed.note)
        for path in missed:
            run.add_note(f"{shown(path)} could not be stored before the call, so haft cannot undo its changes")
        return await self._decided(key, run, attachment)

    async def _decided(self, key: str, run: Run, attachment: _Attachment) -> ObservedDecision:
        ended = asyncio.ensure_future(_outcome_of(run))
        either: set[asyncio.Future[Any]] = {ended, attachment.answered}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            run.cancel()
            raise
        if not attachment.answered.done():
            outcome = await ended
            return ObservedDecision("deny", run.id, "" if outcome.error is None else outcome.error.message)
        self._live[key] = run, attachment
        ended.add_done_callback(lambda _ended: self._live.pop(key, None))
        action, reason = attachment.answered.result()
        return ObservedDecision(action, run.id, reason)

    async def end(self, key: str, failure: str | None = None) -> Outcome | None:
        """The call has ended: successfully, or with this failure. Returns None if there is no such call."""
        found = self._live.get(key)
        if found is None:
            return None
        run, attachment = found
        attachment.end(failure)
        return await run

    def lose(self, key: str, why: str) -> None:
        """The end of the call will never be known."""
        found = self._live.get(key)
        if found is not None:
            found[1].lose(why)

    async def close(self) -> None:
        """End all calls whose end is not known."""
        live = list(self._live.values())
        for _run, attachment in live:
            attachment.lose("haft's helper ended before the agent told of its end")
        for run, _attachment in live:
            await run

    def _decide(self, observed: Observed, files: ObservedFiles | None, inside: Sequence[str]) -> Decision:
        found = [self._policy(observed, arguments) for arguments in observed.decided_with or [observed.arguments]]
        decision = max(found, key=lambda each: _STRICTNESS.index(each.action))
        if decision.action == "delegate" and len(found) > 1:
            reason = "a program decides about such calls, and it can be asked about one file at a time only"
            decision = replace(decision, action="ask", reason=reason)
        elif decision.action == "try":
            decision = replace(decision, action="ask", reason="haft cannot make a trial run of an agent's own tool")
        if observed.changes and len(inside) < len(observed.files):
            decision = max(decision, _OUTSIDE, key=lambda each: _STRICTNESS.index(each.action))
        objection = None if files is None or decision.action == "reject" else files.objection(decision.grants.write)
        held = objection.message if objection is not None else observed.held
        if held is not None and decision.action != "reject":
            decision = replace(decision, action="ask", reason=held, is_dangerous=True, unasked=False)
        return decision

    def _policy(self, observed: Observed, arguments: Mapping[str, Any]) -> Decision:
        host = self._host
        spec = _spec(observed, is_declared_harmless=True)
        if observed.decided_as is not None:
            spec = host.catalogue.get(observed.decided_as, host.thread).spec
        cwd = _within(observed.cwd, host.root.root)
        query = PolicyQuery(spec, arguments, cwd=cwd, thread=observed.session, confined=False)
        try:
            return host.policy_engine.decide(query)
        except CallError:  # A path outside the workspace, which haft's own tool would refuse.
            return host.policy_engine.decide(replace(query, spec=_spec(observed, is_declared_harmless=True)))


class _Attachment:
    """Implements `Attachment` for a call that haft only watches."""

    is_background = True
    profile: Profile | None = None

    def __init__(self, agent: str, *, asks_agent: bool, wait_seconds: float, trusted: bool, changes: bool) -> None:
        """`changes`: whether the call may change something."""
        loop = asyncio.get_running_loop()
        self.answered: asyncio.Future[tuple[Literal["none", "ask"], str]] = loop.create_future()
        """Set when the hook can answer its agent."""
        self.ended: asyncio.Future[str | None] = loop.create_future()
        """Set when the call has ended: the failure, or None."""
        self._agent = agent
        self._asks_agent = asks_agent
        self._wait_seconds = wait_seconds
        self._trusted = trusted
        self._changes = changes

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        if not self._asks_agent or not (request.client_may_approve or self._trusted):
            await asyncio.sleep(self._wait_seconds)
            raise Unanswered(f"nobody answered within {self._wait_seconds:g} seconds")
        self._answer("ask", request.reason)
        await asyncio.wait({self.ended})
        if self.ended.exception() is not None:
            self.ended.result()
        return ApprovalAnswer(approved=True, message=f"approved in the prompt of {self._agent}", via=self._agent)

    async def wait_for_start(self) -> None:
        self._answer("none", "")
        if not self._changes:  # Any other call is in the audit log before the agent may begin it.
            await asyncio.wait({self.ended}, timeout=ANSWER_SECONDS)

    def output(self, stream: Stream, data: bytes) -> None: ...

    def launcher(self, launcher: Launcher) -> Launcher:
        return launcher

    def _answer(self, action: Literal["none", "ask"], reason: str) -> None:
        if not self.answered.done():
            self.answered.set_result((action, reason))

    def end(self, failure: str | None) -> None:
        if not self.ended.done():
            self.ended.set_result(failure)

    def lose(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_exception(UnknownEnd(why))
            self.ended.exception()  # Otherwise the loop warns if nobody waits for it.


class _ObservedTool(OwnChanges):
    """A tool of an agent. Its `invoke` waits until the agent says that the call has ended."""

    def __init__(self, observed: Observed, attachment: _Attachment, files: ObservedFiles | None) -> None:
        self.spec = _spec(observed)
        self._observed = observed
        self._attachment = attachment
        self._files = files

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        failure: Failure | None = None
        await asyncio.wait({self._attachment.ended})
        try:
            told = self._attachment.ended.result()
            failure = None if told is None else Failure("tool-failed", told[:LONGEST_FAILURE] or "it failed")
        except HaftError as error:
            failure = error.failure()
        return Answer(failure=failure, changes=await self._changes(context))

    async def _changes(self, context: ToolContext) -> Changes | None:
        reason = f"{self._observed.agent} ran it, and haft knows only the files that the call named"
        if self._files is None:
            return Changes(complete=False, reason=reason) if self._observed.changes else None
        files, owner = self._files, Owner(context.run, context.who, context.thread)
        return await run_uncancellable(lambda: files.finish(owner, reason))


def _spec(observed: Observed, *, is_declared_harmless: bool = False) -> ToolSpec:
    """The description of an agent's tool. With `is_declared_harmless`, haft's own rules have nothing against it, so
    that only rules of people decide."""
    return ToolSpec(
        ToolName(f"{observed.agent}:{observed.tool}"),
        "builtin",
        f"A tool of {observed.agent}. The agent runs it, without haft's sandbox.",
        _ANYTHING,
        effects=Effects(readonly=is_declared_harmless or not observed.changes),
        provenance="builtin",
        origin=observed.agent,
        hosting="in-process" if is_declared_harmless else "remote",
    )


def _rejected(why: str) -> Decision:
    return Decision("reject", "built-in", why, "haft's own rules", "rule", why)


def _not_covered(observed: Observed, files: int) -> str:
    if not observed.changes:
        return f"not covered: {observed.agent} ran it itself, without haft's sandbox"
    undone = "haft can undo only the changes of the files that it named" if files else "haft cannot undo it"
    return f"not covered: {observed.agent} ran it itself, without haft's sandbox; {undone}"


def inside_of(file: str, workspace: str) -> list[str]:
    """The paths, relative to the workspace, that a write to this file may change: the file itself, and, if it is a
    link, also what the link leads to. Empty if both are outside."""
    above, name = os.path.split(os.path.abspath(file))
    named = os.path.join(os.path.realpath(above), name)
    places = (os.path.relpath(each, workspace) for each in dict.fromkeys((named, os.path.realpath(file))))
    return [each for each in places if each not in (os.curdir, os.pardir) and not each.startswith(os.pardir + os.sep)]


def _within(directory: str, workspace: str) -> str:
    found = os.path.relpath(os.path.realpath(directory), workspace)
    return "." if found == os.pardir or found.startswith(os.pardir + os.sep) else found


async def _outcome_of(run: Run) -> Outcome:
    return await run
