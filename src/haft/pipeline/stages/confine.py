"""Changes and watches: puts a sandbox around what the call starts, and says so when that denied it something.

The decision says which profile and what is granted; the sandbox knows what this machine can build. What runs in the
host's own process has no sandbox, and its run says so; the commands that it starts have.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from haft.contracts import (
    NO_GRANTS,
    BadUsage,
    Confinement,
    LimitsApplied,
    Outcome,
    RenamedTool,
    evolve,
)
from haft.pipeline.chain import Proceed
from haft.pipeline.confinement import Confinements, granted, is_alone
from haft.pipeline.run import Run
from haft.policy import may_use_environment
from haft.sandbox import IN_PROCESS, REMOTE, Sandbox
from haft.values import replace


class Confine:
    """Next to the tool: nothing comes between the sandbox and what it holds."""

    def __init__(self, sandbox: Sandbox, confinements: Confinements) -> None:
        self._sandbox = sandbox
        self._confinements = confinements

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        hosting = run.tool.spec.hosting
        if hosting == "in-process":
            run.revise(confinement=IN_PROCESS)
            return await proceed(run)
        if hosting == "remote":
            if granted(run.call) != NO_GRANTS:
                raise BadUsage(
                    f"nothing can be granted to `{run.call.name}`: nothing of it runs here", hint="call it without"
                )
            run.revise(confinement=REMOTE)
            return await proceed(run)
        if hosting == "session":
            return await self._in_session(run, proceed)
        with self._sandbox.scratch_for(await self._confinements.of(run)) as confinement:
            run.revise(confinement=confinement)
            return await self._behind(confinement, run, proceed)

    async def _behind(self, confinement: Confinement, run: Run, proceed: Proceed) -> Outcome:
        may_find = not run.decision.unasked and may_use_environment(run.tool.spec)
        if confinement.activated is None and may_find and (place := self._sandbox.activated) is not None:
            run.add_note(f"the activated environment {place} was not on PATH: {_why_not(run)}")
        outcome = await proceed(run)
        if missed := self._sandbox.missed_scratch(run.call.thread, f"{outcome.output}\n{outcome.stderr}", confinement):
            run.add_note(missed)
        error = outcome.error
        if (
            error is not None
            and error.code == "timed-out"
            and (more := self._sandbox.without_network(outcome.output, confinement))
        ):
            return evolve(outcome, error=replace(error, hint=f"{error.hint}; {more}"))
        return self._explained(run, outcome, f"{outcome.output}\n{outcome.stderr}", confinement)

    def _explained(self, run: Run, outcome: Outcome, said: str, confinement: Confinement) -> Outcome:
        """An outcome that says so where the sandbox or a limit was in the way."""
        failed = outcome.error is not None
        if outcome.error is not None and outcome.error.code != "tool-failed":
            return outcome
        found = self._sandbox.explain(run.call, said, confinement, outcome.exit_code) if failed else None
        for note in self._sandbox.notes(run.call, said, confinement, failed=failed, explained=found is not None):
            run.add_note(note)
        if found is None:
            return outcome
        hit = getattr(found, "limit", None)
        limits = LimitsApplied(outcome.limits.applied, hit, outcome.limits.enforced) if hit else outcome.limits
        return evolve(outcome, error=found.failure(), limits=limits)

    async def _in_session(self, run: Run, proceed: Proceed) -> Outcome:
        """Its process has been in its sandbox since before the call: that cannot be opened for one call."""
        if is_alone(run):
            alone: Any = run.tool
            run.revise(tool=RenamedTool(run.tool.spec, alone.alone()))
        elif granted(run.call) != NO_GRANTS:
            raise BadUsage(
                f"nothing can be granted to a single call of `{run.call.name}`: its process outlives its calls, and"
                " keeps a state",
                hint=_remedy(run, self._sandbox.site.workspace),
            )
        confinement = await self._confinements.of(run)
        run.revise(confinement=confinement)
        outcome = await proceed(run)
        # What its code raised is not part of what it wrote.
        raised = "" if outcome.error is None else outcome.error.message
        return self._explained(run, outcome, f"{outcome.output}\n{outcome.stderr}\n{raised}", confinement)


def _remedy(run: Run, root: str) -> str:
    """What to write into the configuration for a process to have what a call was granted. Its `/tmp` is its own."""
    wanted = replace(granted(run.call), scratch=False)
    if wanted == NO_GRANTS:
        return "call it without"
    wanted = run.tool.spec.grants | replace(
        wanted, read=_relative(wanted.read, root), write=_relative(wanted.write, root)
    )
    table = {name: value for name, value in wanted.to_json().items() if value}
    inner = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items())
    plugin = json.dumps(run.tool.spec.meta.get("plugin", {}).get("reference", "…"), ensure_ascii=False)
    return f"call it without, or let its process have it: `{{plugin = {plugin}, grant = {{{inner}}}}}` in `plugins`"


def _relative(paths: Iterable[str], root: str) -> tuple[str, ...]:
    """Paths of the workspace as a configuration has them."""
    return tuple(os.path.relpath(path, root) if f"{path}/".startswith(f"{root}/") else path for path in paths)


def _why_not(run: Run) -> str:
    """Why a call did not find the activated environment."""
    asks = "a call that names one of them asks"
    if run.decision.action == "try":
        return "the call was tried before anyone approved it"
    if run.decision.by == "person":
        return "its files cannot be looked at, or a link there leads to where calls find files of their own"
    if granted(run.call) != NO_GRANTS:
        return f"a rule allowed the call, and gives it more than the programs there may have; {asks}"
    return f"a rule allowed the call, and nobody has agreed to the programs there as they are; {asks}"
