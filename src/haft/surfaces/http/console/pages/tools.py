"""The page Tools: the catalogue with its health, and one tool with a form for its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from haft.surfaces.http.console.figures import counted
from haft.surfaces.http.console.page import Page, PageRequest, View

STATES: Final[Mapping[str, tuple[str, str, str, str, str | None]]] = {
    "broken": ("error", "error", "broken", "haft cannot use this tool.", "Mend the file: haft notices by itself."),
    "changed": (
        "",
        "warn",
        "changed",
        "This tool has changed since someone approved it.",
        "The next call shows the difference, and needs approval.",
    ),
    "unreachable": ("error", "error", "unreachable", "Its server does not answer.", "The page Machine says more."),
    "needs-config": ("error", "warn", "needs configuration", "It needs values that are not set.", None),
    "duplicate": ("", "warn", "duplicate", "Another tool has this name.", "Rename one of the two."),
    "inactive": ("", "rejected", "inactive", "It belongs to a skill that is not active.", None),
    "disabled": ("", "rejected", "disabled", "The configuration disables it.", None),
}
"""For each state but `ready`, the worst first: tone, picture, word, sentence, and what to do."""
ATTENTION: Final = ("broken", "changed", "unreachable", "needs-config", "duplicate")


async def show(request: PageRequest) -> View:
    """The catalogue, and the tool that the path names."""
    listed = (await request.ask.perform("listTools", {"all": True}))["tools"]
    name = request.path.get("tool")
    chosen = next((tool for tool in listed if tool["name"] == name), None)
    groups = _groups(request, listed)
    bad = sum(tool["state"] in ATTENTION for tool in listed)
    ready = sum(tool["state"] == "ready" for tool in listed)
    facts = {
        "groups": groups,
        "summary": f"{counted(ready, 'is', 'are')} ready" + (f", {bad} need attention" if bad else ""),
        "chosen": None if chosen is None else await _chosen(request, chosen),
        "places": ["the built-in tools", "the toolbox and the plugins of haft.toml"],
    }
    if name is not None and chosen is None:
        return View("tools.html", "Tools", facts, 404)
    return View("tools.html", f"{name} · Tools" if name else "Tools", facts)


def _groups(request: PageRequest, listed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    order = {state: number for number, state in enumerate(STATES)}
    bad = sorted(
        (tool for tool in listed if tool["state"] in ATTENTION), key=lambda each: (order[each["state"]], each["name"])
    )
    ready = sorted((tool for tool in listed if tool["state"] == "ready"), key=lambda each: each["name"])
    off = sorted((tool for tool in listed if tool not in bad and tool not in ready), key=lambda each: each["name"])
    named = (("Needs attention", bad), ("Ready", ready), ("Off", off))
    return [{"title": title, "tools": [_row(request, tool) for tool in tools]} for title, tools in named if tools]


def _row(request: PageRequest, tool: Mapping[str, Any]) -> dict[str, Any]:
    tone, picture, word, _, _ = STATES.get(tool["state"], ("", "warn", tool["state"], "", None))
    return {
        "name": tool["name"],
        "kind": tool["kind"],
        "line": tool["description"].partition("\n")[0],
        "state": tool["state"],
        "tone": tone,
        "icon": picture,
        "word": word,
        "address": request.address(f"tools/{quote(tool['name'], safe='')}"),
    }


async def _chosen(request: PageRequest, tool: Mapping[str, Any]) -> dict[str, Any]:
    _, _, _, title, remedy = STATES.get(tool["state"], ("", "", "", "", None))
    return {
        **_row(request, tool),
        "title": title,
        "problem": tool["reason"],
        "remedy": remedy,
        "description": tool["description"],
        "origin": tool["origin"],
        "effects": _effects(tool["effects"]),
        "used": "its runs",
        "runs_address": request.address(f"runs?{urlencode({'tool': tool['name']})}"),
        "callable": tool["enabled"] and tool["inputSchema"] is not None,
        "may_call": request.ask.identity.may("call-tools") and request.ask.identity.may_call(tool["name"]),
        "has_trial": not tool["effects"].get("readonly"),
        "schema": json.dumps(tool["inputSchema"]),
        "value": request.query.get("args", "{}"),
    }


def _effects(effects: Mapping[str, bool]) -> str:
    words = ["only reads" if effects.get("readonly") else "may change something"]
    words += ["uses the network"] if effects.get("network") else []
    words += ["gives the same answer when repeated"] if effects.get("idempotent") else []
    words += ["its answers may be kept"] if effects.get("cacheable") else []
    return ", ".join(words)


PAGES: Final = (Page("tools", "/tools", show), Page("tools", "/tools/{tool}", show))
