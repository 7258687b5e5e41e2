"""What happens in a state home, for a server that shows it to many: the runs of all hosts, and the requests in the
inbox.

One `StateNews` serves a whole process. What the own services save is told by their writers. For other processes, one
counter of the database says whether anything was written; only then are the new and the open runs read. Runs whose host
was killed are ended as soon as somebody looks at this.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from haft.contracts import HaftError, RunId
from haft.policy import Inbox, Waiting
from haft.runs import Filter, RunRecord
from haft.service.state_reader import recover_dead_hosts
from haft.storage import Connection, open_stores
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.runs import Entry
    from haft.service.service import ToolService

RECOVER_SECONDS: Final = 5.0
_ALL: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class News:
    """What happened since the last look."""

    runs: list[RunRecord] = field(default_factory=list)
    """Each run that was saved, as it is now."""
    asked: list[Waiting] = field(default_factory=list)
    """New requests in the inbox."""
    settled: list[Waiting] = field(default_factory=list)
    """Requests that nobody can answer any more."""


class StateNews:
    """Looks at a state home again and again. Use it from one event loop."""

    def __init__(self, services: Sequence[ToolService]) -> None:
        """`services` are those of this process; all have the same state home."""
        self._services = services
        self._home = services[0].home
        self._hosts = [service.runs.host for service in services]
        self._saved: dict[RunId, bytes] = {}
        self._elsewhere: dict[RunId, int] = {}
        """The open runs of other hosts, with the number of the status that was seen last."""
        self._newest = 0
        self._asked: dict[str, Waiting] = {}
        self._version: object = None
        self._connection: Connection | None = None
        self._endings: list[Callable[[], None]] = []
        self._looked_for_dead = time.monotonic()

    async def begin(self) -> None:
        """Note what there is. From now on, `look` returns what is new."""
        self._endings = [service.runs.listen(self._note) for service in self._services]
        self._connection = await asyncio.to_thread(lambda: open_stores(self._home).connect())
        self._version = self._connection.version()
        await asyncio.to_thread(self._read_first, self._connection)

    async def look(self) -> News | None:
        """What happened since the last look; None if nothing did. This is cheap if nothing did."""
        connection = self._connection
        assert connection is not None
        version = connection.version()
        is_dead_sought = bool(self._elsewhere) and time.monotonic() - self._looked_for_dead > RECOVER_SECONDS
        if version == self._version and not self._saved and not is_dead_sought:
            return None
        has_changed, self._version = version != self._version, version
        saved, self._saved = self._saved, {}
        return await asyncio.to_thread(self._read, connection, saved, has_changed, is_dead_sought)

    def close(self) -> None:
        """Look no more."""
        for end in self._endings:
            end()
        self._endings = []
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _note(self, entry: Entry) -> None:
        self._saved[entry.run] = entry.line

    def _read_first(self, connection: Connection) -> None:
        self._newest, _ = connection.runs.added(_ALL, self._hosts, [])
        for text in connection.runs.select(Filter(is_open=True, limit=_ALL)):
            run = RunRecord.from_text(text)
            if run.host not in self._hosts:
                self._elsewhere[run.id] = run.last_seq
        self._asked = {each.id: each for each in Inbox(connection).waiting()}

    def _read(
        self, connection: Connection, saved: dict[RunId, bytes], has_changed: bool, is_dead_sought: bool
    ) -> News | None:
        if is_dead_sought:
            self._looked_for_dead = time.monotonic()
            with contextlib.suppress(HaftError):  # Whoever looks next tries again.
                recover_dead_hosts(self._home)
        news = News(runs=[RunRecord.from_text(line) for line in saved.values()])
        if has_changed or is_dead_sought:
            news.runs.extend(self._others(connection))
            self._read_inbox(connection, news)
        return news if news.runs or news.asked or news.settled else None

    def _others(self, connection: Connection) -> list[RunRecord]:
        """The runs of other hosts that were saved since the last look."""
        newest, texts = connection.runs.added(self._newest, self._hosts, list(self._elsewhere))
        self._newest = newest
        found = []
        for run in map(RunRecord.from_text, texts):
            known = self._elsewhere.pop(run.id, None)
            if run.host in self._hosts:
                continue  # This process has taken it over.
            if run.is_open:
                self._elsewhere[run.id] = run.last_seq
            if known != run.last_seq:
                found.append(run)
        return found

    def _read_inbox(self, connection: Connection, news: News) -> None:
        now = {each.id: each for each in Inbox(connection).waiting()}
        news.asked.extend(each for name, each in now.items() if name not in self._asked)
        news.settled.extend(each for name, each in self._asked.items() if name not in now)
        self._asked = now
