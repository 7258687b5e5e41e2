"""`haft log --stat`: a report of many runs: their calls, approvals and changed files, and what can be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import iso_time
from haft.surfaces.cli.words.times import clock, lasted
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.service import ChangesFacade, RunRecord

MOST: Final = 30
"""How many files the report lists."""
OF_CHANGES: Final = ("undo", "redo", "apply", "drop")


def report(runs: Sequence[RunRecord], changes: ChangesFacade | None) -> dict[str, Any]:
    """The report as JSON. `runs` have the current state of their changes."""
    calls = [run for run in runs if run.tool not in OF_CHANGES]
    ended = [run.ended_at for run in runs if run.ended_at is not None]
    files: dict[str, list[str]] = {}
    for run in calls:
        if run.record["changes"]["state"] == "committed":
            for path in run.changed_paths:
                files.setdefault(path, []).append(run.id)
    undoable = [run.id for run in calls if _is_undoable(run, changes)]
    changed = [run.id for run in calls if run.changed_paths]
    return {
        "threads": sorted({run.thread for run in runs}),
        "who": sorted({run.who for run in runs}),
        "from": iso_time(min(run.started_at for run in runs)) if runs else None,
        "to": iso_time(max(ended)) if ended else None,
        "calls": len(calls),
        "statuses": dict(Counter(run.status for run in calls)),
        "tools": dict(Counter(run.tool for run in calls).most_common()),
        "decisions": _decisions(calls),
        "files": {path: files[path] for path in sorted(files)},
        "hosts": sorted({each["host"] for run in calls for each in run.outcome["sandbox"].get("connections", ())}),
        "changed": changed,
        "undoable": undoable,
        "held": [run.id for run in calls if run.record["changes"]["state"] == "held"],
        "undone": [run.id for run in calls if run.record["changes"]["state"] == "undone"],
        "notCovered": [run.id for run in calls if not run.is_open and not run.record["changes"]["complete"]],
    }


def _is_undoable(run: RunRecord, changes: ChangesFacade | None) -> bool:
    row = None if changes is None else changes.ledger.get(run.id)
    return row is not None and row.kept and row.state == "committed" and row.files > 0


def _decisions(calls: Sequence[RunRecord]) -> dict[str, dict[str, int]]:
    """How many calls were allowed and rejected, by whom."""
    found: dict[str, Counter[str]] = {"allowed": Counter(), "rejected": Counter()}
    for run in calls:
        decision = run.outcome["decision"]
        if decision is not None and decision["action"] in ("allow", "try"):
            found["allowed"][decision["by"]] += 1
        elif decision is not None and not run.is_open:
            found["rejected"][decision["by"]] += 1
    return {action: dict(counted.most_common()) for action, counted in found.items()}


def report_lines(found: Mapping[str, Any], runs: Sequence[RunRecord], selector: str) -> Iterator[str]:
    """The report for a person. `selector` are the options that select these runs again."""
    start, end = min(run.started_at for run in runs), max(run.ended_at or run.started_at for run in runs)
    threads = found["threads"][0] if len(found["threads"]) == 1 else f"{len(found['threads'])} threads"
    yield one_line(f"{', '.join(found['who'])} in {threads}, {clock(start)} to {clock(end)} ({lasted(end - start)})")
    yield f"calls: {found['calls']} ({_counted(found['statuses'])})" if found["calls"] else "calls: none"
    if found["tools"]:
        yield one_line(f"  {_counted(found['tools'])}")
    allowed, rejected = found["decisions"]["allowed"], found["decisions"]["rejected"]
    yield one_line(f"allowed: {_by(allowed)}; rejected: {_by(rejected)}")
    if found["hosts"]:
        yield one_line(f"connections to: {', '.join(found['hosts'])}")
    files = found["files"]
    yield f"files changed: {len(files)}"
    for path, by in list(files.items())[:MOST]:
        yield f"  {one_line(path)}: {by[0] if len(by) == 1 else f'{len(by)} runs'}"
    if len(files) > MOST:
        yield f"  and {len(files) - MOST:_} more"
    yield from _undo_lines(found, selector)


def _undo_lines(found: Mapping[str, Any], selector: str) -> Iterator[str]:
    if found["undoable"]:
        how = f"`haft undo{selector}`" if selector else f"`haft undo {found['undoable'][0]}` and so on"
        yield f"can be undone: {len(found['undoable'])} of {len(found['changed'])} runs with changes ({how})"
    elif found["changed"]:
        yield f"can be undone: none of {len(found['changed'])} runs with changes"
    if found["undone"]:
        yield f"undone: {len(found['undone'])}"
    if found["held"]:
        yield f"held, not in the workspace: {', '.join(found['held'][:MOST])} (`haft changes list`)"
    if found["notCovered"]:
        count = len(found["notCovered"])
        yield f"changes not all known: {count} {'run' if count == 1 else 'runs'} ({', '.join(found['notCovered'][:5])})"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _by(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} by {name}" for name, count in counts.items()) or "none"
