"""What the pages read: runs, requests and line counts. Each function checks what the person may see, as the routes of
the API do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import HaftError, UnknownRequest
from haft.service import InboxFacade
from haft.service import to_json as request_json
from haft.surfaces.http.api.problems import Forbidden
from haft.surfaces.http.console.diffs import counts_of
from haft.surfaces.http.console.run_facts import RunFacts, run_facts

if TYPE_CHECKING:
    from haft.service import RunRecord, Waiting
    from haft.surfaces.http.api.ask import Ask

MOST_COUNTED_FILES: Final = 50
"""The lines of a larger change are not counted for a row of a list."""


async def runs(ask: Ask, **wanted: Any) -> list[RunFacts]:
    """The runs that this person may see, the newest first."""
    return [run_facts(each.to_json()) for each in await records(ask, **wanted)]


async def records(ask: Ask, **wanted: Any) -> list[RunRecord]:
    """Like `runs`, as they are stored."""
    if not ask.identity.may("see-all-runs"):
        if wanted.setdefault("who", ask.identity.name) != ask.identity.name:
            return []
        ask.require("see-own-runs")
    return await ask.service.runs.find(workspace=ask.service.workspace, **wanted)


async def one_run(ask: Ask, name: str) -> RunRecord:
    """One run. Raises `Forbidden` if it is the run of somebody else, and this person may see only their own."""
    found = await ask.service.runs.record(name)
    if not ask.identity.may("see-all-runs") and not ask.identity.owns(found):
        raise Forbidden(ask.identity, "see-all-runs")
    return found


async def requests(ask: Ask) -> list[Waiting]:
    """The requests that wait in this workspace, those first that expire first; none for who may not see them."""
    if not ask.identity.may("see-inbox"):
        return []
    return sorted(await ask.service.approvals.waiting(), key=lambda each: each.expires_at)


def request_facts(waiting: Waiting) -> dict[str, Any]:
    """A request in its JSON form, as `haft inbox --json` prints it."""
    return request_json(waiting)


async def answered(ask: Ask, name: str) -> dict[str, Any]:
    """What became of a request that no longer waits: its run, and who answered, if somebody did. Raises
    `UnknownRequest` if there is none in this workspace."""

    def read() -> Waiting | None:
        with contextlib.closing(InboxFacade(ask.server.home)) as inbox:
            return inbox.seen(name)

    waiting = await asyncio.to_thread(read)
    if waiting is None or waiting.workspace != ask.service.workspace:
        raise UnknownRequest(name)
    return {"run": run_facts((await one_run(ask, waiting.run)).to_json()), "answer": waiting.answer, "request": waiting}


async def line_counts(ask: Ask, found: Iterable[RunFacts]) -> dict[str, tuple[int, int]]:
    """How many lines each of these runs added and removed, by the run's id. Runs whose changes are no longer kept are
    left out."""
    wanted = [run for run in found if run.paths and len(run.paths) <= MOST_COUNTED_FILES]
    return await asyncio.to_thread(_counts, ask, [run.id for run in wanted])


def _counts(ask: Ask, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    found = {}
    for name in names:
        if name not in _counted:
            try:
                added, removed, _ = counts_of(ask.service.changes.patch(name))
            except HaftError:
                continue
            if len(_counted) >= _MOST_KEPT:
                _counted.clear()
            _counted[name] = added, removed
        found[name] = _counted[name]
    return found


_counted: dict[str, tuple[int, int]] = {}
"""What a run changed stays the same, so its lines are counted once."""
_MOST_KEPT: Final = 20_000
