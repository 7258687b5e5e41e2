"""Whole programs in one confined run: what a program may reach, and its start."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from haft.changes import Transactions
from haft.contracts import BadUsage, Call, Confinement, Decision, Limits, new_run_id
from haft.files import state_of
from haft.pipeline import Run
from haft.policy import PolicyQuery
from haft.service.assembly import Host
from haft.service.call_arguments import never_granted
from haft.service.changes import transactions_of
from haft.service.programs.program import Program, files_of, find_executable
from haft.service.programs.program_tool import SPEC, ProgramTool
from haft.values import dataclass, replace

STARTED_BY_PERSON: Final = "a person started it with `haft run`"


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """A program that can run here, and what it may reach."""

    program: Program
    executable: str
    decision: Decision
    confinement: Confinement
    limits: Limits


class HostPrograms:
    """Starts whole programs in the workspace of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def plan(self, program: Program) -> ProgramPlan:
        """What a program may reach, before it starts. Raises `BadUsage` if it cannot run in a layer here, and
        `Rejected` only when it is started: `decision` says whether a rule rejects it."""
        host = self._host
        host.running()
        host.principal.must_be_person("start a program")
        if program.grants.network and host.config.never_network is not None:
            raise never_granted(host.config.never_network)
        directory = os.path.join(host.root.root, program.cwd)
        executable = find_executable(program.argv[0], directory, os.environ)
        why_not = await host.tracking.engine_selector().why_no_trial(SPEC)
        if why_not is not None:
            raise BadUsage(
                f"`{program.argv[0]}` was not started: its changes cannot be kept apart from the workspace ({why_not})",
                hint="`haft doctor` says what is missing; `haft tools use shell` runs single commands",
            )
        decision = self._decision(program)
        confinement = await host.sandbox.confine(
            "workspace", program.grants | decision.grants, activated=decision.activated
        )
        return ProgramPlan(program, executable, decision, confinement, host.config.limits)

    def start(self, plan: ProgramPlan) -> Run:
        """Start a program. Returns its run, without waiting for its end."""
        host, program = self._host, plan.program
        return host.running().call(
            Call(
                run=new_run_id(),
                name=SPEC.name,
                arguments={"argv": list(program.argv)},
                principal=host.principal,
                timeout=program.timeout,
                cwd=program.cwd,
                grants=program.grants,
                tool=ProgramTool(
                    program,
                    plan.executable,
                    files_of(plan.executable),
                    host.home.path,
                    host.sandbox.site.home,
                    self._transactions,
                ),
                decision=plan.decision,
                holds=program.holds,
                secrets=host.known() | host.sandbox.granted_secrets(program.grants),
            )
        )

    @contextlib.contextmanager
    def _transactions(self, directory: str) -> Iterator[Transactions]:
        """The change sets of a directory. Only one thread of this host may have them at a time, because closing them
        removes everything that this host has begun in the directory: `ProgramTool` sees to that."""
        host = self._host
        if os.path.realpath(directory) == host.root.root:
            yield host.changes()
            return
        own = transactions_of(host.home, directory, host.lease.host, host.config.limits, lease=host.lease)
        try:
            yield own
        finally:
            own.close()

    def _decision(self, program: Program) -> Decision:
        """The decision about a program: a rule can reject it. In all other cases, the person who starts it has approved
        it."""
        host = self._host
        decided = host.policy_engine.decide(
            PolicyQuery(
                SPEC,
                {"argv": list(program.argv)},
                cwd=program.cwd,
                thread=host.thread,
                confined=True,
                grants=program.grants,
            )
        )
        if decided.action == "reject":
            return decided
        place = host.sandbox.activated
        return replace(
            decided,
            action="allow",
            layer="approval",
            by="person",
            reason=STARTED_BY_PERSON,
            profile="workspace",
            neutral=False,
            unasked=False,
            activated=None if place is None else state_of(place),
        )
