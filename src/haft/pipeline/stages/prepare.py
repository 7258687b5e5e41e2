"""A stage that watches a call: it lets the tool make what its calls need, mostly a Python environment, before the
deadline and the transaction start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haft.contracts import Outcome
from haft.pipeline.chain import Proceed
from haft.pipeline.context import CallContext
from haft.pipeline.run import Run


class Prepare:
    """Runs the tool's `prepare`, for tools whose spec has `prepares`."""

    def __init__(self, context: Callable[[Run], CallContext]) -> None:
        self._context = context

    @staticmethod
    def skips(run: Run) -> bool:
        return not run.tool.spec.prepares

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        tool: Any = run.tool
        await tool.prepare(self._context(run).progress)
        return await proceed(run)
