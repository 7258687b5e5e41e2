"""Calls that tools make: which run made which call, and how both end.

A call that a run makes is a run of its own, decided and recorded like any other. It is part of its caller, the run that
made it: it borrows the caller's place in the queue, it sees and changes the same files, and it ends no later than the
caller. If the call needs approval, the person sees which runs wait for it. The functions here only answer the stages'
questions; they decide nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from typing import Final

from haft.contracts import BadUsage, RunId, own_copy
from haft.pipeline.run import Run

CURRENT: Final[ContextVar[Run | None]] = ContextVar("haft-current-run", default=None)
"""The run whose tool executes the current code. It is the parent of a call that names no parent."""

MAX_DEPTH: Final = 50
"""How deep calls can nest. This stops a tool that calls itself without end."""


def callers(run: Run) -> Iterator[Run]:
    """The runs that wait for a run: its caller, the caller of its caller, and so on."""
    above = run.parent
    while above is not None:
        yield above
        above = above.parent


def caller_with_layer(run: Run) -> Run | None:
    """The nearest caller of `run` that has a transaction, if that caller writes to a layer: the changes of `run` go
    into the same layer. None if there is no such caller."""
    caller = next((each for each in callers(run) if each.transaction is not None), None)
    is_layered = caller is not None and caller.transaction is not None and caller.transaction.scope is not None
    return caller if is_layered else None


def trial_above(run: Run) -> Run | None:
    """The caller of `run` that is a trial run in a layer, if there is one: the changes of `run` are a part of that
    trial run."""
    caller = caller_with_layer(run)
    return None if caller is None else next((each for each in callers(run) if each.decision.action == "try"), None)


def wants_layer(run: Run) -> bool:
    """Whether the tool of `run` works in a layer of its own, although it runs in the host and has no process."""
    if not run.tool.spec.trial_in_layer:
        return False
    decision = run.call.decision
    is_tried = decision is not None and decision.action == "try" and trial_above(run) is None
    if run.call.trial or is_tried:
        return True
    wants_trial = getattr(run.tool, "wants_trial", None)
    return wants_trial is not None and bool(wants_trial(own_copy(run.call.arguments)))


def why_cannot_call(run: Run) -> str | None:
    """Why a run cannot make a call; None if it can."""
    if run.outcome is not None or run.tool_has_ended:
        return f"{run.id} has ended"
    if sum(1 for _ in callers(run)) + 1 >= MAX_DEPTH:
        return f"{run.id} is {MAX_DEPTH} calls deep: calls cannot nest deeper"
    within = CURRENT.get()
    if within is not None and within is not run and run in callers(within):
        # A call with this parent would wait for the run that makes it.
        return f"{within.id} makes the call, and {run.id} waits for it: name {within.id} as the parent, or give none"
    return None


def busy_with(run: Run) -> RunId | None:
    """The id of the run that `run` must wait for, because the tool of `run` handles one call at a time and is busy with
    that run. None if `run` need not wait."""
    answered: RunId | None = getattr(run.tool, "busy_with", None)
    return None if answered == run.id else answered


def tool_waits_of(run: str, waiting: Collection[Run]) -> list[str]:
    """The runs for which a run waits, or a call that it made, because the tool is busy with them. `waiting` contains
    all runs that wait for their tool, and perhaps some that no longer do."""
    below = (each for each in waiting if each.id == run or any(one.id == run for one in callers(each)))
    return [other for each in below if (other := busy_with(each)) is not None]


def find_deadlock(run: Run, waiting: Collection[Run], lock_waits: Callable[[str], Iterable[str]]) -> str | None:
    """The caller that `run` would have to wait for, although this caller waits for `run`; None if there is no such
    caller. Example: `run` must wait because its tool is busy with another run, and that run has made a call that waits
    for a tool that is busy with a caller of `run`. For `waiting` see `tool_waits_of`; `lock_waits` says for which runs
    a run, or a call that it made, waits for a lock."""
    above = {run.id, *(each.id for each in callers(run))}
    seen: set[str] = set()
    held_up: list[str | None] = [busy_with(run)]
    while held_up:
        answered = held_up.pop()
        if answered is None or answered in seen:
            continue
        if answered in above:
            return answered
        seen.add(answered)
        held_up += [*tool_waits_of(answered, waiting), *lock_waits(answered)]
    return None


def attach_to_caller(run: Run) -> None:
    """Add a new run to its caller's children; raises `BadUsage` if the caller cannot make calls."""
    caller = run.parent
    if caller is None:
        return
    if (why := why_cannot_call(caller)) is not None:
        raise BadUsage(f"`{run.call.name}` was not called: {why}")
    caller.children[run.id] = run
    caller.emit("child", {"child": run.id, "tool": run.call.name, "became": "queued"})


def detach_from_caller(run: Run) -> None:
    """Remove an ended run from its caller's `children`, and add the run and its descendants to the caller's
    `descendants`."""
    caller = run.parent
    if caller is None:
        return
    caller.children.pop(run.id, None)
    caller.descendants += [run.id, *run.descendants]
    if caller.outcome is None:
        caller.emit("child", {"child": run.id, "tool": run.call.name, "became": run.status})


async def wait_for_children(run: Run, *, cancel: bool) -> None:
    """Wait until all children of a run have ended. From now on, the run cannot make calls. The children are cancelled
    if `cancel` is true, or if the waiting task is cancelled."""
    run.tool_has_ended = True
    cancelled: asyncio.CancelledError | None = None
    while run.children:
        if cancel:
            for child in [*run.children.values()]:
                child.cancel()
        try:
            await next(iter(run.children.values()))
        except asyncio.CancelledError as error:
            cancel, cancelled = True, error
    if cancelled is not None:
        raise cancelled


@contextlib.contextmanager
def waits_for_person(run: Run) -> Iterator[None]:
    """A context in which a run waits for a person. Calls that wait for this run, or for one of its callers, are told
    so."""
    told = [each for one in (run, *callers(run)) for each in (one.hold, one.person_mark) if each is not None]
    for each in told:
        each.begin_person()
    try:
        yield
    finally:
        for each in told:
            each.end_person()


@contextlib.asynccontextmanager
async def callers_paused(run: Run) -> AsyncIterator[None]:
    """A context in which a run waits for a person or for a lock. Inside it, the run's callers have no places in the
    queue, and their deadlines pause. The callers keep their locks."""
    above = [*callers(run)]
    for each in above:
        if each.place is not None:
            each.place.pause()
        if each.deadline is not None:
            each.deadline.pause()
    back = above[::-1]
    try:
        yield
        # A caller that has locked the workspace gets a place back at once, without waiting for a free one: all places
        # may be held by runs that wait for this lock.
        has_lock = any(each.transaction is not None and each.transaction.lock is not None for each in above)
        if not has_lock and any(each.place is not None and not each.place.is_held for each in above):
            run.set_status("queued")
        while back and not has_lock:
            each = back.pop(0)
            if each.place is not None:
                await each.place.resume(None if each.parent is None else each.parent.place)
    finally:
        for each in back:
            if each.place is not None:
                each.place.resume_at_once(None if each.parent is None else each.parent.place)
        for each in above:
            if each.deadline is not None:
                each.deadline.resume()
