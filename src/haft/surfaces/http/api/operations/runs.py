"""The runs of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from haft.contracts import UnknownRun
from haft.service import output_lines, output_page
from haft.surfaces.http.api.problems import Forbidden, InvalidRequest
from haft.surfaces.http.api.reading import may_see, visible_run, with_history

if TYPE_CHECKING:
    from haft.service import RunRecord
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.calls import BatchNamed, BatchRuns, Cancelled, Outcome
    from haft.surfaces.http.api.types.given import RunGiven
    from haft.surfaces.http.api.types.runs import Output, OutputGiven, Run, RunList, RunPage, RunQuery


async def list_runs(ask: Ask, given: RunQuery) -> RunPage:
    """The runs that this identity may see, the newest first."""
    wanted = given.model_dump(exclude={"limit", "cursor", "open"}, exclude_none=True)
    if not ask.identity.may("see-all-runs") and wanted.setdefault("who", ask.identity.name) != ask.identity.name:
        return {"runs": [], "next": None}
    found = await ask.service.runs.find(
        **wanted, is_open=given.open, workspace=ask.here.path, before=given.cursor, limit=given.limit + 1
    )
    shown = found[: given.limit]
    return {"runs": [run_shape(each) for each in shown], "next": shown[-1].id if len(found) > given.limit else None}


async def show_run(ask: Ask, given: RunGiven) -> Run:
    """One run, as far as it is known."""
    return run_shape(await visible_run(ask, given.run))


async def list_children(ask: Ask, given: RunGiven) -> RunList:
    """The runs of the calls that a run made, the oldest first."""
    record = await visible_run(ask, given.run)
    found = await with_history(ask, lambda history: history.children_of(record.id))
    return {"runs": [run_shape(each) for each in found if may_see(ask, each)]}


async def read_output(ask: Ask, given: OutputGiven) -> Output:
    """A page of the stored output of a run: from a byte on, or lines."""
    by_line = (given.first, given.last, given.grep) != (None, None, None)
    if by_line and given.offset is not None:
        raise InvalidRequest(["`offset` cannot be used together with `first`, `last` and `grep`"])
    record = await visible_run(ask, given.run)
    page = await with_history(
        ask,
        lambda history: (
            output_lines(history, record, given.first or 1, given.last, given.grep)
            if by_line
            else output_page(history, record, given.offset or 0)
        ),
    )
    return {"run": record.id, "output": page.text, "next": page.next, "bytes": page.total}


async def cancel_run(ask: Ask, given: RunGiven) -> Cancelled:
    """Cancel a run."""
    record = await visible_run(ask, given.run)
    _require_cancel(ask, record)
    done = await ask.service.runs.cancel(record.id, who=ask.identity.principal())
    return {"run": record.id, "cancelled": done}


async def show_batch(ask: Ask, given: BatchNamed) -> BatchRuns:
    """The outcomes of a batch, in the order of its calls."""
    found = await _batch(ask, given.batch)
    return {
        "batch": given.batch,
        "ended": not any(each.is_open for each in found),
        "outcomes": [cast("Outcome", each.outcome) for each in found],
    }


async def cancel_batch(ask: Ask, given: BatchNamed) -> Cancelled:
    """Cancel the calls of a batch that have not ended."""
    for each in await _batch(ask, given.batch):
        _require_cancel(ask, each)
    done = await ask.service.batches.cancel(given.batch, who=ask.identity.principal())
    return {"run": given.batch, "cancelled": done}


async def _batch(ask: Ask, batch: str) -> list[RunRecord]:
    found = await with_history(ask, lambda history: history.of_batch(batch))
    found = [each for each in found if each.record["workspace"] == ask.here.path and may_see(ask, each)]
    if not found:
        raise UnknownRun(batch)
    return found


def _require_cancel(ask: Ask, record: RunRecord) -> None:
    if not ask.identity.may("cancel-all") and not (ask.identity.may("cancel-own") and ask.identity.owns(record)):
        raise Forbidden(ask.identity, "cancel-all")


def run_shape(record: RunRecord) -> Run:
    """A run, as `haft show --json` prints it."""
    return cast("Run", record.to_json())
