"""Files of a workspace: their history, and who wrote each line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from haft.contracts import UnknownRun, iso_time
from haft.service import RunRecord
from haft.surfaces.http.api.types.files import Blame, Edit, FileGiven, FileHistory, HistoryGiven, Line
from haft.surfaces.http.api.types.runs import Run

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask


async def list_file_history(ask: Ask, given: HistoryGiven) -> FileHistory:
    """The last changes of a path, with their runs."""
    found = await ask.service.changes.file_history(given.path, limit=given.limit + 1)
    edits = [await _edit(ask, each.to_json()) for each in found[: given.limit]]
    return {"path": given.path, "edits": edits, "isWhole": len(found) <= given.limit}


async def _edit(ask: Ask, edit: dict[str, Any]) -> Edit:
    is_undone = edit["state"] == "undone" and edit["latest"] != edit["run"]
    return cast(
        "Edit",
        {
            **{name: value for name, value in edit.items() if name not in ("verb", "latest")},
            "run": await _run(ask, edit["run"]),
            "undoneBy": await _run(ask, edit["latest"]) if is_undone else None,
            "at": None if edit["at"] is None else iso_time(edit["at"]),
        },
    )


async def _run(ask: Ask, run: str | None) -> Run | None:
    if run is None:
        return None
    try:
        found = await ask.service.runs.get(run)
    except UnknownRun:
        return None
    return cast("Run", found.to_json()) if isinstance(found, RunRecord) else None


async def blame_file(ask: Ask, given: FileGiven) -> Blame:
    """The lines of a file, each with the run that wrote it."""
    lines = []
    for number, line in enumerate(await ask.service.changes.blame(given.path), start=1):
        origin = line.origin.to_json()
        at = None if origin["at"] is None else iso_time(origin["at"])
        lines.append(cast("Line", {"line": number, **origin, "at": at, "text": line.text}))
    return {"path": given.path, "lines": lines}
