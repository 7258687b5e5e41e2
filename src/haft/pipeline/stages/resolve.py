"""Changes the call: finds the tool it names, or stops it with the name that was probably meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from haft.contracts import NO_SECRETS, Outcome, configured
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.registry import Catalogue

Identify = Callable[[Sequence[str]], tuple[tuple[str, int, int], ...]]
"""Tells which files these are, so that others in their place are noticed."""


class Resolve:
    """From a name to a tool. What lies on disk may have changed since it was found: `renew` looks again, where a tool
    is not there or not what it was."""

    def __init__(
        self, catalogue: Catalogue, renew: Callable[[str], Awaitable[None]] | None, identify: Identify
    ) -> None:
        self._identify = identify
        self._catalogue = catalogue
        self._renew = renew

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        call = run.call
        if call.tool is None:  # Undo and its like bring their own: nobody can name them.
            if self._renew is not None:
                tool = self._catalogue.peek(call.name)
                if tool is None or (tool.spec.hosting != "in-process" and tool.spec.files):
                    await self._renew(call.name)
            tool = configured(self._catalogue.get(call.name, call.thread), call.config)
            found = self._identify(tool.spec.files) if tool.spec.hosting == "per-call" else ()
            run.revise(tool=tool, found=found, secrets=call.secrets | getattr(tool, "secrets", NO_SECRETS))
        return await proceed(run)
