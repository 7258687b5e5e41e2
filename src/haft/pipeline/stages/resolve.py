"""Changes the call: finds the tool it names, or stops it with the name that was probably meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from haft.contracts import NO_SECRETS, Call, Outcome, RunId, configured, revised
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.registry import Catalogue


class Resolve:
    """From a name to a tool. What lies on disk may have changed since it was found: `renew` looks again, where a tool
    is not there or not what it was."""

    def __init__(
        self, live: Mapping[RunId, Run], catalogue: Catalogue, renew: Callable[[str], Awaitable[None]] | None
    ) -> None:
        self._live = live
        self._catalogue = catalogue
        self._renew = renew

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        if call.tool is None:  # Undo and its like bring their own: nobody can name them.
            if self._renew is not None:
                tool = self._catalogue.peek(call.name)
                if tool is None or (tool.spec.hosting != "in-process" and tool.spec.files):
                    await self._renew(call.name)
            tool = configured(self._catalogue.get(call.name, call.thread), call.config)
            call = revised(call, tool=tool, secrets=call.secrets | getattr(tool, "secrets", NO_SECRETS))
            self._live[call.run].call = call
        return await proceed(call)
