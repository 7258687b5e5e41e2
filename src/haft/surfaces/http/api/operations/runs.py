"""The runs of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from haft.surfaces.http.api.types.runs import Run, RunPage, RunQuery

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask


async def list_runs(ask: Ask, given: RunQuery) -> RunPage:
    """The runs that this identity may see, the newest first."""
    wanted = given.model_dump(exclude={"limit", "cursor"}, exclude_none=True)
    if not ask.identity.may("see-all-runs") and wanted.setdefault("who", ask.identity.name) != ask.identity.name:
        return {"runs": [], "next": None}
    found = await ask.service.runs.find(**wanted, workspace=ask.here.path, before=given.cursor, limit=given.limit + 1)
    more = len(found) > given.limit
    shown = found[: given.limit]
    return {"runs": [cast("Run", each.to_json()) for each in shown], "next": shown[-1].id if more else None}
