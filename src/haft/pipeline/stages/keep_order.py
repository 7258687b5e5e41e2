"""A stage that may stop a call: a call of a batch waits here until each earlier call of its batch that it depends on
has ended. If a call that its `after` names did not succeed, the call ends here.

If calls of the batch have changed files while this call waited, haft looks up the tool, validates the arguments,
decides and makes the preview once more, as if the call were made now. If that differs from what a person approved, or
the call would run a file that has changed, the person is asked again, about this call alone. Not found: files that a
program runs although neither its command line nor its code names them, such as the tests that a test runner collects.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from haft.contracts import Conflict, Decision, Outcome, Workspace, evolve
from haft.pipeline.batch import HINT, Batch
from haft.pipeline.chain import Proceed
from haft.pipeline.run import ApprovedCall, Run
from haft.pipeline.stages.approve import Approve
from haft.pipeline.stages.decide import Decide, files_run_by
from haft.pipeline.stages.resolve import Resolve
from haft.pipeline.stages.validate import Validate
from haft.values import replace

_NOT_COMPARED: Final = ("reason", "batch", "chain", "chainTools")
"""Parts of what a person sees that do not change what the call does."""
_PARTS: Final = {
    "description": "its tool",
    "pin": "the definition or a file of its tool",
    "definitionDiff": "the definition or a file of its tool",
    "arguments": "the arguments that its tool makes of those given",
    "preview": "what its tool says that it would do",
    "sandbox": "its sandbox",
    "withheld": "the variables that its tool uses",
}


class KeepOrder:
    """Keeps the order of the calls of a batch."""

    def __init__(
        self, resolve: Resolve, validate: Validate, decide: Decide, approve: Approve, workspace: Workspace
    ) -> None:
        self._resolve = resolve
        self._validate = validate
        self._decide = decide
        self._approve = approve
        self._workspace = workspace

    @staticmethod
    def skips(run: Run) -> bool:
        """Whether the run is not one of a batch."""
        return run.batch is None or run not in run.batch

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        batch = run.batch
        assert batch is not None
        member = batch.member(run)
        member.has_arrived = True
        await batch.learn(run)
        await batch.wait_for_turn(run)
        while member.seen != batch.commits:
            await self._renew(run, batch)
            await batch.learn(run)
            await batch.wait_for_turn(run)
        outcome = await proceed(run)
        why = batch.check_end(run)
        if why is None or outcome.status == "cancelled":
            return outcome
        failure = Conflict(f"`{run.call.name}` is in conflict with its batch: {why}", hint=HINT).failure()
        return evolve(outcome, status="error", error=failure)

    async def _renew(self, run: Run, batch: Batch) -> None:
        """Make the call again as it is now, and ask about it again if a person approved something else."""
        member = batch.member(run)
        changed, member.seen = batch.committed_since(member.seen), batch.commits
        approved = run.approved
        asked = run.call if approved is None else approved.call
        now = run.draft(tool=None, decision=None, preview=None, confinement=None, grants=asked.grants)
        await self._resolve.find(now)
        await self._validate.check(now)
        await self._decide.decide(now)
        facts = {"tool": now.tool, "found": now.call.found, "arguments": now.call.arguments}
        if approved is not None and now.decision.action in ("ask", "allow"):
            why = await self._difference(approved, now, changed)
            if why is None:
                decision = _still_approved(run.decision, now.decision)
                run.revise(**facts, secrets=run.call.secrets | now.call.secrets, decision=decision)
                return
            now.revise(decision=_ask_again(now.decision))
            again = f"an earlier call of its batch has changed {why} since it was approved"
        else:
            again = None
        run.approved, run.resolved_confinement = None, None
        run.revise(
            **facts,
            secrets=run.call.secrets | now.call.secrets,
            decision=now.decision,
            grants=asked.grants,
            preview=None,
            confinement=None,
        )
        await self._approve.check(run, again)

    async def _difference(self, approved: ApprovedCall, now: Run, changed: tuple[str, ...]) -> str | None:
        """What differs from the call that a person approved; None if nothing does."""
        if now.call.found != approved.call.found:
            return _PARTS["pin"]
        shown = await self._approve.shown_of(now)
        asks = now.decision.action == "ask"
        for name, value in approved.shown.items():
            compared = name not in _NOT_COMPARED if asks else name in ("arguments", "pin", "preview")
            if compared and shown.get(name) != value:
                return _PARTS.get(name, "how it is decided")
        root = self._workspace.root
        here = os.path.join(root, now.call.cwd)
        executed = await asyncio.to_thread(files_run_by, now.tool.spec, now.call.arguments, here)
        for path in changed:
            directory, name = os.path.split(os.path.join(root, path))
            if os.path.join(os.path.realpath(directory), name) in executed:
                return f"{path}, which it runs"
        return None


def _still_approved(approved: Decision, now: Decision) -> Decision:
    """The decision about a call that a person approved, if nothing that the person saw has changed."""
    return approved if now.action == "ask" else replace(now, by=approved.by, reason=approved.reason)


def _ask_again(now: Decision) -> Decision:
    return now if now.action == "ask" else replace(now, action="ask")
