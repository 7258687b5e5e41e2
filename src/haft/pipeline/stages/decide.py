"""Changes the call: writes the decision on it. Stops nothing itself: `approve` acts on what stands here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from haft.contracts import Call, Decision, Outcome, RunId, ToolSpec, revised
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run


class Decide:
    """May this happen?"""

    def __init__(self, live: Mapping[RunId, Run], decide: Callable[[ToolSpec], Decision]) -> None:
        self._live = live
        self._decide = decide

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        return await proceed(self.judge(call))

    def judge(self, call: Call) -> Call:
        """The call with its decision."""
        assert call.tool is not None
        call = revised(call, decision=self._decide(call.tool.spec))
        self._live[call.run].call = call
        return call
