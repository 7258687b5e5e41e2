"""What the pages read. All of it comes from the operations of the API, so that a page shows nothing that its person
could not get there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import HaftError, UnknownRequest
from haft.service import InboxFacade
from haft.service import to_json as request_json
from haft.surfaces.http.api.reading import visible_run, with_history
from haft.surfaces.http.console.output_lines import Output, output_of
from haft.surfaces.http.console.run_facts import RunFacts, run_facts

if TYPE_CHECKING:
    from haft.service import Waiting
    from haft.surfaces.http.api.ask import Ask

PAGE: Final = 200
"""How many runs are read at once."""
MOST_COUNTED_FILES: Final = 50
"""The lines of a larger change are not counted for a row of a list."""
MOST_KEPT: Final = 20_000
NO_LINES: Final = (0, 0)


async def runs(ask: Ask, limit: int, **wanted: Any) -> list[RunFacts]:
    """The runs that this person may see, the newest first. `wanted` are the parameters of `listRuns`."""
    found: list[RunFacts] = []
    async for page in run_pages(ask, min(limit, PAGE), **wanted):
        found += page
        if len(found) >= limit:
            break
    return found[:limit]


async def run_pages(ask: Ask, size: int, **wanted: Any) -> AsyncIterator[list[RunFacts]]:
    """The same, page by page."""
    cursor = wanted.pop("cursor", None)
    while True:
        page = await ask.perform("listRuns", {**wanted, "limit": size, "cursor": cursor})
        yield [run_facts(each) for each in page["runs"]]
        cursor = page["next"]
        if cursor is None:
            return


async def one_run(ask: Ask, name: str) -> RunFacts:
    """One run, by its id or the beginning of it."""
    return run_facts(await ask.perform("showRun", {"run": name}))


async def children(ask: Ask, run: str) -> list[RunFacts]:
    """The runs of the calls that a run made, the oldest first."""
    return [run_facts(each) for each in (await ask.perform("listChildren", {"run": run}))["runs"]]


async def output(ask: Ask, name: str, most: int) -> Output:
    """The stored output of a run, by lines: the last `most` of them."""
    record = await visible_run(ask, name)
    return await with_history(ask, lambda history: output_of(history.output(record), most))


async def patch(ask: Ask, run: str) -> tuple[str, Mapping[str, Any]]:
    """The changes of a run as a patch, and what is known about them."""
    found = await ask.perform("showDiff", {"run": run})
    return "".join(map(_text_of, found["files"])), found


def _text_of(file: Mapping[str, Any]) -> str:
    """The patch of one file, or a line that names it, and what a patch cannot show."""
    directory = "directory " if file["kind"] == "directory" else ""
    named = file["path"].replace("\n", "\\n")
    text = file["diff"] or f"{file['type']} {directory}{named}\n"
    return text + (f"({file['note']})\n" if file["note"] else "")


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
    if waiting is None or waiting.workspace != ask.here.path:
        raise UnknownRequest(name)
    return {"run": await one_run(ask, waiting.run), "answer": waiting.answer, "request": waiting}


async def line_counts(ask: Ask, found: Iterable[RunFacts]) -> dict[str, tuple[int, int]]:
    """How many lines each of these runs added and removed, by the run's id. Runs whose changes are no longer kept have
    no lines."""
    wanted = [run for run in found if not run.is_open and 0 < len(run.paths) <= MOST_COUNTED_FILES]
    await _count(ask, [run.id for run in wanted if run.id not in _counted])
    return {run.id: _counted.get(run.id, NO_LINES) for run in wanted}


async def _count(ask: Ask, names: Sequence[str]) -> None:
    if len(_counted) + len(names) > MOST_KEPT:
        _counted.clear()
    for name in names:
        try:
            files = (await ask.perform("showDiff", {"run": name}))["files"]
        except HaftError:
            continue
        _counted[name] = sum(each["added"] for each in files), sum(each["removed"] for each in files)


_counted: dict[str, tuple[int, int]] = {}
"""What a run changed stays the same, so its lines are counted once."""
