"""A stage that changes a call: it adds the decision to the call. It stops no call: the stage `approve` acts on the
decision.

If a rule delegates the decision to a program, this stage runs that program in the sandbox. Exit code 0 allows the call,
1 means that the call needs approval, and any other code rejects the call. A delegate that fails or times out rejects
the call, too.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft import policy
from haft.contracts import (
    NO_GRANTS,
    Action,
    BadUsage,
    Call,
    Command,
    Decision,
    Delegation,
    EndedChild,
    HaftError,
    MaskedStream,
    Outcome,
    Principal,
    Stream,
    ToolName,
    ToolSpec,
)
from haft.pipeline import nesting
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.policy import PolicyQuery, prepare_analysis
from haft.sandbox import Abilities, Sandbox
from haft.values import replace

if TYPE_CHECKING:
    from haft.changes import EngineSelector

DELEGATE_SECONDS: Final = 10.0
MAX_DELEGATE_TEXT: Final = 4_000
_BY_STRICTNESS: Final[tuple[Action, ...]] = ("allow", "try", "ask", "reject")


class Decide:
    """Decides whether a call may run, needs approval, or is rejected."""

    def __init__(
        self,
        decide: Callable[[PolicyQuery], Decision],
        sandbox: Sandbox,
        engine_selector: Callable[[], EngineSelector],
        root: str,
        person_behind: Callable[[Principal], str | None],
    ) -> None:
        """`root` is the workspace directory. `person_behind` returns the name of the person who makes a call, or for
        whom an agent makes it."""
        self._person_behind = person_behind
        self._root = root
        self._decide = decide
        self._sandbox = sandbox
        self._engine_selector = engine_selector
        self._latest: dict[ToolName, Decision] = {}
        """The latest decision about each tool."""

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if run.call.decision is None:  # Commands of a person, such as undo, bring their own decision.
            await self.decide(run)
        return await proceed(run)

    async def decide(self, run: Run) -> None:
        """Decide, and add the decision to the call."""
        await self._decide_now(run)
        if not self._engine_selector().is_settled() and await asyncio.to_thread(_depends_on_files, run, self._root):
            await self._engine_selector().settled()
            await self._decide_now(run)

    async def _decide_now(self, run: Run) -> None:
        """Decide by the workspace's own files. Without a sandbox, more calls need approval."""
        call, spec = run.call, run.tool.spec
        trial = nesting.trial_above(run)
        confined = spec.has_processes and (await self._ready(spec)).namespaces
        decision = self._decide(
            PolicyQuery(
                spec,
                call.arguments,
                cwd=call.cwd,
                env=call.env,
                thread=call.thread,
                subagent=call.subagent,
                rights=call.rights,
                confined=confined,
                grants=call.grants,
                trial=call.trial or trial is not None,
                who=call.who,
                on_behalf=self._person_behind(call.principal),
            )
        )
        if decision.action == "delegate":
            decision = await self.ask_delegates(call, decision)
        if spec.effects.readonly or decision.action == "reject":
            decision = replace(decision, action="allow") if decision.action == "try" else decision
        elif call.trial or decision.action == "try" or nesting.wants_layer(run):
            decision = await self._as_trial(run, decision)
        elif trial is not None:
            decision = await self._as_part_of_trial(run, trial, decision)
        secrets = call.secrets | self._sandbox.granted_secrets(call.grants, decision.grants, spec.grants)
        if secrets:  # A remembered rule is stored unmasked, so rules with secrets in them are not offered.
            offered = tuple(one for one in decision.to_allow if secrets.masked(one.to_json()) == one.to_json())
            decision = replace(decision, to_allow=offered)
        # Most calls of a tool have equal decisions. One object for all of them is encoded only once.
        known = self._latest.get(spec.name)
        if known == decision:
            decision = known
        else:
            self._latest[spec.name] = decision
        run.revise(decision=decision, secrets=secrets)

    async def _ready(self, spec: ToolSpec) -> Abilities:
        if spec.commands:
            prepare_analysis()  # The sandbox's helper starts at the same time.
        return await self._sandbox.ready()

    async def ask_delegates(self, call: Call, decision: Decision) -> Decision:
        """The decision after all delegates have answered. Its action is the strictest of the answers; its other fields
        stay the same."""
        action: Action = decision.otherwise
        reason = f"{decision.delegates[0].to} allows it"
        for each in decision.delegates:
            answer, why = await self._ask_delegate(call, each)
            if answer == "reject":
                return replace(decision, action="reject", layer="delegate", by="delegate", reason=why, message=why)
            if _BY_STRICTNESS.index(answer) > _BY_STRICTNESS.index(action):
                action, reason = answer, why
        by = "delegate" if action == "allow" else "rule"
        return replace(decision, action=action, layer="delegate", by=by, reason=reason)

    async def _ask_delegate(self, call: Call, to: Delegation) -> tuple[Action, str]:
        program = os.path.expanduser(to.to)
        env = {"AGENT_TOOL_NAME": call.name, "AMP_THREAD_ID": call.thread, "AGENT_THREAD_ID": call.thread}
        readable = (os.path.abspath(program),) if os.sep in program else ()
        command = Command([program], env=env, stdin=json.dumps(dict(call.arguments)).encode(), readable=readable)
        stderr = _DelegateStderr(call.secrets.stream())
        try:
            async with asyncio.timeout(DELEGATE_SECONDS):
                end = await self._sandbox.launcher("read-only").run(command, stderr)
        except TimeoutError:
            return "reject", f"{to.to} did not answer within {DELEGATE_SECONDS:g} seconds"
        except (HaftError, OSError) as error:
            return "reject", f"{to.to} could not be run: {error}"
        message = " ".join(stderr.text.split())
        if end.code == 0:
            return "allow", f"{to.to} allows it"
        if end.code == 1:
            return "ask", f"{to.to} demands approval" + (f": {message}" if message else "")
        return "reject", message or f"{to.to} rejected it (exit {end.code})"

    async def _as_trial(self, run: Run, decision: Decision) -> Decision:
        """The decision for a trial run: the call runs, and a person decides about its changes afterwards. If a trial
        run is not possible, the call needs approval before it runs."""
        call, spec = run.call, run.tool.spec
        if (why_not := await self._grant_against_trial(run, decision)) is not None:
            what, remedy = why_not
            raise BadUsage(
                f"`{call.name}` cannot have a trial run with {what}: haft cannot undo its effects there",
                hint=f"call it without --try, or without {remedy}",
            )
        above = nesting.caller_with_layer(run)
        if above is not None and nesting.trial_above(run) is None:
            why: str | None = f"its changes are part of the changes of {above.id}, which calls it: use --try there"
        else:
            why = await self._engine_selector().why_no_trial(spec)
        if why is None:
            return self._tried(run, decision)
        if spec.trial_in_layer:
            raise BadUsage(
                f"`{call.name}` was not run: it would need a layer of its own, and cannot have one: {why}",
                hint="call it without a trial run or isolation: then the changes of its calls reach the workspace",
            )
        return replace(decision, action="ask", reason=f"{decision.reason}; a trial run is not possible: {why}")

    async def _as_part_of_trial(self, run: Run, trial: Run, decision: Decision) -> Decision:
        """The decision for a call that the trial run `trial` makes: a person sees its changes at the end of that trial
        run, so it needs no approval before. But a call with network needs approval, even if a rule allows it: it may
        run what an earlier call has written, and nobody has seen that."""
        if (why_not := await self._grant_against_trial(run, decision)) is not None:
            reason = f"{decision.reason}; it is a call of the trial run {trial.id}, and it has {why_not[0]}"
            return replace(decision, action="ask", reason=reason)
        if await self._engine_selector().why_no_trial(run.tool.spec) is not None:
            return decision
        return self._tried(run, decision)

    async def _grant_against_trial(self, run: Run, decision: Decision) -> tuple[str, str] | None:
        """A grant with which a call has effects that haft cannot undo, and the option that grants it; None if it has no
        such grant."""
        call = run.call
        grants = call.grants | decision.grants
        if grants.network:
            return "network", "--network"
        if grants.write and run.tool.spec.has_processes:
            writable = await self._sandbox.writable(grants)
            if any(not path.startswith(writable[0].rstrip("/") + "/") for path in writable[1:]):
                return "writes outside the workspace", "that --write"
        return None

    @staticmethod
    def _tried(run: Run, decision: Decision) -> Decision:
        # In a trial run, a person decides only after the run, so programs that nobody has approved must not run in it.
        is_open = decision.environment is not None or run.call.grants | decision.grants != NO_GRANTS
        return replace(decision, action="try", activated=None if is_open else decision.activated)


def files_run_by(spec: ToolSpec, arguments: Mapping[str, Any], cwd: str) -> set[str]:
    """The real paths of the files that a call runs as code, as far as haft can tell, and the links on the way to them.
    `cwd` is absolute."""
    given = arguments.get("cwd")
    cwd = os.path.join(cwd, given) if isinstance(given, str) else cwd
    lines = [arguments[name] for name in spec.commands if isinstance(arguments.get(name), str)]
    found = [path for line in lines for path in policy.files_run_by(line, cwd)]
    links = (link for path in found for link in policy.links_on_way(path))
    return {*links, *(os.path.realpath(path) for path in (*spec.files, *found))}


def _depends_on_files(run: Run, root: str) -> bool:
    """Whether the decision, or the preview that a person sees, may depend on the content of files in the workspace:
    those that the call runs, those of its environment, and those that a delegate or a preview reads."""
    spec, decision = run.tool.spec, run.decision
    if decision.action == "reject" or run.parent is not None:
        return False
    if decision.action == "ask" and spec.previews:
        return True
    if not spec.has_processes or decision.unasked:
        return False
    if spec.kind != "builtin" or decision.delegates or decision.activated or decision.environment:
        return True
    inside = root.rstrip("/") + "/"
    run_files = files_run_by(spec, run.call.arguments, os.path.join(root, run.call.cwd))
    return any(path.startswith(inside) for path in run_files)


class _DelegateStderr:
    """Collects the beginning of a delegate's stderr, with secrets masked."""

    def __init__(self, masked: MaskedStream) -> None:
        self._masked = masked
        self._data = b""

    @property
    def text(self) -> str:
        return (self._data + self._masked.end())[:MAX_DELEGATE_TEXT].decode("utf-8", "replace")

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr" and len(self._data) < MAX_DELEGATE_TEXT:
            self._data += self._masked.feed(data)

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...
