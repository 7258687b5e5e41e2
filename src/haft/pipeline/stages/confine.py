"""Changes and watches: puts walls around what the call starts, and says so when it ran into one.

The decision says which profile and what is granted; the sandbox knows what this machine can build. What runs in the
host's own process has no walls, and its run says so; the commands that it starts have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from haft.contracts import NO_GRANTS, BadUsage, Call, Conflict, Grants, LimitsApplied, Outcome, RunId, revised
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.sandbox import IN_PROCESS, Sandbox


class Confine:
    """Next to the tool: nothing comes between the walls and what they hold."""

    def __init__(self, live: Mapping[RunId, Run], sandbox: Sandbox) -> None:
        self._live = live
        self._sandbox = sandbox

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        tool, decision = call.tool, call.decision
        assert tool is not None
        assert decision is not None
        if tool.spec.hosting == "in-process":
            call = revised(call, walls=IN_PROCESS)
            self._live[call.run].call = call
            return await proceed(call)
        if tool.spec.hosting == "session":
            return await proceed(await self._in_session(call))
        walls = await self._sandbox.confine(
            decision.profile, granted(call), neutral=decision.neutral, unasked=decision.unasked
        )
        if call.walls is not None and not set(call.walls.identities) <= set(walls.identities):
            raise Conflict(
                f"`{call.name}` was not run: what was granted is not there any more, or something else is in its place",
                hint="look at it, and call again",
            )
        call = revised(call, walls=walls)
        self._live[call.run].call = call
        outcome = await proceed(call)
        error = outcome.error
        if (
            error is not None
            and error.code == "timed-out"
            and (more := self._sandbox.without_network(outcome.output, walls))
        ):
            return revised(outcome, error=replace(error, hint=f"{error.hint}; {more}"))
        if error is None or error.code != "tool-failed":
            return outcome
        found = self._sandbox.explain(f"{outcome.output}\n{outcome.stderr}", walls)
        if found is None:
            return outcome
        hit = getattr(found, "limit", None)
        limits = LimitsApplied(outcome.limits.applied, hit, outcome.limits.enforced) if hit else outcome.limits
        return revised(outcome, error=found.failure(), limits=limits)

    async def _in_session(self, call: Call) -> Call:
        """Its process has stood behind its walls since before the call, and none of them can be opened for one."""
        if granted(call) != NO_GRANTS:
            raise BadUsage(
                f"nothing can be granted to a single call of `{call.name}`: its process outlives its calls",
                hint="call it without --network and --write",
            )
        call = revised(call, walls=await self._sandbox.confine("workspace"))
        self._live[call.run].call = call
        return call


def granted(call: Call) -> Grants:
    """What opens walls for a call: what the caller brought, and what was decided."""
    return call.grants | (call.decision.grants if call.decision is not None else NO_GRANTS)
