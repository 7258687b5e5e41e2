"""The runs that one MCP client may see: its own. A run of anyone else does not exist for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from haft.contracts import BadUsage, Principal, UnknownRun
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.service import History, Run, RunRecord, ToolService

T = TypeVar("T")

LONGEST_PAGE: Final = 50_000
"""The longest text of one page of output, in characters."""
MOST_PIECES: Final = 100_000
LONGEST_NAME: Final = 100
_REVERSALS: Final = ("undo", "redo")


@dataclass(frozen=True, slots=True)
class Page:
    """A piece of a run's output."""

    text: str
    next: int | None
    """Where the next page begins; None if this is the last page."""
    total: int
    """The length of the whole output in bytes."""


class RunAccess:
    """Finds the runs of a client."""

    def __init__(self, service: ToolService) -> None:
        self._service = service

    def live(self, name: str, caller: Principal) -> Run | None:
        """The run with this id, if it has not ended, is in this process, and belongs to the client."""
        run = self._service.runs.live(name)
        if run is None:
            return None
        principal = run.call.principal
        return run if (principal.who, principal.kind) == (caller.who, caller.kind) else None

    async def find(self, name: str, caller: Principal) -> RunRecord:
        """A run of the client, by its id or the beginning of its id. Raises `UnknownRun` if there is none, also if the
        run belongs to someone else."""
        return await self._read(lambda history: _own(history, name, caller))

    async def recent(self, caller: Principal, **wanted: Any) -> list[RunRecord]:
        """The last runs of the client, the newest first."""
        found = await self._service.runs.find(who=caller.who, **wanted)
        return [record for record in found if _is_of(record, caller)]

    async def last_change(self, caller: Principal) -> str:
        """The last run of the client in this workspace whose changes can be undone. Raises `BadUsage` if there is
        none."""
        for record in await self.recent(caller, workspace=self._service.workspace, limit=200):
            if record.changes["state"] == "committed" and record.tool not in _REVERSALS:
                return record.id
        raise BadUsage("there is nothing to undo: none of your last runs changed files", hint="`runs` lists your runs")

    async def page(self, name: str, caller: Principal, offset: int = 0) -> Page:
        """The output of a run from byte `offset` on, as much as fits on a page."""
        return await self._read(lambda history: _page(history, _own(history, name, caller), offset))

    async def lines(self, name: str, caller: Principal, first: int, last: int | None, containing: str | None) -> Page:
        """Lines of the output of a run: from line `first` to line `last`, and only those with the text `containing`, as
        many as fit on a page. `next` of the result is the number of a line."""
        return await self._read(lambda history: _lines(history, _own(history, name, caller), first, last, containing))

    async def _read(self, work: Callable[[History], T]) -> T:
        from haft.service import open_history

        def read() -> T:
            history = open_history(self._service.home)
            if history is None:
                raise UnknownRun("?")
            with contextlib.closing(history):
                return work(history)

        return await asyncio.to_thread(read)


def _is_of(record: RunRecord, caller: Principal) -> bool:
    return record.who == caller.who and record.record.get("whoKind", "person") == caller.kind


def _own(history: History, name: str, caller: Principal) -> RunRecord:
    unknown = BadUsage(f"you have no run called `{name[:LONGEST_NAME]}`", hint="`runs` lists your runs")
    try:
        record = history.find(name)
    except UnknownRun:
        raise unknown from None
    except BadUsage:  # The beginning of the id fits several runs, which may belong to others.
        raise BadUsage(f"`{name[:LONGEST_NAME]}` is the beginning of several ids", hint="give the whole id") from None
    if not _is_of(record, caller):
        raise unknown
    return record


def _page(history: History, record: RunRecord, offset: int) -> Page:
    data, at = bytearray(), 0
    for piece in _pieces(history, record):
        begin = max(0, offset - at)
        at += len(piece)
        if begin < len(piece) and len(data) <= LONGEST_PAGE:
            data += piece[begin : begin + LONGEST_PAGE + 1 - len(data)]
    page = bytes(data[:LONGEST_PAGE])
    if len(data) > LONGEST_PAGE:
        page = _whole_characters(page)
    end = offset + len(page)
    return Page(page.decode("utf-8", "replace"), end if end < at else None, at)


def _pieces(history: History, record: RunRecord) -> Iterator[bytes]:
    """The stored output. A note stands for bytes that were not kept."""
    for frame in history.output(record):
        if frame.skipped:
            yield f"\n[{frame.skipped:_} bytes were not kept]\n".encode()
        yield frame.data


def _whole_characters(data: bytes) -> bytes:
    """The data without a character at its end that goes on after it."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if length <= back else data[:-back]
    return data


def _lines(history: History, record: RunRecord, first: int, last: int | None, containing: str | None) -> Page:
    chosen: list[str] = []
    length, following = 0, None
    data = b"".join(islice(_pieces(history, record), MOST_PIECES))
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(keepends=True), 1):
        if number < first or (containing is not None and containing not in line):
            continue
        if last is not None and number > last:
            break
        if chosen and length + len(line) > LONGEST_PAGE:
            following = number
            break
        chosen.append(line if len(line) <= LONGEST_PAGE else f"{line[:LONGEST_PAGE]}[the line goes on]\n")
        length += len(line)
    return Page("".join(chosen), following, len(data))
