"""Approve: one call that waits, and tabs for the others. An answer that came too late says who was first."""

from __future__ import annotations

import time
from typing import Any, Final

from haft.surfaces.http.console import reading
from haft.surfaces.http.console.approval_card import card_of
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.http.console.waits import wait_of


async def first(asked: PageRequest) -> View:
    """The call that expires first."""
    waiting = await reading.requests(asked.ask)
    if waiting:
        return View("", "", go_to=asked.address(f"approve/{waiting[0].id}"))
    return await _nothing(asked)


async def show(asked: PageRequest) -> View:
    """One call that waits."""
    waiting = await reading.requests(asked.ask)
    name = asked.path["request"]
    chosen = next((each for each in waiting if name in (each.id, each.run)), None)
    if chosen is None:
        return await _over(asked, name)
    waits = [wait_of(each, reading.request_facts(each)) for each in waiting]
    wait = next(each for each in waits if each.id == chosen.id)
    card = card_of(wait, asked.workspace, asked.service.workspace)
    facts = {
        "now": time.time(),
        "waits": waits,
        "card": card,
        "schema": _schema(asked, wait.tool),
        "base": asked.address(),
        "next": _next(waits, wait.id),
        "layout": asked.query.get("layout", "unified"),
    }
    return View("approve.html", f"Approve {wait.tool}", facts)


async def _over(asked: PageRequest, name: str) -> View:
    """A call that no longer waits: who answered, or how it ended."""
    asked.ask.require("see-inbox")
    waits = [wait_of(each, reading.request_facts(each)) for each in await reading.requests(asked.ask)]
    facts: dict[str, Any] = {"now": time.time(), "waits": waits, "base": asked.address(), "name": name}
    facts |= await reading.answered(asked.ask, name)
    return View("answered.html", "Answered", facts)


async def _nothing(asked: PageRequest) -> View:
    found = await reading.runs(asked.ask, 50, open=True)
    working = len({run.thread for run in found if run.kind == "running"})
    return View("all_clear.html", "Approve", {"base": asked.address(), "working": working})


def _next(waits: list[Any], current: str) -> tuple[str, str]:
    """The calls before and after this one, which the keys [ and ] open."""
    names = [each.id for each in waits]
    at = names.index(current)
    return names[at - 1], names[(at + 1) % len(names)]


def _schema(asked: PageRequest, tool: str) -> Any:
    """The schema of the arguments, for the form of an edited call; None if the tool is gone."""
    found = next((each for each in asked.service.tools(all=True) if each.spec.name == tool), None)
    return None if found is None else found.to_json()["inputSchema"]


PAGES: Final = (Page("approve", "/approve", first), Page("approve", "/approve/{request}", show))
