"""Stops: where an environment needs a package that must be built, a person is asked before its authors' code runs.

It stands outside of the queue, since no place is held while a person thinks. Only making the environment shows that
something must be built, so the rest of the way is tried first, and taken again after a yes.
"""

from __future__ import annotations

import asyncio
from typing import Any

from haft.contracts import Grants, NeedsBuild, Outcome, Rejected
from haft.pipeline.approval_broker import ApprovalBroker, request_of
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.sandbox import Sandbox
from haft.values import replace


class ApproveBuild:
    """For tools whose `prepare` raises `NeedsBuild`: they have `allow_build`. The yes holds for the requirements that
    were asked about: where the file says something else by then, that is not built."""

    def __init__(self, broker: ApprovalBroker, sandbox: Sandbox) -> None:
        self._broker = broker
        self._sandbox = sandbox

    @staticmethod
    def passes(run: Run) -> bool:
        """Whether nothing is made for the call."""
        return not run.tool.spec.prepares

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        try:
            return await proceed(run)
        except NeedsBuild as needed:
            if not await self._broker.has_someone():
                raise
            await self._ask(run, needed)
        return await proceed(run)

    async def _ask(self, run: Run, needed: NeedsBuild) -> None:
        packages = ", ".join(f"`{package}`" for package in needed.packages)
        confinement = await self._sandbox.confine("read-only", Grants(network=True), unasked=True, closed=True)
        confinement = replace(confinement, network=True)  # Whatever calls may: packages are fetched.
        where = "in a sandbox with the network and none of your files"
        reason = (
            f"its environment needs {packages}, which has no wheel for this Python. Building it, and whatever else it "
            f"requires that has none, runs code of its authors: {where if confinement.layers else 'without a sandbox'}"
        )
        request = request_of(run, confinement, reason)
        request = replace(request, to_allow=(), parts=(), pin=needed.requirements, build=needed.command)
        run.turn("blocked-on-user")
        given = await self._broker.ask(run, request)
        if given.answer.approved is not True:
            said = given.answer.message or "a person said no"
            raise Rejected(f"`{run.call.name}` was not called: building {packages} was not approved: {said}")
        builder: Any = run.tool
        await asyncio.to_thread(builder.allow_build, needed.requirements)
