"""The page Rules: every rule in the order in which they decide, how many past calls each decided, and what an edit of
one would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from haft.contracts import HaftError
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.text.json_text import to_json_text

GROUPS: Final[Mapping[str, str]] = {
    "remembered": "Remembered answers",
    "workspace": "Rules of the workspace",
    "user": "Rules of the server's user",
    "built-in": "haft's own rules",
}
WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "allow": ("passes", "done"),
    "ask": ("needs approval", "held"),
    "reject": ("is rejected", "rejected"),
    "try": ("trial run first", "held"),
    "delegate": ("a program decides", "said"),
}
"""For each action: its words and its picture."""
NEW: Final = "new"
START: Final = '[[permissions]]\ntool = "shell"\nmatches = {command = "npm test*"}\naction = "allow"\n'


async def show(request: PageRequest) -> View:
    """All rules; with `?rule=` the editor of one, or of a new one."""
    ask = request.ask
    rules = (await ask.perform("listRules"))["rules"]
    decided = await ask.perform("countDecisions")
    chosen = request.query.get("rule")
    facts = {
        "groups": _groups(request, rules, decided["counts"], chosen),
        "looked_at": decided["lookedAt"],
        "editor": await _editor(request, chosen),
        "is_new": chosen == NEW,
        "new_address": request.address(f"rules?rule={NEW}"),
        "may_write": ask.identity.may("write-rules"),
    }
    return View("rules.html", "Rules", facts)


def _groups(
    request: PageRequest, rules: Sequence[Mapping[str, Any]], counts: Sequence[Mapping[str, Any]], chosen: str | None
) -> list[dict[str, Any]]:
    """The rules with their numbers, as one list in the order in which they decide."""
    shown = [_row(request, number, rule, counts, chosen) for number, rule in enumerate(rules, start=1)]
    found = []
    for origin, title in GROUPS.items():
        members = [row for row in shown if row["origin"] == origin]
        if members:
            found.append({"title": title, "rules": members})
    return found


def _row(
    request: PageRequest,
    number: int,
    rule: Mapping[str, Any],
    counts: Sequence[Mapping[str, Any]],
    chosen: str | None,
) -> dict[str, Any]:
    words, picture = WORDS[rule["action"]]
    is_file = rule["origin"] in ("workspace", "user")
    notes = [note for note in (rule["missing"], None if rule["counts"] else f"does not count: {rule['why']}") if note]
    if rule["counts"] and rule["why"]:
        notes.append(rule["why"])
    return {
        "number": number,
        "origin": rule["origin"],
        "action": words,
        "icon": picture,
        "tool": rule["tool"],
        "what": rule["rule"] if rule["origin"] == "built-in" else _matches(rule),
        "more": _more(rule),
        "source": rule["source"],
        "notes": notes,
        "counts": rule["counts"],
        "count": _count(rule, counts),
        "is_chosen": rule["source"] == chosen,
        "address": request.address(f"rules?{urlencode({'rule': rule['source']})}") if is_file else None,
    }


def _matches(rule: Mapping[str, Any]) -> str:
    pairs = rule["exactly"] if rule["exactly"] is not None else rule["matches"]
    words = "exactly " if rule["exactly"] is not None else ""
    return words + ", ".join(
        f"{name}: {value if isinstance(value, str) else to_json_text(value)}" for name, value in pairs.items()
    )


def _more(rule: Mapping[str, Any]) -> list[str]:
    """What a rule says besides what it matches."""
    grant = {name: value for name, value in rule["grant"].items() if value}
    found = [f"grants {to_json_text(grant)}"] if grant else []
    found += [f"dangers: {', '.join(rule['dangers'])}"] if rule["dangers"] else []
    found += [f"in thread {rule['thread']}"] if rule["thread"] else []
    found += [f"only {rule['context']} calls"] if rule["context"] else []
    found += [f"asks {rule['to']}"] if rule["to"] else []
    found += [f"says: {rule['message']}"] if rule["message"] else []
    return found


def _count(rule: Mapping[str, Any], counts: Sequence[Mapping[str, Any]]) -> int:
    """How many past calls this rule decided. haft's own rules have more wordings than the list shows: those that ask
    count for the last one."""
    if rule["origin"] == "built-in":
        own = [each for each in counts if each["file"] == rule["source"]]
        if rule["action"] == "allow":
            return sum(each["count"] for each in own if each["rule"] == rule["rule"])
        return sum(each["count"] for each in own if each["action"] != "allow")
    file = rule["source"].rpartition(":")[0]
    return sum(each["count"] for each in counts if each["file"] == file and each["rule"] == rule["rule"])


async def _editor(request: PageRequest, chosen: str | None) -> dict[str, Any] | None:
    if chosen is None:
        return None
    if chosen == NEW:
        return {"source": None, "text": START, "problem": None}
    try:
        return {**(await request.ask.perform("showRule", {"source": chosen})), "problem": None}
    except HaftError as error:
        return {"source": chosen, "text": "", "problem": error.message}


PAGES: Final = (Page("rules", "/rules", show),)
