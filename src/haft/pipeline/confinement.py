"""Resolves the confinement of a call once, so that the person sees exactly the value that the sandbox enforces and the
outcome reports.

The confinement is resolved again only if the decision or the grants have changed, because a person may approve with
more grants. In that case, every path that was granted before must still be the file that the person saw.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from haft.contracts import (
    NO_GRANTS,
    Call,
    Confinement,
    Conflict,
    Grants,
    Hosting,
    Limits,
    evolve,
    limits_within,
    restricted_holder,
)
from haft.pipeline.run import Run
from haft.sandbox import Sandbox


class Confinements:
    """Resolves the confinements of a host's calls."""

    def __init__(
        self,
        sandbox: Sandbox,
        may_ask: Callable[[Run], Awaitable[bool]],
        limits: Limits,
        *,
        is_shared: bool = False,
    ) -> None:
        """`may_ask` says whether a person is asked about connections of a run to hosts that were not granted. `limits`
        are those of the host. `is_shared`: several people use the workspace, so the `/tmp` of a thread belongs to one
        caller."""
        self._is_shared = is_shared
        self._limits = limits
        self._sandbox = sandbox
        self._may_ask = may_ask
        self._of_sessions: dict[str, Confinement] = {}
        """The latest confinement of each session tool, by the name of the tool."""

    def _scratch_of(self, call: Call) -> str | None:
        thread = thread_of(call)
        return thread if thread is None or not self._is_shared else scratch_name(call, thread)

    async def of(self, run: Run) -> Confinement:
        """The confinement of a call's processes. Raises `Conflict` if a granted path was replaced since a person saw
        it."""
        spec, decision = run.tool.spec, run.decision
        if spec.hosting == "session":
            basis: Any = spec.grants | grants_of(run.call) if needs_own_process(run) else spec.grants
        else:
            thread = None if spec.hosting == "in-process" else self._scratch_of(run.call)
            basis = (
                decision.profile, grants_of(run.call), decision.neutral, decision.unasked, decision.activated, thread,
                await self._may_ask(run),
            )  # fmt: skip
        before = run.resolved_confinement
        if before is not None and before[0] == basis:
            return before[1]
        if spec.hosting == "session":
            confinement = await self._sandbox.confine_session(basis)
            confinement = evolve(
                confinement, entry=spec.grants_entry or confinement.entry, keeps_state=spec.keeps_state
            )
            # Calls of a session mostly have equal confinements. One object for all of them is encoded only once.
            known = self._of_sessions.get(spec.name)
            if known == confinement:
                confinement = known
            else:
                self._of_sessions[spec.name] = confinement
        else:
            profile, grants, neutral, unasked, activated, thread, asks = basis
            confinement = await self._sandbox.confine(
                profile,
                grants,
                neutral=neutral,
                unasked=unasked,
                activated=activated,
                thread=thread,
                found=run.call.found,
                asks=asks,
            )
            if run.call.rights or run.call.subagent:
                limits = limits_within(self._limits, run.call.rights)
                lower = None if limits is self._limits else limits
                holder = restricted_holder(run.call.rights)
                confinement = evolve(confinement, subagent=run.call.subagent, limits=lower, ungrantable=holder)
        if before is not None and not set(before[1].identities) <= set(confinement.identities):
            raise Conflict(
                f"`{run.call.name}` was not run: a granted path was deleted or replaced after the approval",
                hint="check the granted paths, and call again",
            )
        run.resolved_confinement = basis, confinement
        return confinement


def needs_own_process(run: Run) -> bool:
    """Whether a call of a session tool (a tool whose process outlives its calls) gets a process of its own. It does if
    the call has grants and the tool keeps no state."""
    spec = run.tool.spec
    return spec.hosting == "session" and not spec.keeps_state and grants_of(run.call) != NO_GRANTS


def hosting_of(run: Run) -> Hosting:
    """Where the work of this call is done: in the host, in processes that end with the call, in a session process, or
    outside of haft's control."""
    hosting = run.tool.spec.hosting
    return "per-call" if hosting == "session" and needs_own_process(run) else hosting


def thread_of(call: Call) -> str | None:
    """The thread whose `/tmp` a call may see; None for a trial run, which nobody has approved yet."""
    return None if call.decision is None or call.decision.action == "try" else call.thread


def scratch_name(call: Call, thread: str) -> str:
    """The name under which a thread keeps its `/tmp`, if several people use the workspace: another caller who names
    the same thread gets another `/tmp`."""
    return json.dumps([call.principal.kind, call.who, thread])


def grants_of(call: Call) -> Grants:
    """All grants of a call: those requested with the call, and those that the decision added."""
    return call.grants | (call.decision.grants if call.decision is not None else NO_GRANTS)
