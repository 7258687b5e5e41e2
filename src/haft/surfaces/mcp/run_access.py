"""The runs that one MCP client may see: its own, in the workspace of this server. Other runs do not exist for it.

A run of the same client in another workspace does not exist either: an agent that works there has the same name, and
its output must not reach an agent that a hostile file in this workspace directs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from haft.contracts import BadUsage, Principal, UnknownRun
from haft.service import OutputPage, open_history, output_lines, output_page

if TYPE_CHECKING:
    from haft.service import History, Run, RunRecord, ToolService

T = TypeVar("T")

LONGEST_NAME: Final = 100
MOST_IN_BATCH: Final = 10_000
_REVERSALS: Final = ("undo", "redo")


class RunAccess:
    """Finds the runs of a client."""

    def __init__(self, service: ToolService) -> None:
        self._service = service

    def live(self, name: str, caller: Principal) -> Run | None:
        """The run with this id, if it has not ended, is in this process, and belongs to the client."""
        run = self._service.runs.live(name)
        return run if run is not None and is_run_of(run, caller) else None

    def is_of(self, record: RunRecord, caller: Principal) -> bool:
        """Whether a stored run belongs to the client, and to this workspace."""
        return _is_of(record, caller, self._service.workspace)

    async def find(self, name: str, caller: Principal) -> RunRecord:
        """A run of the client, by its id or the beginning of its id. Raises `UnknownRun` if there is none, also if the
        run belongs to someone else."""
        return await self._read(lambda history: self._own(history, name, caller))

    async def batch(self, name: str, caller: Principal) -> str:
        """The id of a batch, if all its runs belong to the client. Raises `BadUsage` otherwise."""
        found = await self._service.runs.find(batch=name, limit=MOST_IN_BATCH)
        if not found or not all(self.is_of(record, caller) for record in found):
            raise BadUsage(f"you have no batch called `{name[:LONGEST_NAME]}`", hint="`runs` lists your runs")
        return name

    async def recent(self, caller: Principal, **wanted: Any) -> list[RunRecord]:
        """The last runs of the client, the newest first."""
        found = await self._service.runs.find(who=caller.who, workspace=self._service.workspace, **wanted)
        return [record for record in found if self.is_of(record, caller)]

    async def last_change(self, caller: Principal) -> str:
        """The last run of the client in this workspace whose changes can be undone. Raises `BadUsage` if there is
        none."""
        for record in await self.recent(caller, limit=200):
            if record.changes["state"] == "committed" and not is_reversal(record):
                return record.id
        raise BadUsage("there is nothing to undo: none of your last runs changed files", hint="`runs` lists your runs")

    async def page(self, name: str, caller: Principal, offset: int = 0) -> OutputPage:
        """The output of a run from byte `offset` on, as much as fits on a page."""
        return await self._read(lambda history: output_page(history, self._own(history, name, caller), offset))

    async def lines(
        self, name: str, caller: Principal, first: int, last: int | None, containing: str | None
    ) -> OutputPage:
        """Lines of the output of a run: from line `first` to line `last`, and only those with the text `containing`, as
        many as fit on a page. `next` of the result is the number of a line."""
        return await self._read(
            lambda history: output_lines(history, self._own(history, name, caller), first, last, containing)
        )

    def _own(self, history: History, name: str, caller: Principal) -> RunRecord:
        unknown = BadUsage(
            f"you have no run called `{name[:LONGEST_NAME]}`", hint="`runs` lists your runs; give the whole id"
        )
        try:
            record = history.find(name)
        except (UnknownRun, BadUsage):  # If the beginning of an id fits several runs, these may belong to others.
            raise unknown from None
        if not self.is_of(record, caller):
            raise unknown
        return record

    async def _read(self, work: Callable[[History], T]) -> T:
        def read() -> T:
            history = open_history(self._service.home)
            if history is None:
                raise UnknownRun("?")
            with contextlib.closing(history):
                return work(history)

        return await asyncio.to_thread(read)


def is_run_of(run: Run, caller: Principal) -> bool:
    """Whether a live run belongs to the client."""
    principal = run.call.principal
    return (principal.who, principal.kind) == (caller.who, caller.kind)


def is_reversal(record: RunRecord) -> bool:
    """Whether haft's own undo or redo made this run, and not a tool with such a name. Only tools have a digest."""
    return record.tool in _REVERSALS and not record.record["digest"]


def _is_of(record: RunRecord, caller: Principal, workspace: str) -> bool:
    found = (record.who, record.record.get("whoKind", "person"), record.record["workspace"])
    return found == (caller.who, caller.kind, workspace)
