"""Changes the call: writes the decision on it. Stops nothing itself: `approve` acts on what stands here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from haft.contracts import Call, Decision, Outcome, RunId, ToolSpec, revised
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.sandbox import Sandbox


class Decide:
    """May this happen?"""

    def __init__(
        self, live: Mapping[RunId, Run], decide: Callable[[ToolSpec, bool], Decision], sandbox: Sandbox
    ) -> None:
        self._live = live
        self._decide = decide
        self._sandbox = sandbox

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        return await proceed(await self.judge(call))

    async def judge(self, call: Call) -> Call:
        """The call with its decision. What nothing holds to its word may have to ask, so the walls are looked at."""
        assert call.tool is not None
        spec = call.tool.spec
        confined = spec.hosting != "in-process" and (await self._sandbox.ready()).namespaces
        call = revised(call, decision=self._decide(spec, confined))
        self._live[call.run].call = call
        return call
