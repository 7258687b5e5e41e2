"""Outcomes of runs that did not get as far as an answer: refused, failed, cancelled."""

from __future__ import annotations

from haft.contracts import (
    NO_CHANGES,
    NO_LIMITS,
    NOT_RUN,
    UNTRACKED,
    Bug,
    Failure,
    HaftError,
    Outcome,
    Rejected,
    Status,
)
from haft.pipeline.run import Run

CANCELLED = Failure("cancelled", "the run was cancelled")


def ended(run: Run, status: Status, error: Failure | None) -> Outcome:
    """The outcome of a run as far as it came, with what it had written until then."""
    call = run.call
    shown = run.shown
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
    )


def failed(run: Run, error: HaftError) -> Outcome:
    """The outcome of an error that a stage or a tool raised."""
    run.end_output()
    return ended(run, "rejected-by-user" if isinstance(error, Rejected) else "error", error.failure())


def cancelled(run: Run) -> Outcome:
    """The outcome of a run that was told to end."""
    run.end_output()
    return ended(run, "cancelled", CANCELLED)


def broken(run: Run, error: BaseException) -> Outcome:
    """The outcome of a mistake of ours."""
    run.end_output()
    return ended(run, "error", Bug(error).failure())
