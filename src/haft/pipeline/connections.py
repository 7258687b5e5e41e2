"""The network connections of one run: what is recorded about them, the events, and the notes about refusals.

The sandbox reports the connections of a call whose network is decided by host. `connection_questions` asks a person
about hosts that were not granted. The `record` stage puts the records and the notes into the outcome, however the call
ended; the `confine` stage uses a refusal to explain why a tool failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import GIVEN_UP, NOT_GRANTED, Call, Connection, Grants, HeldConnection, SandboxDenied, host_grant
from haft.values import replace

if TYPE_CHECKING:
    from haft.contracts import HostGrant
    from haft.pipeline.run import Run

MAX_ALONE: Final = 100
"""How many connections have a record of their own. Further connections to the same hosts are counted in these."""
MAX_RECORDS: Final = 500
"""How many records of connections an outcome has."""
MAX_EVENTS: Final = 400
"""How many events about connections a run emits."""
MAX_NOTES: Final = 3
"""How many notes name a refused host; one more note counts the others."""
NOBODY: Final = "nobody answered"

Ask = Callable[[HeldConnection], Awaitable["HostGrant | None"]]
Hint = Callable[[str], str]
"""Returns, for a grant such as `registry.example:443`, the text that says how to give it."""


def address_of(host: str, port: int) -> str:
    """Host and port as one text, which is also the grant for them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class RunConnections:
    """The `ConnectionObserver` of one run."""

    def __init__(self, run: Run, ask: Ask) -> None:
        self._run = run
        self._ask = ask
        self._records: list[Connection] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._left_out = 0
        self._missing: str | None = None
        """Why records are missing; None if all are there."""
        self._events = 0
        self.approved_by: dict[tuple[str, int], str] = {}
        """Who let connections to a host and port through, for each of those that a person was asked about."""
        self.why_refused: dict[tuple[str, int], str] = {}
        """Why connections to a host and port are refused, for each of those that a person was asked about."""

    @property
    def records(self) -> tuple[Connection, ...]:
        """The connections that have ended or were refused, in this order; equal refusals are one record."""
        return tuple(self._records)

    @property
    def has_any(self) -> bool:
        """Whether there is anything to record. Most calls make no connection."""
        return bool(self._records or self.why_refused)

    def opened(self, host: str, port: int, grant: str) -> None:
        facts = {"grant": grant, "by": self._source_of(host, port, grant)}
        self.emit("open", host, port, "is connected", **facts)

    def ended(self, connection: Connection) -> None:
        where = connection.host, connection.port
        if connection.allowed:
            by = connection.by or self._source_of(*where, connection.grant)
            connection = replace(connection, by=by)
            is_new = self._add_allowed(connection)
            state, words = ("ended", "the connection ended") if connection.reason is None else ("failed", "failed")
        else:
            connection = replace(connection, reason=self.why_refused.get(where) or connection.reason or NOT_GRANTED)
            is_new = self._add_refused(connection)
            state, words = "refused", "was refused"
        if is_new:
            why = "" if connection.reason is None else f": {connection.reason}"
            facts = connection.to_json()
            del facts["host"], facts["port"]
            self.emit(state, *where, f"{words}{why}", **facts)

    def incomplete(self, why: str) -> None:
        self._missing = why

    async def ask(self, held: HeldConnection) -> HostGrant | None:
        return await self._ask(held)

    def emit(self, state: str, host: str, port: int, words: str, **facts: Any) -> None:
        """Emit an event about a connection, unless the run has ended or has emitted very many."""
        if self._run.outcome is None and self._events < MAX_EVENTS:
            self._events += 1
            message = f"{address_of(host, port)}: {words}"
            self._run.emit("connection", {"state": state, "host": host, "port": port, "message": message, **facts})

    def _add_refused(self, connection: Connection) -> bool:
        """Record a refusal; False if it was only counted, because an equal one is recorded."""
        key = (connection.host, connection.port, connection.protocol, connection.address, connection.reason)
        return self._add(key, connection)

    def _add_allowed(self, connection: Connection) -> bool:
        key = (connection.host, connection.port, connection.grant, connection.reason)
        if len(self._records) < MAX_RECORDS and (key not in self._index or len(self._records) < MAX_ALONE):
            self._index[key] = len(self._records)
            self._records.append(connection)
            return True
        return self._add(key, connection)

    def _add(self, key: tuple[Any, ...], connection: Connection) -> bool:
        found = self._index.get(key)
        if found is None:
            if len(self._records) >= MAX_RECORDS:
                self._left_out += connection.count
                return False
            self._index[key] = len(self._records)
            self._records.append(connection)
            return True
        before = self._records[found]
        self._records[found] = replace(
            before,
            count=before.count + connection.count,
            sent=before.sent + connection.sent,
            received=before.received + connection.received,
            seconds=before.seconds + connection.seconds,
        )
        return False

    def _source_of(self, host: str, port: int, grant: str | None) -> str | None:
        return self.approved_by.get((host, port)) or grant_source(self._run.call, host, port, grant)

    def end(self) -> None:
        """Add the refusals that the sandbox could not report, because the program had ended before the answer came."""
        for where, reason in self.why_refused.items():
            if not any((each.host, each.port) == where for each in self._records):
                self._add_refused(Connection(*where, allowed=False, reason=reason))

    # What the person reads.

    def refusals(self) -> list[Connection]:
        """The refused connections, one for each host and port; TCP before UDP, because no grant by host opens UDP."""
        refused = sorted((each for each in self._records if not each.allowed), key=lambda each: each.protocol != "tcp")
        return list({(each.host, each.port): each for each in reversed(refused)}.values())[::-1]

    def notes(self, hint: Hint, explained: str = "") -> Iterator[str]:
        """A note for each of the first refused hosts, and one that counts the others. Hosts that the text `explained`
        names are left out."""
        refused = [each for each in self.refusals() if address_of(each.host, each.port) not in explained]
        yield from (f"the sandbox refused {refusal_words(each, hint)}" for each in refused[:MAX_NOTES])
        if len(refused) > MAX_NOTES:
            more = len(refused) - MAX_NOTES
            hosts = "1 more host" if more == 1 else f"{more} more hosts"
            yield f"the sandbox also refused connections to {hosts}: `haft show {self._run.id}` lists them"
        if self._left_out:
            yield f"{self._left_out:_} more connections are not on record: a run has at most {MAX_RECORDS} records"
        if self._missing is not None:
            yield f"not all connections are on record: {self._missing}"
        unreached = [each for each in self._records if each.allowed and (each.reason or "").startswith("cannot")]
        yield from (f"{address_of(each.host, each.port)} {each.reason}" for each in unreached[:MAX_NOTES])

    def error(self, evidence: str, hint: Hint) -> SandboxDenied | None:
        """The error of a tool that failed after a connection was refused; None if none was. `evidence` is the message
        of the tool's own failure."""
        refused = self.refusals()
        if not refused:
            return None
        first = refused[0]
        more = len(refused) - 1
        others = "" if not more else f", and {more} more host{'s' if more > 1 else ''}"
        words, how = _parted(first, hint)
        denied = SandboxDenied(f"{words}{others}", evidence, how)
        denied.hint = how or None
        return denied


async def refuse(_held: HeldConnection) -> None:
    """Refuse a held connection without asking anyone."""


def refusal_words(refused: Connection, hint: Hint) -> str:
    """A refused connection in words, with the grant that would allow it."""
    words, how = _parted(refused, hint)
    return f"{words}; {how}" if how else words


def _parted(refused: Connection, hint: Hint) -> tuple[str, str]:
    """A refused connection in words, and how to allow it; the second is empty if no grant would, or if the reason says
    how."""
    where = address_of(refused.host, refused.port)
    if refused.protocol == "udp":
        return f"UDP to {where}", "grants by host open TCP only"
    what = f"a connection to {where}"
    reason = (refused.reason or NOT_GRANTED).removeprefix("was refused: ")
    if reason == NOT_GRANTED:
        return what, hint(where)
    if reason.startswith(("leads to", "cannot be reached")):
        return f"{what}: it {reason}", ""
    return f"{what}: {reason}", hint(where) if reason.startswith((NOBODY, GIVEN_UP)) else ""


def grant_source(call: Call, host: str, port: int, grant: str | None) -> str | None:
    """Where the grant for a connection comes from: `the call`, the source of a rule, `the tool's configuration`, or the
    setting `sandbox.network`. None if `grant` is None."""
    if grant is None:
        return None
    places: list[tuple[str, Grants]] = [("the call", call.grants)]
    if call.decision is not None:
        places += call.decision.granted_by
    if call.tool is not None:
        places.append(("the tool's configuration", call.tool.spec.grants))
    hosts = [(place, grants.network) for place, grants in places if isinstance(grants.network, tuple)]
    for place, granted in hosts:
        if grant in granted:
            return place
    for place, granted in hosts:  # The hosts of a group have replaced its name.
        if any(each.startswith("@") or _covers(each, host, port) for each in granted):
            return place
    return "sandbox.network"


def _covers(grant: str, host: str, port: int) -> bool:
    return host_grant(grant).covers(host, port)
