"""A stage that changes and watches a call: it puts a sandbox around the processes of the call. If the sandbox denied an
action, the error says so.

The profile and the grants come from the decision; the sandbox knows what this machine supports. An in-process tool has
no sandbox, and its outcome says so; the commands that the tool starts have a sandbox.
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
    HaftError,
    LimitsApplied,
    Outcome,
    RenamedTool,
    SandboxDenied,
    evolve,
)
from haft.pipeline.chain import Proceed
from haft.pipeline.confinement import Confinements, grants_of, needs_own_process
from haft.pipeline.run import Run
from haft.policy import may_use_environment
from haft.sandbox import IN_PROCESS, REMOTE, Sandbox
from haft.values import replace


class Confine:
    """Sets the confinement of a call, and explains failures that the sandbox caused."""

    def __init__(self, sandbox: Sandbox, confinements: Confinements) -> None:
        self._sandbox = sandbox
        self._confinements = confinements

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        hosting = run.tool.spec.hosting
        if hosting == "in-process":
            run.revise(confinement=IN_PROCESS)
            return await proceed(run)
        if hosting == "remote":
            if grants_of(run.call) != NO_GRANTS:
                raise BadUsage(
                    f"`{run.call.name}` cannot get grants: it runs elsewhere",
                    hint="call it without grants",
                )
            run.revise(confinement=REMOTE)
            return await proceed(run)
        if hosting == "session":
            return await self._in_session(run, proceed)
        with self._sandbox.scratch_for(await self._confinements.of(run)) as confinement:
            run.revise(confinement=confinement)
            return await self._run_confined(confinement, run, proceed)

    async def _run_confined(self, confinement: Confinement, run: Run, proceed: Proceed) -> Outcome:
        may_find = not run.decision.unasked and may_use_environment(run.tool.spec)
        if confinement.activated is None and may_find and (place := self._sandbox.activated) is not None:
            run.add_note(f"the activated environment {place} was not on PATH: {_why_not_activated(run)}")
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
        return self._explain_denial(run, outcome, f"{outcome.output}\n{outcome.stderr}", confinement)

    def _explain_denial(self, run: Run, outcome: Outcome, text: str, confinement: Confinement) -> Outcome:
        """The outcome. If the sandbox or a limit made the tool fail, the error in the returned outcome says so."""
        failed = outcome.error is not None
        if outcome.error is not None and outcome.error.code != "tool-failed":
            return outcome
        found = self._sandbox.explain(run.call, text, confinement, outcome.exit_code) if failed else None
        if found is None and outcome.error is not None and run.connections is not None:
            found = run.connections.error(
                outcome.error.message, lambda grant: self._sandbox.how_to_connect(grant, confinement)
            )
        for note in self._sandbox.notes(run.call, text, confinement, failed=failed, explained=found is not None):
            run.add_note(note)
        log, run.program_log = run.program_log, None
        if found is None and log is not None:
            found = self._sandbox.explain_by_log(run.call, log.text, confinement)
            if found is not None and log.is_shared:
                return _perhaps_denied(outcome, found)
        if found is None:
            return outcome
        hit = getattr(found, "limit", None)
        limits = LimitsApplied(outcome.limits.applied, hit, outcome.limits.enforced) if hit else outcome.limits
        return evolve(outcome, error=found.failure(), limits=limits)

    async def _in_session(self, run: Run, proceed: Proceed) -> Outcome:
        """Run a call of a session tool, whose one process handles all its calls. That process was started in its
        sandbox before this call, so the sandbox cannot get grants for a single call."""
        if needs_own_process(run):
            tool: Any = run.tool
            run.revise(tool=RenamedTool(run.tool.spec, tool.alone()))
        elif grants_of(run.call) != NO_GRANTS:
            raise BadUsage(
                f"a single call of `{run.call.name}` cannot get grants: one process answers all of its calls, and keeps"
                " state between them",
                hint=_grant_hint(run, self._sandbox.site.workspace),
            )
        confinement = await self._confinements.of(run)
        run.revise(confinement=confinement)
        outcome = await proceed(run)
        # The text of an exception is not part of the output.
        raised = "" if outcome.error is None else outcome.error.message
        return self._explain_denial(run, outcome, f"{outcome.output}\n{outcome.stderr}\n{raised}", confinement)


def _perhaps_denied(outcome: Outcome, found: HaftError) -> Outcome:
    """The outcome of a call whose program worked on several calls, and reported for one of them what `found` says. The
    report is not shown, because it may be about the call of somebody else."""
    error = outcome.error
    assert error is not None
    what = "the sandbox denied something" if isinstance(found, SandboxDenied) else "a limit was reached"
    perhaps = f"perhaps {what}: the log of its process says so, but not for which of several calls"
    hint = "; ".join(filter(None, (perhaps, found.hint, error.hint)))
    return evolve(outcome, error=replace(error, hint=hint))


def _grant_hint(run: Run, root: str) -> str:
    """A hint that says how to write the call's grants into the configuration, for all calls of the session process.
    Leaves out `scratch`, because the process has its own `/tmp`."""
    grants = replace(grants_of(run.call), scratch=False)
    if grants == NO_GRANTS:
        return "call it without grants"
    grants = run.tool.spec.grants | replace(
        grants, read=_relative(grants.read, root), write=_relative(grants.write, root)
    )
    table = {name: value for name, value in grants.to_json().items() if value}
    inner = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items())
    if "mcp" in run.tool.spec.meta:
        entry = run.tool.spec.grants_entry
        return f"call it without grants, or grant this to its process: `grant = {{{inner}}}` {entry}"
    plugin = json.dumps(run.tool.spec.meta.get("plugin", {}).get("reference", "…"), ensure_ascii=False)
    entry = f"{{plugin = {plugin}, grant = {{{inner}}}}}"
    return f"call it without grants, or grant this to its process: `{entry}` in `plugins`"


def _relative(paths: Iterable[str], root: str) -> tuple[str, ...]:
    """The paths as a configuration writes them: paths in the workspace are relative to the workspace."""
    return tuple(os.path.relpath(path, root) if f"{path}/".startswith(f"{root}/") else path for path in paths)


def _why_not_activated(run: Run) -> str:
    """A text that says why the activated environment (such as a Python virtual environment) was not on the PATH of a
    call."""
    needs = "a call that names one of them needs approval"
    if run.decision.action == "try":
        return "this is a trial run, and nobody has approved the call yet"
    if run.decision.by == "person" or run.decision.by.startswith("client "):
        return "its files cannot be read, or a link in it leads to a place that is private to each call"
    if grants_of(run.call) != NO_GRANTS:
        return f"a rule allowed the call, with grants that the programs there may not have; {needs}"
    return f"a rule allowed the call, and nobody has approved the programs there as they are now; {needs}"
