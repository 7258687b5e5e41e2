"""Compare: two runs side by side. Only the facts that differ, then the difference of their outputs and changes."""

from __future__ import annotations

import difflib
import time
from typing import TYPE_CHECKING, Any, Final

from haft.surfaces.http.console import reading
from haft.surfaces.http.console.diffs import ShownDiff, shown_diff
from haft.surfaces.http.console.figures import took, when
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.http.console.run_facts import SAID, RunFacts
from haft.surfaces.text.json_text import to_json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from haft.surfaces.http.api.ask import Ask

MOST_LINES: Final = 5000
OFFERED: Final = 12
DIFFERS: Final = "differs"


async def show(asked: PageRequest) -> View:
    """The comparison; with only one run, a choice of the other one."""
    ask, now = asked.ask, time.time()
    names = [name for name in (asked.query.get("a"), asked.query.get("b")) if name]
    if not names:
        return View("", "", go_to=asked.address("runs"))
    first = await reading.one_run(ask, names[0])
    base = {"base": asked.address(), "now": now, "first": first, "layout": asked.query.get("layout", "split")}
    if len(names) < 2:
        return View("compare_with.html", "Compare", {**base, **await _offered(ask, first)})
    second = await reading.one_run(ask, names[1])
    return View("compare.html", "Compare", {**base, "second": second, **await _compared(ask, first, second, now)})


async def _offered(ask: Ask, run: RunFacts) -> dict[str, Any]:
    """Runs that can be compared with this one: those of the same call first."""
    found = await reading.runs(ask, 300, tool=run.tool)
    others = [each for each in found if each.id != run.id]
    others.sort(key=lambda each: each.subject != run.subject)
    offered = others[:OFFERED]
    return {"runs": offered, "counts": await reading.line_counts(ask, offered)}


async def _compared(ask: Ask, first: RunFacts, second: RunFacts, now: float) -> dict[str, Any]:
    outputs = [await reading.output(ask, run.id, MOST_LINES) for run in (first, second)]
    texts = [[line.text for line in output.lines] for output in outputs]
    changes = [await reading.patch(ask, run.id) for run in (first, second)]
    files = [{each["path"]: each for each in facts["files"]} for _, facts in changes]
    return {
        "facts": _facts(first, second, now),
        "output": _difference("output.txt", *texts),
        "is_same_output": texts[0] == texts[1],
        "paths": _paths(*files),
        "changes": _difference("changes.diff", *_bodies(*files)),
    }


def _facts(first: RunFacts, second: RunFacts, now: float) -> list[tuple[str, str, str]]:
    """The facts in which two runs differ: a name, and how it is in each."""
    found = []
    for name, words in (
        ("State", lambda run: SAID[run.kind]),
        ("Tool", lambda run: run.tool),
        ("Agent", lambda run: run.who),
        ("Thread", lambda run: run.thread_name),
        ("Began", lambda run: when(run.began)),
        ("Took", lambda run: took(run.lasted(now))),
        ("Exit code", lambda run: _word(run.whole["outcome"]["exitCode"])),
        ("Error", lambda run: _word((run.whole["outcome"]["error"] or {}).get("message"))),
        ("Allowed by", lambda run: _word((run.whole["outcome"]["decision"] or {}).get("reason"))),
        ("Network", lambda run: _word(run.whole["outcome"]["sandbox"]["network"])),
        ("Directory", lambda run: run.whole["cwd"]),
    ):
        one, other = words(first), words(second)
        if one != other:
            found.append((name, one, other))
    arguments = first.whole["arguments"], second.whole["arguments"]
    for name in dict.fromkeys([*arguments[0], *arguments[1]]):
        one, other = (_word(each.get(name)) for each in arguments)
        if one != other:
            found.append((f"Argument {name}", one, other))
    return found


def _word(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else to_json_text(value)


def _paths(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What each of two change sets has of each path."""
    found = []
    for path in sorted({*first, *second}):
        if path not in second:
            words = "only in the left"
        elif path not in first:
            words = "only in the right"
        else:
            is_same = all(first[path].get(name) == second[path].get(name) for name in ("type", "after", "diff"))
            words = "the same in both" if is_same else DIFFERS
        found.append((path, words))
    return found


def _bodies(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The changes of the paths that both changed, but differently: the lines of their patches, without headers and
    without the numbers of hunks, which differ although the changes are the same."""
    found: tuple[list[str], list[str]] = ([], [])
    for path, words in _paths(first, second):
        if words == DIFFERS:
            for lines, files in zip(found, (first, second), strict=True):
                patch = (files[path]["diff"] or "").partition("\n@@ ")[2].splitlines()[1:]
                lines += [path, *("…" if line.startswith("@@ ") else line for line in patch)]
    return found


def _difference(name: str, first: list[str], second: list[str]) -> ShownDiff | None:
    lines = list(difflib.unified_diff(first, second, n=3, lineterm=""))[2:]
    text = "".join(f"{line}\n" for line in lines)
    return shown_diff(f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n{text}") if lines else None


PAGES: Final = (Page("runs", "/compare", show),)
