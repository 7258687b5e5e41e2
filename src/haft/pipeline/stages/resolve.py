"""A stage that changes a call: it finds the tool that the call names. If there is no such tool, the stage stops the
call and suggests a similar name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from haft.contracts import NO_SECRETS, Outcome, configured
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.registry import Catalogue
from haft.sandbox import Sandbox, with_parents

if TYPE_CHECKING:
    from haft.changes import EngineSelector


class Resolve:
    """Finds the tool by its name. If the tool is missing, or consists of files that may have changed since it was
    discovered, `renew` discovers it again."""

    def __init__(
        self,
        catalogue: Catalogue,
        renew: Callable[[str], Awaitable[None]] | None,
        sandbox: Sandbox,
        engine_selector: Callable[[], EngineSelector],
    ) -> None:
        self._engine_selector = engine_selector
        self._sandbox = sandbox
        self._catalogue = catalogue
        self._renew = renew

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if run.call.tool is None:  # Commands such as undo bring their own tool, which is not in the catalogue.
            await self.find(run)
        return await proceed(run)

    async def find(self, run: Run) -> None:
        """Find the tool, as it is now, and add it to the call. Raises `UnknownTool` if there is no such tool."""
        call = run.call
        if self._renew is not None:
            known = self._catalogue.peek(call.name)
            if known is None or (known.spec.hosting != "in-process" and known.spec.files):
                if run.parent is None:  # Otherwise its caller's view may be in the way.
                    await self._engine_selector().settled()  # Tools are discovered among the workspace's own files.
                await self._renew(call.name)
        tool = configured(self._catalogue.get(call.name, call.thread), call.config)
        spec = tool.spec
        if spec.has_processes:
            self._sandbox.begin()  # The sandbox starts while the call is validated and decided.
        found = with_parents(spec.files) if spec.hosting == "per-call" else ()
        run.revise(tool=tool, found=found, secrets=call.secrets | getattr(tool, "secrets", NO_SECRETS))
