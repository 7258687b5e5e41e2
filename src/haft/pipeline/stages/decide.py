"""Changes the call: writes the decision on it. Stops nothing itself: `approve` acts on what stands here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from haft.changes import Coverage
from haft.contracts import BadUsage, Call, Decision, Outcome, RunId, ToolSpec, revised
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.sandbox import Sandbox


class Decide:
    """May this happen?"""

    def __init__(
        self,
        live: Mapping[RunId, Run],
        decide: Callable[[ToolSpec, bool], Decision],
        sandbox: Sandbox,
        coverage: Coverage,
    ) -> None:
        self._live = live
        self._decide = decide
        self._sandbox = sandbox
        self._coverage = coverage

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        if call.decision is not None:
            return await proceed(call)  # A person called it by its own name: undo and its like.
        return await proceed(await self.judge(call))

    async def judge(self, call: Call) -> Call:
        """The call with its decision. What nothing holds to its word may have to ask, so the walls are looked at."""
        assert call.tool is not None
        spec = call.tool.spec
        confined = spec.hosting != "in-process" and (await self._sandbox.ready()).namespaces
        decision = self._decide(spec, confined)
        if (call.trial or decision.action == "try") and not spec.effects.readonly and decision.action != "reject":
            decision = await self._tried(call, decision)
        call = revised(call, decision=decision)
        self._live[call.run].call = call
        return call

    async def _tried(self, call: Call, decision: Decision) -> Decision:
        """What can be tried is tried, and asks afterwards; what cannot asks before."""
        assert call.tool is not None
        if call.grants.network or decision.grants.network:
            raise BadUsage(
                f"`{call.name}` cannot be tried with network: what it does there cannot be taken back",
                hint="call it without --try, or without --network",
            )
        grants = call.grants | decision.grants
        if grants.write and call.tool.spec.hosting != "in-process":
            walls = await self._sandbox.confine("workspace", grants)
            inside = walls.writable[0].rstrip("/") + "/" if walls.writable else "/"
            if any(not path.startswith(inside) for path in walls.writable[1:]):
                raise BadUsage(
                    f"`{call.name}` cannot be tried with writing outside the workspace: that cannot be taken back",
                    hint="call it without --try, or without that --write",
                )
        why_not = await self._coverage.can_try(call.tool.spec)
        if why_not is None:
            return replace(decision, action="try")
        return replace(decision, action="ask", reason=f"{decision.reason}; it cannot be tried first: {why_not}")
