"""The history of a file of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from haft.contracts import HaftError, iso_time
from haft.surfaces.http.api.operations.changes import inside
from haft.surfaces.http.api.reading import visible_run, with_changes

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.files import Edit, FileHistory, HistoryGiven
    from haft.surfaces.http.api.types.runs import Run


async def list_file_history(ask: Ask, given: HistoryGiven) -> FileHistory:
    """The last changes of a path, with their runs."""
    path = inside(given.path)
    found = await with_changes(ask, lambda changes: changes.file_history(ask.here.path, path, given.limit + 1))
    edits = [await _edit(ask, each.to_json()) for each in found[: given.limit]]
    return {"path": path, "edits": edits, "isWhole": len(found) <= given.limit}


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
        return cast("Run", (await visible_run(ask, run)).to_json())
    except HaftError:  # It is no longer stored.
        return None
