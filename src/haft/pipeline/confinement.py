"""What confines a call, resolved once: a person is shown, the helper mounts, and the outcome tells one and the same.

It is resolved again only where the decision or the grants are others than before: a person may answer with more. What
was shown then must still be what lies there.
"""

from __future__ import annotations

from typing import Any

from haft.contracts import NO_GRANTS, Call, Confinement, Conflict, Grants, Hosting
from haft.pipeline.run import Run
from haft.sandbox import Sandbox


class Confinements:
    """Of all calls of a host."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def of(self, run: Run) -> Confinement:
        """What confines the processes of a call. `Conflict` where what was granted was replaced since it was shown."""
        spec, decision = run.tool.spec, run.decision
        if spec.hosting == "session":
            basis: Any = spec.grants | granted(run.call) if is_alone(run) else spec.grants
        else:
            thread = None if spec.hosting == "in-process" else thread_of(run.call)
            basis = (
                decision.profile, granted(run.call), decision.neutral, decision.unasked, decision.activated, thread
            )  # fmt: skip
        before = run.confined
        if before is not None and before[0] == basis:
            return before[1]
        if spec.hosting == "session":
            confinement = await self._sandbox.confine_session(basis)
        else:
            profile, grants, neutral, unasked, activated, thread = basis
            confinement = await self._sandbox.confine(
                profile,
                grants,
                neutral=neutral,
                unasked=unasked,
                activated=activated,
                thread=thread,
                found=run.call.found,
            )
        if before is not None and not set(before[1].identities) <= set(confinement.identities):
            raise Conflict(
                f"`{run.call.name}` was not run: what was granted is not there any more, or something else is in its"
                " place",
                hint="look at it, and call again",
            )
        run.confined = basis, confinement
        return confinement


def is_alone(run: Run) -> bool:
    """Whether a call of a program that outlives its calls is answered by one that is started for it: it was granted
    something, and the program keeps no state."""
    spec = run.tool.spec
    return spec.hosting == "session" and not spec.keeps_state and granted(run.call) != NO_GRANTS


def hosting_of(run: Run) -> Hosting:
    """Where the work of a call is done."""
    hosting = run.tool.spec.hosting
    return "per-call" if hosting == "session" and is_alone(run) else hosting


def thread_of(call: Call) -> str | None:
    """The thread whose `/tmp` a call may see; None where it was not approved yet, and only tried."""
    return None if call.decision is None or call.decision.action == "try" else call.thread


def granted(call: Call) -> Grants:
    """What opens the sandbox for a call: what the caller brought, and what was decided."""
    return call.grants | (call.decision.grants if call.decision is not None else NO_GRANTS)
