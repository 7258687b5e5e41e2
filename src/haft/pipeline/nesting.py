"""Calls inside calls: who made a run, what it made, and how both end.

A call that a run makes is a run of its own, decided and recorded like any other. It joins the scope of its caller: it
borrows the caller's place, sees and changes what the caller does, ends with it at the latest, and whoever is asked
about it sees who waits. Nothing here decides anything; the stages ask.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterator
from contextvars import ContextVar
from typing import Final

from haft.contracts import BadUsage, RunId
from haft.pipeline.run import Run

CURRENT: Final[ContextVar[Run | None]] = ContextVar("haft-current-run", default=None)
"""The run whose tool is at work here: the caller of calls that name none."""

DEEPEST: Final = 50
"""Calls inside calls: a tool that calls itself without end is stopped here."""


def callers(run: Run) -> Iterator[Run]:
    """Who waits for a run: its caller, the caller of that, and so on."""
    above = run.parent
    while above is not None:
        yield above
        above = above.parent


def layered(run: Run) -> Run | None:
    """The nearest caller of a run that works above a layer, if the run's changes land there."""
    caller = next((each for each in callers(run) if each.transaction is not None), None)
    is_layered = caller is not None and caller.transaction is not None and caller.transaction.scope is not None
    return caller if is_layered else None


def why_no_caller(run: Run) -> str | None:
    """Why a run can make no call, if it cannot."""
    if run.outcome is not None or run.is_closed:
        return f"{run.id} has ended"
    if sum(1 for _ in callers(run)) + 1 >= DEEPEST:
        return f"{run.id} is {DEEPEST} calls deep: calls cannot nest deeper"
    within = CURRENT.get()
    if within is not None and within is not run and run in callers(within):
        # It would wait for its own caller's turn.
        return f"{within.id}, which makes the call, was itself made by {run.id}: name {within.id}, or none"
    return None


def busy_with(run: Run) -> RunId | None:
    """The run that keeps a call waiting: its tool answers one call after another, and answers that one now."""
    answered: RunId | None = getattr(run.tool, "busy_with", None)
    return None if answered == run.id else answered


def closes_circle(run: Run, waiting: Collection[Run]) -> RunId | None:
    """The caller of a run that would wait for itself, if one would: the run waits for a call that waits, by calls of
    its own, for that caller. `waiting` are those that wait for their tools, and some that do so no longer."""
    above = {run.id, *(each.id for each in callers(run))}
    seen: set[RunId] = set()
    held_up = [busy_with(run)]
    while held_up:
        answered = held_up.pop()
        if answered is None or answered in seen:
            continue
        if answered in above:
            return answered
        seen.add(answered)
        held_up += [busy_with(each) for each in waiting if any(one.id == answered for one in callers(each))]
    return None


def adopt(run: Run) -> None:
    """Join a new run to its caller; `BadUsage` where that can make none."""
    caller = run.parent
    if caller is None:
        return
    if (why := why_no_caller(caller)) is not None:
        raise BadUsage(f"`{run.call.name}` was not called: {why}")
    caller.children[run.id] = run
    caller.note("child", {"child": run.id, "tool": run.call.name, "became": "queued"})


def part(run: Run) -> None:
    """A run has ended: its caller knows of it, and of all that it made."""
    caller = run.parent
    if caller is None:
        return
    caller.children.pop(run.id, None)
    caller.made += [run.id, *run.made]
    if caller.outcome is None:
        caller.note("child", {"child": run.id, "tool": run.call.name, "became": run.status})


async def children_ended(run: Run, *, cancel: bool) -> None:
    """Wait for what a run has made, which outlives it in no case; no more can be made. With `cancel`, and when who
    waits is cancelled, they are told to end."""
    run.is_closed = True
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


@contextlib.asynccontextmanager
async def while_a_person_thinks(run: Run) -> AsyncIterator[None]:
    """Meanwhile the places of those who wait for a run are free for others, and their clocks stand still. Their locks
    stay."""
    above = [*callers(run)]
    for each in above:
        if each.place is not None:
            each.place.pause()
        if each.clock is not None:
            each.clock.pause()
    back = above[::-1]
    try:
        yield
        # Whoever has the workspace alone gets a place at once: others may wait for it with all places in their hands.
        is_alone = any(each.transaction is not None and each.transaction.lock is not None for each in above)
        if not is_alone and any(each.place is not None and not each.place.is_held for each in above):
            run.turn("queued")
        while back and not is_alone:
            each = back.pop(0)
            if each.place is not None:
                await each.place.resume(None if each.parent is None else each.parent.place)
    finally:
        for each in back:
            if each.place is not None:
                each.place.resume_at_once(None if each.parent is None else each.parent.place)
        for each in above:
            if each.clock is not None:
                each.clock.resume()
