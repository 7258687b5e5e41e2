"""Outcomes of runs that ended without an answer of the tool: rejected, failed, cancelled."""

from __future__ import annotations

from haft.contracts import (
    NO_CHANGES,
    NO_LIMITS,
    NOT_RUN,
    UNTRACKED,
    Bug,
    DependencyFailed,
    Failure,
    HaftError,
    Outcome,
    Rejected,
    Status,
)
from haft.pipeline.run import Run

CANCELLED = Failure("cancelled", "the run was cancelled")


def outcome_so_far(run: Run, status: Status, error: Failure | None) -> Outcome:
    """The outcome of a run that ends without an answer of its tool, with the output so far."""
    call = run.call
    shown = run.output_buffer
    began = any(state[2] == "in-progress" for state in run.states)
    changes_something = call.tool is not None and not call.tool.spec.effects.readonly
    return Outcome(
        run_id=call.run,
        tool=call.name,
        status=status,
        who=call.who,
        thread=call.thread,
        parent=call.parent,
        output="" if shown is None else shown.all.text(call.run),
        stderr="" if shown is None else shown.stderr.text(call.run),
        error=error,
        truncated=shown is not None and shown.all.cut > 0,
        output_bytes=0 if shown is None else shown.all.total,
        changes=run.changes or (UNTRACKED if began and changes_something else NO_CHANGES),
        decision=call.decision,
        limits=call.limits or NO_LIMITS,
        sandbox=call.confinement or NOT_RUN,
        connections=() if run.connections is None else run.connections.records,
    )


def failed_outcome(run: Run, error: HaftError) -> Outcome:
    """The outcome of a run in which a stage or a tool raised an error."""
    run.end_output()
    status: Status = "error"
    if isinstance(error, Rejected):
        status = "rejected-by-user"
    elif isinstance(error, DependencyFailed):
        status = "cancelled"
    return outcome_so_far(run, status, error.failure())


def cancelled_outcome(run: Run) -> Outcome:
    """The outcome of a run that was cancelled."""
    run.end_output()
    return outcome_so_far(run, "cancelled", CANCELLED)


def bug_outcome(run: Run, error: BaseException) -> Outcome:
    """The outcome of a run that met a bug in haft."""
    run.end_output()
    return outcome_so_far(run, "error", Bug(error).failure())
