"""`haft log --stat`: a report of many runs: their calls, approvals and changed files, and what can be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import iso_time
from haft.service import ChangesPart
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
    changed = [run for run in calls if run.changed_paths]
    parts = {run.id: _parts(run, changes) for run in changed}
    workspaces: dict[str, dict[str, list[str]]] = {}
    for run in changed:
        files = workspaces.setdefault(run.record["workspace"], {})
        committed = (path for part in parts[run.id] if part.state == "committed" for path in part.paths)
        for path in dict.fromkeys(committed):
            files.setdefault(path, []).append(run.id)
    workspaces = {name: dict(sorted(files.items())) for name, files in sorted(workspaces.items()) if files}
    states = {name: {part.state for part in found} for name, found in parts.items()}
    return {
        "threads": sorted({run.thread for run in runs}),
        "who": sorted({run.who for run in runs}),
        "from": iso_time(min(run.started_at for run in runs)) if runs else None,
        "to": iso_time(max(ended)) if ended else None,
        "calls": len(calls),
        "statuses": dict(Counter(run.status for run in calls)),
        "tools": dict(Counter(run.tool for run in calls).most_common()),
        "decisions": _decisions(calls),
        "files": _together(workspaces.values()),
        "workspaces": workspaces,
        "hosts": sorted({each["host"] for run in calls for each in run.outcome["sandbox"].get("connections", ())}),
        "changed": list(parts),
        "undoable": [name for name, found in parts.items() if _is_undoable(found, changes)],
        "held": [name for name, found in states.items() if "held" in found],
        "undone": [name for name, found in states.items() if "undone" in found and "committed" not in found],
        "notCovered": [run.id for run in calls if not run.is_open and not run.record["changes"]["complete"]],
    }


def _parts(run: RunRecord, changes: ChangesFacade | None) -> Sequence[ChangesPart]:
    """The parts of a run's changes that someone applied separately, with the rest; or the whole as one part."""
    found = [] if changes is None else changes.parts(run.id, run.changed_paths)
    return found or [ChangesPart(run.id, run.record["changes"]["state"], tuple(run.changed_paths))]


def _together(workspaces: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    """The changed paths of all workspaces, each with its runs."""
    found: dict[str, list[str]] = {}
    for files in workspaces:
        for path, runs in files.items():
            found.setdefault(path, []).extend(runs)
    return {path: found[path] for path in sorted(found)}


def _is_undoable(parts: Sequence[ChangesPart], changes: ChangesFacade | None) -> bool:
    rows = [] if changes is None else [changes.ledger.get(part.run) for part in parts]
    return any(row is not None and row.kept and row.state == "committed" and row.files > 0 for row in rows)


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
    yield from _file_lines(found["workspaces"], {run.record["workspace"] for run in runs})
    yield from _undo_lines(found, selector)


def _file_lines(workspaces: Mapping[str, Mapping[str, Sequence[str]]], mixed: Collection[str]) -> Iterator[str]:
    """The changed files. If the runs belong to several workspaces, the files of each stand below its name."""
    count, left = sum(map(len, workspaces.values())), MOST
    yield f"files changed: {count}"
    for workspace, files in workspaces.items():
        indent = "  "
        if len(mixed) > 1 and left:
            yield f"  in {one_line(workspace)}:"
            indent = "    "
        for path, by in list(files.items())[:left]:
            yield f"{indent}{one_line(path)}: {by[0] if len(by) == 1 else f'{len(by)} runs'}"
        left = max(0, left - len(files))
    if count > MOST:
        yield f"  and {count - MOST:_} more"


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
