"""A stage that may stop a call: if a tool's environment needs a package that must be built, a person must approve the
build, because it runs code of the package's authors.

The stage lies outside the queue, so that the call holds no place while a person thinks. haft does not know that a
package must be built until it makes the environment. So the stage first runs the remaining stages, and runs them once
more after an approval.
"""

from __future__ import annotations

import asyncio
from typing import Any

from haft.contracts import PACKAGE_INDEXES, NeedsBuild, Outcome, Rejected
from haft.pipeline.approval_broker import ApprovalBroker, approval_request
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.sandbox import Sandbox
from haft.values import replace


class ApproveBuild:
    """When a tool's `prepare` raises `NeedsBuild`, asks a person for approval, and passes the approval to the tool's
    `allow_build`. The approval holds only for the requirements that the person saw: if the file with the requirements
    has changed meanwhile, nothing is built."""

    def __init__(self, broker: ApprovalBroker, sandbox: Sandbox) -> None:
        self._broker = broker
        self._sandbox = sandbox

    @staticmethod
    def skips(run: Run) -> bool:
        """Whether the tool needs no preparation."""
        return not run.tool.spec.prepares

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        try:
            return await proceed(run)
        except NeedsBuild as needed:
            if not await self._broker.can_ask(run):
                raise
            await self._ask(run, needed)
        return await proceed(run)

    async def _ask(self, run: Run, needed: NeedsBuild) -> None:
        packages = ", ".join(f"`{package}`" for package in needed.packages)
        confinement = await self._sandbox.confine("read-only", unasked=True, closed=True)
        # A build fetches packages, even if calls have no network.
        if await self._sandbox.no_network_by_host() is None:
            network, hosts = await self._sandbox.hosts.resolve((PACKAGE_INDEXES, *self._sandbox.hosts.granted))
            confinement = replace(confinement, network=network, hosts=hosts)
            in_sandbox = "in a sandbox that reaches only the listed hosts, and none of your files"
        else:
            confinement = replace(confinement, network=True)
            in_sandbox = "in a sandbox with the network and none of your files"
        where = in_sandbox if confinement.layers else "without a sandbox"
        reason = (
            f"its environment needs {packages}, which has no wheel for this Python. Building it, and all that it "
            f"requires without a wheel, runs code of its authors: {where}"
        )
        request = approval_request(run, confinement, reason)
        request = replace(request, to_allow=(), parts=(), pin=needed.requirements, build=needed.command)
        run.set_status("blocked-on-user")
        given = await self._broker.ask(run, request)
        if given.answer.approved is not True:
            reason = given.answer.message or "a person rejected it"
            raise Rejected(f"`{run.call.name}` was not called: building {packages} was not approved: {reason}")
        builder: Any = run.tool
        await asyncio.to_thread(builder.allow_build, needed.requirements)
