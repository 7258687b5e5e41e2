"""The page Machine: what doctor found wrong first, each with its remedy; then disk, calls, MCP servers and limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.service import ProvidersFacade
from haft.surfaces.http.console.figures import counted, size
from haft.surfaces.http.console.page import Page, PageRequest, View

ORDER: Final = ("broken", "warn", "ok")
ICONS: Final[Mapping[str, str]] = {"broken": "error", "warn": "warn", "ok": "done"}
WORDS: Final[Mapping[str, str]] = {"broken": "broken", "warn": "look at this", "ok": "works"}
PARTS: Final[Mapping[str, str]] = {
    "originals": "replaced files",
    "contents": "contents of files",
    "held": "held changes",
    "lists": "lists of changes",
    "underWay": "running calls",
    "saved": "saved work",
    "outputs": "outputs",
    "scratch": "private files of threads",
}
LIMITS: Final[Mapping[str, str]] = {
    "max_seconds": "Time of a call",
    "memory_bytes": "Memory of a call",
    "max_processes": "Processes of a call",
    "max_written_bytes": "Written by a call",
    "max_output_bytes": "Output shown",
    "max_changed_files": "Files changed by a call",
    "max_queued": "Calls in the queue",
}
_COMMAND: Final = re.compile(r"`([^`]+)`")


async def show(request: PageRequest) -> View:
    """What the checks found, what is used, and what is allowed."""
    ask = request.ask
    checks = sorted((await ask.perform("examineHere"))["checks"], key=lambda each: ORDER.index(each["state"]))
    usage = (await ask.perform("showStore"))["usage"]
    bad = [_check(each) for each in checks if each["state"] != "ok"]
    facts = {
        "bad": bad,
        "broken": sum(each["state"] == "broken" for each in bad),
        "well": [_check(each) for each in checks if each["state"] == "ok"],
        "store": None if usage is None else _store(usage),
        "calls": await _calls(request),
        "limits": _limits(request),
        "servers": await _servers(request),
    }
    return View("machine.html", "Machine", facts)


def _check(check: Mapping[str, Any]) -> dict[str, Any]:
    hint = check["hint"] or ""
    found = _COMMAND.search(hint)
    command = found[1] if found else hint if hint.startswith(("haft ", "chmod ")) else ""
    return {**check, "icon": ICONS[check["state"]], "word": WORDS[check["state"]], "hint": hint, "command": command}


def _store(usage: Mapping[str, Any]) -> dict[str, Any]:
    parts = sorted(
        ((PARTS.get(name, name), value) for name, value in usage["parts"].items() if value), key=lambda p: -p[1]
    )
    return {
        "used": size(usage["used"]),
        "of": size(usage["budget"]),
        "share": min(1.0, usage["used"] / usage["budget"]) if usage["budget"] else 0,
        "parts": ", ".join(f"{size(value)} {name}" for name, value in parts[:4]),
        "undoable": counted(usage["undoable"], "run"),
        "days": usage["days"],
    }


async def _calls(request: PageRequest) -> dict[str, Any]:
    """How many calls run in this workspace, of how many at once."""
    found = await request.service.runs.find(workspace=request.ask.here.path, is_open=True, limit=1000)
    running = sum(each.status == "in-progress" for each in found)
    most = request.service.config.limits.max_concurrent
    return {
        "running": running,
        "most": most,
        "share": min(1.0, running / most) if most else 0,
        "waiting": sum(each.status == "blocked-on-user" for each in found),
        "queued": sum(each.status == "queued" for each in found),
    }


def _limits(request: PageRequest) -> list[tuple[str, str]]:
    limits = request.service.config.limits
    found = []
    for name, words in LIMITS.items():
        value = getattr(limits, name, None)
        if value:
            shown = (
                size(value) if name.endswith("bytes") else f"{value:g} s" if name.endswith("seconds") else f"{value:,}"
            )
            found.append((words, shown))
    return found


async def _servers(request: PageRequest) -> Sequence[Mapping[str, Any]]:
    """The MCP servers that the configuration names."""
    request.ask.require("see-machine")
    here, home = request.ask.here.path, request.service.home
    return await asyncio.to_thread(lambda: [each.to_json() for each in ProvidersFacade(here, home).listed()])


PAGES: Final = (Page("machine", "/machine", show),)
