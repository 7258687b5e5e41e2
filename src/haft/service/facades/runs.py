"""The runs in a host's state home: methods that find, list and cancel them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

from haft.contracts import BadUsage, HostId, Principal, RunId, near_miss
from haft.pipeline import Run
from haft.runs import Entry, Filter, RunRecord
from haft.service.assembly import Host
from haft.service.changes import with_current_changes
from haft.service.output_pages import OutputPage, output_page
from haft.service.paused_runs import request_cancel
from haft.service.run_events import RunEvents

FILTERS: Final = tuple(field.name for field in dataclasses.fields(Filter))


class HostRuns:
    """The runs of a state home. Calling this object lists them and blocks the event loop; `find`, `get` and `cancel` do
    not."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __call__(self, **wanted: Any) -> list[RunRecord]:
        """The runs, the newest first; filter by tool, status, who, thread, parent, path, since, before, limit."""
        return self._up_to_date(self._host.history().runs(wanted_runs(wanted)))

    async def find(self, **wanted: Any) -> list[RunRecord]:
        """Like calling this object, without blocking the event loop."""
        found = wanted_runs(wanted)
        return await self._host.with_history(lambda history: self._up_to_date(history.runs(found)))

    def live(self, run: str) -> Run | None:
        """The live run with this id; None if this host has no such run."""
        return self._host.running().live.get(RunId(run))

    def one(self, run: str) -> Run | RunRecord:
        """The run with this id: the `Run` if it is live in this host, else its stored record. Blocks the event loop."""
        return self.live(run) or self._up_to_date([self._host.history().find(run)])[0]

    async def get(self, run: str) -> Run | RunRecord:
        """Like `one`, without blocking the event loop."""
        live = self.live(run)
        if live is not None:
            return live
        return await self._host.with_history(lambda history: self._up_to_date([history.find(run)])[0])

    async def record(self, run: str) -> RunRecord:
        """The stored record of a run. A live run that is not stored yet is stored first."""
        live = self.live(run)
        if live is not None:
            live.save()
        return await self._host.with_history(lambda history: self._up_to_date([history.find(run)])[0])

    async def output(self, run: str, offset: int = 0) -> OutputPage:
        """The stored output of a run from byte `offset` on, as much as fits on a page."""
        return await self._host.with_history(lambda history: output_page(history, history.find(run), offset))

    def events(self, run: str, after: int = -1) -> RunEvents:
        """The events of a run that have a number above `after`, of any host: see `RunEvents`."""
        return RunEvents(self._host, RunId(run), after)

    @property
    def host(self) -> HostId:
        """The name of this host, which runs have while they are its own."""
        return self._host.lease.host

    @property
    def busy(self) -> int:
        """How many runs of this host are at work, or will be without anyone doing anything. Those that wait for a
        person are not."""
        pipeline = self._host.pipeline
        return 0 if pipeline is None else sum(run.status != "blocked-on-user" for run in pipeline.live.values())

    def listen(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Tell `listener` each run of this host whenever it was saved. Returns the function that ends this."""
        self._host.running()
        return self._host.run_writer.listen(listener)

    def stop(self, run: str, who: str | Principal | None = None) -> bool:
        """Cancel a run of this host or of another host. Returns False if the run had already ended. Blocks the event
        loop."""
        principal = self._host.acting(who)
        if self._host.cancel_live(RunId(run), principal):
            return True
        history = self._host.history()
        record = history.find(run)
        if record.is_open:
            request_cancel(self._host.home, history, [record], principal)
        return record.is_open

    async def cancel(self, run: str, *, who: str | Principal | None = None) -> bool:
        """Like `stop`, without blocking the event loop."""
        principal = self._host.acting(who)
        if self._host.cancel_live(RunId(run), principal):
            return True
        record = await self._host.with_history(lambda history: history.find(run))
        if record.is_open:
            await self._host.with_history(lambda history: request_cancel(self._host.home, history, [record], principal))
        return record.is_open

    def _up_to_date(self, runs: list[RunRecord]) -> list[RunRecord]:
        if self._host.pipeline is None:
            return runs
        return [with_current_changes(self._host.changes().ledger, run) for run in runs]


def wanted_runs(wanted: dict[str, Any]) -> Filter:
    """The filter with these fields. Raises `BadUsage` if there is no such field."""
    for name in wanted:
        if name not in FILTERS:
            near = near_miss(name, FILTERS)
            hint = f"did you mean `{near}`?" if near else f"they are {', '.join(FILTERS)}"
            raise BadUsage(f"runs cannot be filtered by `{name}`", hint=hint)
    return Filter(**wanted)
