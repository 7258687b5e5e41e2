"""The changes of runs: what they are, and what becomes of them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from haft.contracts import BadUsage, UnknownRun, is_batch_id, iso_time
from haft.service import Filter
from haft.surfaces.http.api.endings import ending_of
from haft.surfaces.http.api.idempotency import once
from haft.surfaces.http.api.problems import Forbidden, HttpError
from haft.surfaces.http.api.reading import may_see, visible_run, with_changes, with_history

if TYPE_CHECKING:
    from haft.contracts import RunId
    from haft.service import ChangesFacade, Run, RunRecord
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.endings import Ending
    from haft.surfaces.http.api.types.changes import (
        ApplyGiven,
        Blame,
        BlamedLine,
        Diff,
        DiffGiven,
        DropGiven,
        FileGiven,
        HeldRuns,
        Reversal,
        ReverseGiven,
        Settled,
    )
    from haft.surfaces.http.api.types.given import Nothing


async def show_diff(ask: Ask, given: DiffGiven) -> Diff:
    """The changes of a run, file by file; of a run that has not ended, those so far."""
    record = await visible_run(ask, given.run)
    return await with_changes(ask, lambda changes: _diff(changes, record, given.path))


def _diff(changes: ChangesFacade, record: RunRecord, path: str | None) -> Diff:
    parts = changes.parts(record.id, record.changed_paths)
    names = [part.run for part in parts if part.state in ("committed", "held")] or [part.run for part in parts]
    files: dict[str, Any] = {}
    conflicts: list[Any] = []
    for name in names or [record.id]:
        if changes.ledger.get(name) is None:
            continue
        found = changes.find(name)
        conflicts += [conflict.to_json() for conflict in found.conflicts]
        for each in changes.differences(found):
            if path in (None, each.change.path):
                files.setdefault(each.change.path, each.to_json())
    if not files and record.is_open:
        with changes.live(record.id) as so_far:
            for each in () if so_far is None else so_far.differences():
                if path in (None, each.change.path):
                    files[each.change.path] = each.to_json()
    known = record.changes
    if not files:  # The contents are not kept: the record has the list.
        unknown = {"added": 0, "removed": 0, "diff": None, "note": "its content is not kept"}
        files = {each["path"]: {**each, **unknown} for each in known["files"] if path in (None, each["path"])}
    shape = {
        "run": record.id,
        **{name: known[name] for name in ("engine", "complete", "reason", "state")},
        "conflicts": conflicts,
        "files": [*files.values()],
    }
    if parts:
        shape["parts"] = [part.to_json() for part in parts]
    return cast("Diff", shape)


async def undo_runs(ask: Ask, given: ReverseGiven) -> Reversal:
    """Undo the changes of runs, all or none."""
    return await _reverse(ask, given, "undo")


async def redo_runs(ask: Ask, given: ReverseGiven) -> Reversal:
    """Bring back changes that were undone."""
    if given.thread is not None or not given.runs:
        raise BadUsage("a redo names the runs that were undone")
    return await _reverse(ask, given, "redo")


async def _reverse(ask: Ask, given: ReverseGiven, direction: Any) -> Reversal:
    if given.runs and given.thread is not None:
        raise BadUsage("an undo takes runs or a thread, not both")
    thread = None if given.thread is None else ask.identity.principal(given.thread).thread
    for name in given.runs:
        await _require_undo(ask, name)
    if thread is not None and not ask.identity.may("undo-all"):
        own = await with_history(ask, lambda history: history.runs(_of_thread(ask, str(thread))))
        for record in own:
            _require_own(ask, record)
    changes, principal = ask.service.changes, ask.identity.principal()
    if given.plan:
        runs = given.runs or ([] if thread is not None else [await _last_run(ask)])
        found = await changes.plan(direction, *runs, thread=thread, force=given.force)
        return cast("Reversal", {**found.to_json(None), "ended": True, "error": None})

    def start(ids: Sequence[RunId]) -> Sequence[Run]:
        run_id = ids[0] if ids else None
        if direction == "undo":
            return [changes.undo(*given.runs, thread=thread, force=given.force, who=principal, run_id=run_id)]
        return [changes.redo(*given.runs, force=given.force, who=principal, run_id=run_id)]

    [run] = await once(ask, direction, given, 1, start)
    ending = await ending_of(ask, run, given.wait)
    empty = {"runs": given.runs, "plan": [], "conflicts": []}
    return cast("Reversal", {**empty, **_result(ending), "undo": run.id, **_end(ending)})


def _of_thread(ask: Ask, thread: str) -> Any:
    return Filter(thread=thread, workspace=ask.here.path, limit=10_000)


async def _last_run(ask: Ask) -> str:
    """The run that an undo without named runs takes."""
    row = await with_changes(ask, lambda changes: changes.ledger.last(ask.here.path, ask.identity.name))
    if row is None:
        raise BadUsage(f"there is nothing to undo: {ask.identity.name} has no run here with changes to undo")
    return row.run


async def _require_undo(ask: Ask, name: str) -> None:
    """Raise an error if the identity may not undo this run or batch, or does not see it."""
    if not is_batch_id(name):
        _require_own(ask, await visible_run(ask, name))
        return
    for record in await with_history(ask, lambda history: history.of_batch(name)):
        if record.record["workspace"] != ask.here.path or not may_see(ask, record):
            raise UnknownRun(name)
        _require_own(ask, record)


def _require_own(ask: Ask, record: RunRecord) -> None:
    if not ask.identity.may("undo-all") and not ask.identity.owns(record):
        raise Forbidden(ask.identity, "undo-all")


async def apply_changes(ask: Ask, given: ApplyGiven) -> Settled:
    """Apply the held changes of a run, or a part of them."""
    record = await visible_run(ask, given.run)
    apply, principal = ask.service.changes.apply, ask.identity.principal()

    def start(ids: Sequence[RunId]) -> Sequence[Run]:
        return [apply(record.id, paths=given.paths, who=principal, run_id=ids[0] if ids else None)]

    [run] = await once(ask, "applyChanges", given, 1, start)
    return await _settled(ask, record.id, run, given.wait)


async def drop_changes(ask: Ask, given: DropGiven) -> Settled:
    """Drop the held changes of a run."""
    record = await visible_run(ask, given.run)
    _require_own(ask, record)
    drop, principal = ask.service.changes.drop, ask.identity.principal()

    def start(ids: Sequence[RunId]) -> Sequence[Run]:
        return [drop(record.id, who=principal, run_id=ids[0] if ids else None)]

    [run] = await once(ask, "dropChanges", given, 1, start)
    return await _settled(ask, record.id, run, given.wait)


async def _settled(ask: Ask, name: str, run: Run | RunRecord, seconds: float) -> Settled:
    ending = await ending_of(ask, run, seconds)
    conflicts = _result(ending).get("conflicts", [])
    return cast("Settled", {"run": name, "settledBy": run.id, "conflicts": conflicts, **_end(ending)})


def _result(ending: Ending) -> dict[str, Any]:
    result = ending.shape["result"]
    return result if isinstance(result, dict) else {}


def _end(ending: Ending) -> dict[str, Any]:
    return {"ended": ending.has_ended, "error": ending.shape["error"] if ending.has_ended else None}


async def list_held(ask: Ask, _given: Nothing) -> HeldRuns:
    """The runs of the workspace with held changes, the newest first."""
    rows = await with_changes(ask, lambda changes: changes.ledger.all(ask.here.path, "held"))
    return {
        "runs": [
            {
                "run": row.run,
                "workspace": row.workspace,
                "who": row.who,
                "thread": row.thread,
                "parent": row.parent,
                "engine": row.engine,
                "files": row.files,
                "reason": row.reason,
                "heldAt": iso_time(row.at),
            }
            for row in reversed(rows)
            if ask.identity.may("see-all-runs") or ask.identity.owns(row)
        ]
    }


async def blame_file(ask: Ask, given: FileGiven) -> Blame:
    """For each line of a file, the run that wrote it."""
    path = inside(given.path)
    blamed = await with_changes(ask, lambda changes: changes.blame(ask.here.path, path))
    lines = []
    for number, line in enumerate(blamed, start=1):
        shape = line.origin.to_json()
        if line.origin.at is not None:
            shape["at"] = datetime.datetime.fromtimestamp(line.origin.at, datetime.UTC).isoformat()
        lines.append(cast("BlamedLine", {"line": number, **shape, "text": line.text}))
    return {"path": path, "lines": lines}


def inside(path: str) -> str:
    """A path relative to the workspace. Raises `HttpError` if it leaves the workspace."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or not parts or "\0" in path:
        raise HttpError("invalid-request", f"`{path[:200]}` is not a path in the workspace")
    return "/".join(parts)
