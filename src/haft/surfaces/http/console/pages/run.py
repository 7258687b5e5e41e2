"""One run: what ran, how it ended, what it changed and wrote, who allowed it, and how it can be taken back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import HaftError, UnknownRun
from haft.surfaces.http.console import reading
from haft.surfaces.http.console.attachments import shown_content
from haft.surfaces.http.console.diffs import shown_diff
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.http.console.run_facts import RunFacts
from haft.surfaces.http.console.run_steps import meters, plain_limits, steps
from haft.surfaces.http.console.undo_plan import Plan, plan_of

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask

MOST_LINES: Final = 2000
ALL_LINES: Final = 50_000
MOST_FILES: Final = 50
ALL_FILES: Final = 1000
LONGEST_SUBJECT: Final = 160
"""A longer subject does not fit into the title, so it is shown in full beside it."""
AROUND: Final = 4
"""How many runs of the thread are shown before and after this one."""
DEEPEST: Final = 3
NOT_UNDONE: Final = frozenset({"undo", "redo", "apply", "drop"})


async def show(asked: PageRequest) -> View:
    """The page of one run."""
    ask, now = asked.ask, time.time()
    run = await reading.one_run(ask, asked.path["run"])
    if run.id != asked.path["run"]:
        return View("", "", go_to=asked.address(f"runs/{run.id}"))
    patch, changes = await reading.patch(ask, run.id)
    most_files = ALL_FILES if asked.query.get("files") == "all" else MOST_FILES
    may_undo = ask.identity.may("undo-all") or (ask.identity.may("undo-own") and run.who == ask.identity.name)
    may_cancel = ask.identity.may("cancel-all") or (ask.identity.may("cancel-own") and run.who == ask.identity.name)
    most = ALL_LINES if asked.query.get("output") == "all" else MOST_LINES
    waiting = [each for each in await reading.requests(ask) if each.run == run.id]
    direction = asked.query.get("plan")
    facts = {
        "now": now,
        "run": run,
        "outcome": run.whole["outcome"],
        "diff": shown_diff(patch, most_files) if patch else None,
        "changes": changes,
        "shows_arguments": len(run.whole["arguments"]) > 1 or len(run.subject) > LONGEST_SUBJECT,
        "conflicts": {each["path"] for each in changes["conflicts"]},
        "output": await reading.output(ask, run.id, most),
        "content": shown_content(run.whole["outcome"]["content"]),
        "steps": steps(run, now),
        "meters": meters(run, now),
        "limits": plain_limits(run),
        "tree": await _tree(ask, run),
        "parent": await _parent(ask, run),
        "request": waiting[0].id if waiting else None,
        "plan": await _plan(ask, run, direction) if direction in ("undo", "redo") else None,
        "can_undo": may_undo and run.changes["state"] == "committed" and bool(run.paths),
        "can_redo": may_undo and run.kind == "undone" and run.tool not in NOT_UNDONE,
        "can_settle": ask.identity.may("answer") and run.kind == "held" and not run.is_open,
        "can_cancel": may_cancel and run.is_open,
        "base": asked.address(),
        "layout": asked.query.get("layout", "unified"),
    }
    return View("run.html", f"{run.tool} {run.subject[:60]}", facts)


async def _parent(ask: Ask, run: RunFacts) -> RunFacts | None:
    if run.parent is None:
        return None
    try:
        return await reading.one_run(ask, run.parent)
    except UnknownRun:  # It is the run of somebody else.
        return None


async def _tree(ask: Ask, run: RunFacts) -> list[tuple[RunFacts, list[Any]]]:
    """The runs of the thread around this one, each with the runs that it made."""
    first = run
    for _ in range(DEEPEST):
        above = await _parent(ask, first)
        if above is None:
            break
        first = above
    newer = await reading.runs(ask, 500, thread=run.thread, since=first.began)
    beside = [each for each in reversed(newer) if each.parent is None and each.id > first.id][:AROUND]
    older = await reading.runs(ask, 4 * AROUND, thread=run.thread, cursor=first.id)
    before = [each for each in older if each.parent is None][:AROUND]
    shown = [*reversed(before), first, *beside]
    may_have = {first.id, *(each.id for each in shown if each.tool == "task")}
    return [(each, await _below(ask, each, DEEPEST) if each.id in may_have else []) for each in shown]


async def _below(ask: Ask, run: RunFacts, deepest: int) -> list[tuple[RunFacts, list[Any]]]:
    """The runs that a run made, each with those that it made."""
    if deepest == 0:
        return []
    return [(each, await _below(ask, each, deepest - 1)) for each in await reading.children(ask, run.id)]


async def _plan(ask: Ask, run: RunFacts, direction: str) -> Plan:
    """What an undo or redo would do; why it is not possible, if it is not."""
    try:
        found = await ask.perform(direction, {"runs": [run.id], "plan": True})
    except HaftError as error:
        return Plan(direction, [], 0, [], error.message, error.hint)
    others = {}
    for name in {each["by"] for each in found["conflicts"]} - {"outside"}:
        try:
            others[name] = await reading.one_run(ask, name)
        except UnknownRun:
            continue
    return plan_of(run, direction, found, others)


PAGES: Final = (Page("runs", "/runs/{run}", show),)
