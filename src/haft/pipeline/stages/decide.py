"""Changes the call: writes the decision on it. Stops nothing itself: `approve` acts on what stands here.

Where a rule leaves it to a program, that program is asked here, in the sandbox: exit 0 allows, 1 asks, anything else
rejects, and so do its failure and its delay.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

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
    Stream,
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
MOST_SAID: Final = 4_000
_STRICTER: Final[tuple[Action, ...]] = ("allow", "try", "ask", "reject")


class Decide:
    """May this happen?"""

    def __init__(
        self,
        decide: Callable[[PolicyQuery], Decision],
        sandbox: Sandbox,
        engine_selector: Callable[[], EngineSelector],
    ) -> None:
        self._decide = decide
        self._sandbox = sandbox
        self._engine_selector = engine_selector

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if run.call.decision is None:  # Else a person called it by its own name: undo and its like.
            await self.judge(run)
        return await proceed(run)

    async def judge(self, run: Run) -> None:
        """Write the decision on the call. What no sandbox holds to its word may need approval."""
        call, spec = run.call, run.tool.spec
        confined = spec.has_processes and (await self._ready(spec)).namespaces
        decision = self._decide(
            PolicyQuery(
                spec,
                call.arguments,
                cwd=call.cwd,
                env=call.env,
                thread=call.thread,
                subagent=call.subagent,
                confined=confined,
                grants=call.grants,
            )
        )
        if decision.action == "delegate":
            decision = await self.delegated(call, decision)
        if (call.trial or decision.action == "try") and not spec.effects.readonly and decision.action != "reject":
            decision = await self._tried(run, decision)
        elif decision.action == "try":
            decision = replace(decision, action="allow")
        secrets = call.secrets | self._sandbox.granted_secrets(call.grants, decision.grants, spec.grants)
        if secrets:  # A rule that is remembered is written down as it is.
            offered = tuple(one for one in decision.to_allow if secrets.masked(one.to_json()) == one.to_json())
            decision = replace(decision, to_allow=offered)
        run.revise(decision=decision, secrets=secrets)

    async def _ready(self, spec: ToolSpec) -> Abilities:
        if spec.commands:
            prepare_analysis()  # While the helper starts.
        return await self._sandbox.ready()

    async def delegated(self, call: Call, decision: Decision) -> Decision:
        """What the programs say that rules leave it to; the strictest counts, and what else was decided stays."""
        action: Action = decision.otherwise
        reason = f"{decision.delegates[0].to} allows it"
        for each in decision.delegates:
            said, why = await self._asked(call, each)
            if said == "reject":
                return replace(decision, action="reject", layer="delegate", by="delegate", reason=why, message=why)
            if _STRICTER.index(said) > _STRICTER.index(action):
                action, reason = said, why
        by = "delegate" if action == "allow" else "rule"
        return replace(decision, action=action, layer="delegate", by=by, reason=reason)  # type: ignore[arg-type]

    async def _asked(self, call: Call, to: Delegation) -> tuple[Action, str]:
        program = os.path.expanduser(to.to)
        env = {"AGENT_TOOL_NAME": call.name, "AMP_THREAD_ID": call.thread, "AGENT_THREAD_ID": call.thread}
        readable = (os.path.abspath(program),) if os.sep in program else ()
        command = Command([program], env=env, stdin=json.dumps(dict(call.arguments)).encode(), readable=readable)
        heard = _Heard(call.secrets.stream())
        try:
            async with asyncio.timeout(DELEGATE_SECONDS):
                end = await self._sandbox.launcher("read-only").run(command, heard)
        except TimeoutError:
            return "reject", f"{to.to} did not answer within {DELEGATE_SECONDS:g} seconds"
        except (HaftError, OSError) as error:
            return "reject", f"{to.to} cannot be asked: {error}"
        said = " ".join(heard.text.split())
        if end.code == 0:
            return "allow", f"{to.to} allows it"
        if end.code == 1:
            return "ask", f"{to.to} wants a person to be asked" + (f": {said}" if said else "")
        return "reject", said or f"{to.to} rejected it (exit {end.code})"

    async def _tried(self, run: Run, decision: Decision) -> Decision:
        """What can be tried is tried, and asks afterwards; what cannot asks before."""
        call, spec = run.call, run.tool.spec
        if call.grants.network or decision.grants.network:
            raise BadUsage(
                f"`{call.name}` cannot be tried with network: what it does there cannot be taken back",
                hint="call it without --try, or without --network",
            )
        grants = call.grants | decision.grants
        if grants.write and spec.has_processes:
            writable = await self._sandbox.writable(grants)
            if any(not path.startswith(writable[0].rstrip("/") + "/") for path in writable[1:]):
                raise BadUsage(
                    f"`{call.name}` cannot be tried with writing outside the workspace: that cannot be taken back",
                    hint="call it without --try, or without that --write",
                )
        above = nesting.layered(run)
        if above is not None:
            why_not: str | None = f"its changes are part of those of {above.id}, which calls it: try that one"
        else:
            why_not = await self._engine_selector().why_no_trial(spec)
        if why_not is None:
            # A person is asked afterwards, and programs that nobody has agreed to have run then.
            is_open = decision.environment is not None or grants != NO_GRANTS
            return replace(decision, action="try", activated=None if is_open else decision.activated)
        return replace(decision, action="ask", reason=f"{decision.reason}; it cannot be tried first: {why_not}")


class _Heard:
    """What a delegate writes to stderr, its beginning."""

    def __init__(self, masked: MaskedStream) -> None:
        self._masked = masked
        self._data = b""

    @property
    def text(self) -> str:
        return (self._data + self._masked.end())[:MOST_SAID].decode("utf-8", "replace")

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr" and len(self._data) < MOST_SAID:
            self._data += self._masked.feed(data)

    def ended(self, children: Sequence[EndedChild]) -> None: ...
