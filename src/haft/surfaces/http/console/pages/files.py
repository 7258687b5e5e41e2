"""The page Files: what happened to a path, by which run and why, and who wrote each line of it. Without a path, it
lists the files that runs changed last."""

from __future__ import annotations

import itertools
import posixpath
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from haft.contracts import BadUsage
from haft.surfaces.http.console.call_words import short_id
from haft.surfaces.http.console.diffs import shown_diff
from haft.surfaces.http.console.diffs.syntax import coloured
from haft.surfaces.http.console.figures import clock, counted, day, when
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.http.console.run_facts import RunFacts, run_facts, seconds_of
from haft.surfaces.http.console.written import written_code
from haft.values import dataclass

MOST_LINES: Final = 5000
"""How many lines of the file are shown."""
_PICTURES: Final = {"create": "create", "modify": "edit", "delete": "remove"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One change of the file, as the rail shows it."""

    key: str
    """Names the entry in the address."""
    picture: str
    title: str
    subject: str
    at: float | None
    time: str
    by: str
    why: str
    added: int
    removed: int
    is_undone: bool
    run: RunFacts | None
    edit: Mapping[str, Any]

    @property
    def day(self) -> str:
        if self.at is None:
            return ""
        then, today = time.localtime(self.at), time.localtime()
        if then[:3] == today[:3]:
            return "Today"
        return "Yesterday" if time.localtime(time.time() - 86_400)[:3] == then[:3] else day(self.at)


async def show(request: PageRequest) -> View:
    """The history of the path in the address."""
    path = posixpath.normpath(request.path["path"])
    history = await request.ask.perform("listFileHistory", {"path": path})
    entries = _entries(history["edits"])
    chosen = next(
        (each for each in entries if each.key == request.query.get("change")), entries[0] if entries else None
    )
    lines, trouble = await _blame(request, path)
    folder, _, name = path.rpartition("/")
    undo = None if chosen is None else await _undo(request, chosen, entries)
    facts = {
        "path": path,
        "folder": f"{folder}/" if folder else "",
        "name": name,
        "summary": _summary(entries, is_whole=history["isWhole"]),
        "days": _days(entries),
        "chosen": chosen,
        "address": lambda entry, plan=False: request.address(
            f"files/{quote(path)}?change={quote(entry.key)}{'&undo=from-here' if plan else ''}#change"
        ),
        "diff": None if chosen is None or chosen.edit["diff"] is None else shown_diff(chosen.edit["diff"]),
        "undo": undo,
        "is_planning": undo is not None and request.query.get("undo") == "from-here",
        "may_undo": request.ask.identity.may("undo-all"),
        "groups": _groups(lines, path, {each.run.id: each.run.tool for each in entries if each.run is not None}),
        "said": _said(lines),
        "trouble": trouble,
        "more_lines": max(0, len(lines) - MOST_LINES),
    }
    return View("file.html", path, facts)


async def show_all(request: PageRequest) -> View:
    """The files that runs changed last."""
    if path := request.query.get("path", "").strip().strip("/"):
        return View("files.html", "Files", go_to=request.address(f"files/{quote(path)}"))
    page = await request.ask.perform("listRuns", {"limit": 200})
    files: dict[str, dict[str, Any]] = {}
    for run in page["runs"]:
        facts = run_facts(run)
        if facts.tool in ("undo", "redo") or facts.changes["state"] not in ("committed", "undone"):
            continue
        for each in facts.changes["files"]:
            if each["kind"] == "file":
                seen = files.setdefault(
                    each["path"], {"path": each["path"], "last": facts, "type": each["type"], "runs": 0}
                )
                seen["runs"] += 1
    shown = [
        {**each, "address": request.address(f"files/{quote(each['path'])}"), "by": _by(each["last"])}
        for each in files.values()
    ]
    return View("files.html", "Files", {"files": shown, "runs": len(page["runs"])})


def _entries(edits: Sequence[Mapping[str, Any]]) -> list[Entry]:
    found: list[Entry] = []
    for number, edit in enumerate(edits):
        run = None if edit["run"] is None else run_facts(edit["run"])
        if run is None and edit["state"] is None:
            later = next((one for one in reversed(found) if one.run is not None), None)
            earlier = next((one["run"] for one in edits[number + 1 :] if one["run"] is not None), None)
            found.append(_outside(edit, earlier, later))
        else:
            found.append(_by_run(edit, run))
    return found


def _outside(edit: Mapping[str, Any], earlier: Mapping[str, Any] | None, later: Entry | None) -> Entry:
    """Someone saved the file without haft."""
    began = None if earlier is None else seconds_of(earlier["startedAt"])
    ended = None if later is None else later.at
    times = [clock(at) for at in (began, ended) if at is not None]
    found = (
        f"found when {short_id(later.run.id)} began" if later is not None and later.run is not None else "since then"
    )
    return Entry(
        f"outside-{edit['after'] or 'first'}",
        "outside",
        "Saved outside haft",
        "",
        ended or began,
        "–".join(dict.fromkeys(times)) if ended is not None else f"after {times[0]}" if times else "",
        f"no run; {found}",
        "an editor, git, or another program",
        edit["added"],
        edit["removed"],
        False,
        None,
        edit,
    )


def _by_run(edit: Mapping[str, Any], run: RunFacts | None) -> Entry:
    at = None if edit["at"] is None else seconds_of(edit["at"])
    if run is None:
        return Entry(
            f"gone-{edit['at']}",
            "warn",
            "A run",
            "",
            at,
            clock(at or 0),
            "no longer stored",
            "",
            0,
            0,
            False,
            None,
            edit,
        )
    is_undone = edit["state"] == "undone"
    undone_by = None if edit["undoneBy"] is None else run_facts(edit["undoneBy"])
    why = allowed_because(run)
    if is_undone and undone_by is not None:
        why = f"undone by {undone_by.who} at {clock(undone_by.began)}"
    # The rail is about one file: a tool whose call names only this file needs no further words.
    subject = "" if run.tool in ("edit_file", "write_file") else run.subject
    return Entry(
        run.id,
        "undone" if is_undone else _PICTURES[edit["type"]],
        run.tool,
        subject,
        at,
        clock(at or run.began),
        _by(run),
        why,
        edit["added"],
        edit["removed"],
        is_undone,
        run,
        edit,
    )


def _by(run: RunFacts) -> str:
    return f"sub-agent of {run.who}" if ":subtask:" in run.thread else run.who


def allowed_because(run: RunFacts) -> str:
    """Why a run was allowed, in a few words."""
    decision = run.whole["outcome"]["decision"]
    if decision is None:
        return ""
    if decision["by"] == "person" and decision["layer"] == "built-in":
        return "called by a person"
    if decision["by"] == "person":
        return str(decision["reason"]).partition(": ")[0]
    if decision["source"] == "haft's own rules":
        return f"allowed: {decision['reason'] or decision['rule']}"
    return f"allowed by a rule, {decision['source']}"


def _summary(entries: Sequence[Entry], *, is_whole: bool) -> str:
    runs = sum(each.run is not None for each in entries)
    outside = sum(each.run is None and each.picture == "outside" for each in entries)
    if not entries:
        return ""
    first = entries[-1].at
    is_today = first is not None and when(first) == clock(first)
    since = "" if first is None else " today" if is_today else f" since {day(first)}"
    words = f"changed by {counted(runs, 'run')}{since}" + ("" if is_whole else ", the last ones are shown")
    times = {0: "", 1: ", once outside haft", 2: ", twice outside haft"}
    return words + times.get(outside, f", {outside} times outside haft")


def _days(entries: Iterable[Entry]) -> list[tuple[str, list[Entry]]]:
    return [(name, list(group)) for name, group in itertools.groupby(entries, key=lambda each: each.day)]


async def _undo(request: PageRequest, chosen: Entry, entries: Sequence[Entry]) -> dict[str, Any] | None:
    """What undoing this run, and undoing it with all later runs of this file, would do."""
    if chosen.run is None or chosen.is_undone:
        return None
    later = [each.run.id for each in entries[: entries.index(chosen)] if each.run is not None and not each.is_undone]
    runs = [*later, chosen.run.id]
    return {
        "run": chosen.run.id,
        "this": await _plan(request, [chosen.run.id]),
        "runs": runs,
        "later": [short_id(each) for each in later],
        "from_here": await _plan(request, runs) if later else None,
    }


async def _plan(request: PageRequest, runs: Sequence[str]) -> dict[str, Any]:
    """What an undo of these runs would do; a `problem` if it cannot be done at all."""
    try:
        found = await request.ask.service.changes.plan("undo", *runs)
    except BadUsage as error:
        return {"problem": error.message, "conflicts": [], "plan": []}
    return {"problem": None, **found.to_json(None)}


async def _blame(request: PageRequest, path: str) -> tuple[list[Mapping[str, Any]], str | None]:
    try:
        return (await request.ask.perform("blameFile", {"path": path}))["lines"], None
    except BadUsage as error:
        return [], error.message


def _groups(lines: Sequence[Mapping[str, Any]], path: str, tools: Mapping[str, str]) -> list[dict[str, Any]]:
    """Neighbouring lines of one origin, with their code in colours."""
    shown = lines[:MOST_LINES]
    html = [_html(pieces) for pieces in coloured([line["text"] for line in shown], path)]
    found: list[dict[str, Any]] = []
    for origin, group in itertools.groupby(zip(shown, html, strict=True), key=lambda pair: _origin(pair[0])):
        members = list(group)
        run, source = origin
        first = members[0][0]
        found.append(
            {
                "run": run if source == "run" else None,
                "title": {"outside": "outside haft", "older": "older", "unknown": "unknown"}.get(source, ""),
                "short": f"{short_id(run)} {tools.get(run, '')}".strip() if run else "",
                "about": "" if source != "run" else f"{first['who']}, {when(seconds_of(first['at']))}",
                "lines": [(line["line"], code) for line, code in members],
            }
        )
    return found


def _origin(line: Mapping[str, Any]) -> tuple[str | None, str]:
    return line["run"] if line["source"] == "run" else None, line["source"]


def _html(pieces: Sequence[tuple[str, str]]) -> Markup:
    parts = [
        f'<span class="{colour}">{written_code(text)}</span>' if colour else written_code(text)
        for colour, text in pieces
    ]
    return Markup("".join(parts))  # noqa: S704  `written_code` escapes each part


def _said(lines: Sequence[Mapping[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for line in lines:
        if line["source"] == "run":
            counts[line["run"]] = counts.get(line["run"], 0) + 1
    most = sorted(counts.items(), key=lambda pair: -pair[1])[:2]
    return ", ".join([counted(len(lines), "line"), *(f"{count} from {short_id(run)}" for run, count in most)])


PAGES: Final = (Page("files", "/files", show_all), Page("files", "/files/{path:path}", show))
