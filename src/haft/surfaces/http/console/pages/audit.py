"""The page Audit: whether the log is as haft wrote it, then search and export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from haft.surfaces.http.console.call_words import short_id, subject
from haft.surfaces.http.console.figures import counted, day, when
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.http.console.run_facts import seconds_of

ON_A_PAGE: Final = 50
FILTERS: Final = ("text", "who", "tool", "type", "run")
TYPES: Final[Mapping[str, str]] = {
    "start": "a call began",
    "end": "a call ended",
    "approve": "a person approved",
    "reject": "a person rejected",
    "refuse": "a command was refused",
    "between": "changed between calls",
    "uncovered": "an agent's own call",
}
"""The kinds of entries that a person looks for, in words."""


async def show(request: PageRequest) -> View:
    """The verdict, and the entries that the query selects, newest first."""
    given = {name: value for name in FILTERS if (value := request.query.get(name, "").strip())}
    query: dict[str, Any] = {**given, "limit": ON_A_PAGE}
    if (cursor := request.query.get("before", "")).isdigit() and int(cursor) > 0:
        query["cursor"] = int(cursor)
    is_whole = request.query.get("check") == "all"
    verdict = await request.ask.perform("verifyAudit", {"sinceCheckpoint": not is_whole})
    page = await request.ask.perform("listAuditHere", query)
    facts = {
        "verdict": verdict,
        "sentence": _sentence(verdict, await _since(request)),
        "records": [_row(request, entry) for entry in page["entries"]],
        "given": given,
        "filters": {name: given.get(name, "") for name in FILTERS},
        "types": TYPES,
        "older": _older(request, given, page),
        "export": f"/api/v1/workspaces/{request.workspace}/audit/export?{urlencode(given)}",
        "whole": request.address("audit?check=all"),
    }
    return View("audit.html", "Audit", facts)


def _older(request: PageRequest, given: Mapping[str, str], page: Mapping[str, Any]) -> str | None:
    if page["next"] is None or (len(page["entries"]) < ON_A_PAGE and not given):
        return None
    return request.address(f"audit?{urlencode({**given, 'before': page['next']})}")


def _sentence(verdict: Mapping[str, Any], since: float | None) -> str:
    records = counted(verdict["records"], "record")
    if not verdict["intact"]:
        return f"Altered: {verdict['problem']}."
    if since is None:
        return "Nothing is recorded yet."
    if verdict["since"] > 1:
        return f"Complete and unaltered, {records} since {day(since)}. An earlier check found the older ones intact."
    return f"Complete and unaltered, {records} since {day(since)}."


async def _since(request: PageRequest) -> float | None:
    """When the first entry of this workspace was written."""
    lines = await request.ask.perform("exportAuditHere")
    async for chunk in lines:
        if first := chunk.partition(b"\n")[0]:
            return seconds_of(orjson.loads(first)["at"])
    return None


def _row(request: PageRequest, entry: Mapping[str, Any]) -> dict[str, Any]:
    decision = entry.get("decision") or {}
    run = entry.get("run")
    return {
        "seq": entry["seq"],
        "when": when(seconds_of(entry["at"])),
        "is_start": entry["type"] == "start",
        "what": TYPES.get(entry["type"], entry["type"]),
        "tool": entry.get("tool") or entry.get("command") or "",
        "subject": subject(entry.get("tool") or "", entry.get("arguments") or {}),
        "who": entry.get("who") or "",
        "status": entry.get("status") or "",
        "decision": {"allow": "passed", "ask": "needed approval", "reject": "rejected", "try": "trial run"}.get(
            decision.get("action", ""), ""
        ),
        "by": decision.get("by") or "",
        "short": short_id(run) if run else "",
        "address": request.address(f"runs/{run}") if run else None,
        "hash": str(entry.get("hash", ""))[:12],
    }


PAGES: Final = (Page("audit", "/audit", show),)
