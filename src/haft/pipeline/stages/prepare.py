"""Watches: what a tool needs besides, an environment mostly, is made before its clock runs and its changes count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from haft.contracts import Call, Outcome, RunId
from haft.pipeline.chain import Proceed
from haft.pipeline.context import CallContext
from haft.pipeline.run import Run


class Prepare:
    """For tools that say `prepares`."""

    def __init__(self, live: Mapping[RunId, Run], context: Callable[[Run], CallContext]) -> None:
        self._live = live
        self._context = context

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        tool: Any = call.tool
        if tool.spec.prepares:
            context = self._context(self._live[call.run])
            await tool.prepare(context.progress)
        return await proceed(call)
