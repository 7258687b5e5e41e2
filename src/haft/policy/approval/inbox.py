"""The inbox: calls that wait for a person, on disk, so that any process can answer and none is lost with its host.

A request is `open`, then `answered`, then `taken` by the host that asked, or `closed`. The first answer wins, and it is
bound to a digest of exactly what was shown. Where the host died before it took a yes, that yes stays for exactly the
same call, once, until it expires. Whoever ends a request forgets what was shown: it may hold secrets.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from haft.contracts import BadUsage, HostId, RunId, ThreadId, UnknownRequest, new_run_id
from haft.storage import Database, decode, encode

SHORTEST_NAME: Final = 8
KEPT_DAYS: Final = 7
"""For how long requests that are over are known by name, so that a late answer gets a clear reply."""

_COLUMNS: Final = (
    "id, run, host, workspace, who, thread, created_at, expires_at, tried, fingerprint, shown, state, answer"
)


def new_request_id() -> str:
    """A fresh name: `a_` and 24 characters, later ones sorting after earlier ones."""
    return "a_" + new_run_id()[2:]


def digest_of(value: Any) -> str:
    """Of exactly what was shown."""
    return hashlib.sha256(b"haft shown\0" + encode(value)).hexdigest()


def fingerprint_of(value: Mapping[str, Any]) -> str:
    """Of a call, as far as an answer depends on it."""
    ordered = {name: value[name] for name in sorted(value)}
    return hashlib.sha256(b"haft call\0" + encode(ordered)).hexdigest()


@dataclass(frozen=True, slots=True)
class Answered:
    """What was answered, by whom, having seen what."""

    approved: bool
    who: str
    seen: str
    """The digest of what was shown to them."""
    at: float
    message: str | None = None
    arguments: dict[str, Any] | None = None
    grants: Mapping[str, Any] | None = None
    scope: str = "once"
    allow: int = 0

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Waiting:
    """One request."""

    id: str
    run: RunId
    host: HostId
    workspace: str
    who: str
    thread: ThreadId
    created_at: float
    expires_at: float
    tried: bool
    fingerprint: str
    shown: dict[str, Any]
    state: str = "open"
    answer: Answered | None = None

    @property
    def digest(self) -> str:
        return digest_of(self.shown)


class Inbox:
    """Every request of a state home. Use it from one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, waiting: Waiting) -> None:
        """A request that can be answered from now on; it survives the death of this process."""
        with self._database.transaction():
            self._forget_old()
            self._database.execute(
                f"INSERT INTO approvals ({_COLUMNS}) VALUES ({', '.join('?' * 13)})",  # noqa: S608
                [
                    waiting.id,
                    waiting.run,
                    waiting.host,
                    waiting.workspace,
                    waiting.who,
                    waiting.thread,
                    waiting.created_at,
                    waiting.expires_at,
                    int(waiting.tried),
                    waiting.fingerprint,
                    encode(waiting.shown).decode(),
                    "open",
                    None,
                ],
            )

    def waiting(self, workspace: str | None = None) -> list[Waiting]:
        """What can be answered now, oldest first."""
        where, values = ("AND workspace = ?", [workspace]) if workspace is not None else ("", [])
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM approvals WHERE state = 'open' AND expires_at > ? {where} ORDER BY id",  # noqa: S608
            [time.time(), *values],
        )
        return [_read(row) for row in rows]

    def find(self, name: str) -> Waiting:
        """A request by its name, its run's name, or the beginning of either."""
        if len(name) < SHORTEST_NAME:
            raise UnknownRequest(name)
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM approvals WHERE substr(id, 1, ?) = ? OR substr(run, 1, ?) = ? ORDER BY id DESC",  # noqa: S608
            [len(name), name, len(name), name],
        )
        found = [_read(row) for row in rows]
        still = [each for each in found if each.state == "open"]
        if len(still) > 1 or (not still and len({each.run for each in found}) > 1):
            named = ", ".join(each.id for each in (still or found)[:5])
            raise BadUsage(f"more than one request begins with `{name}`: {named}", hint="give more of its name")
        if not found:
            raise UnknownRequest(name)
        return still[0] if still else found[0]

    def answer(self, waiting: Waiting, answered: Answered) -> bool:
        """Answer it, unless someone was faster or it has expired."""
        with self._database.transaction():
            return bool(
                self._database.execute(
                    "UPDATE approvals SET state = 'answered', answer = ? "
                    "WHERE id = ? AND state = 'open' AND expires_at > ?",
                    [encode(answered.to_json()).decode(), waiting.id, answered.at],
                )
            )

    def answer_to(self, name: str) -> Answered | None:
        """The answer to a request of this host, if there is one yet."""
        rows = self._database.rows("SELECT answer FROM approvals WHERE id = ? AND state = 'answered'", [name])
        return _answered(rows[0][0]) if rows else None

    def prolong(self, name: str, expires_at: float) -> None:
        """Someone is still being asked by its host."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE approvals SET expires_at = ? WHERE id = ? AND state = 'open'", [expires_at, name]
            )

    def end(self, name: str, state: str = "closed") -> bool:
        """The host that asked needs no answer any more, or has taken it: nobody can answer it, and what was shown is
        forgotten. False where it was answered before it could be closed."""
        which = "= 'answered'" if state == "taken" else "= 'open'"
        with self._database.transaction():
            return bool(
                self._database.execute(
                    f"UPDATE approvals SET state = ?, shown = '{{}}' WHERE id = ? AND state {which}",  # noqa: S608
                    [state, name],
                )
            )

    def kept_yes(self, fingerprint: str, is_alive: Callable[[HostId], bool]) -> Waiting | None:
        """A yes to exactly this call that its host did not live to take; it is taken by this."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM approvals WHERE fingerprint = ? AND state = 'answered' AND tried = 0 "  # noqa: S608
            "AND expires_at > ? ORDER BY id",
            [fingerprint, time.time()],
        )
        for waiting in map(_read, rows):
            answer = waiting.answer
            usable = answer is not None and answer.approved and answer.seen == waiting.digest
            if usable and not is_alive(waiting.host) and self.end(waiting.id, "taken"):
                return waiting
        return None

    def _forget_old(self) -> None:
        self._database.execute("DELETE FROM approvals WHERE expires_at < ?", [time.time() - KEPT_DAYS * 86_400])


def _read(row: tuple[Any, ...]) -> Waiting:
    (*names, created, expires, tried, fingerprint, shown, state, answer) = row
    name, run, host, workspace, who, thread = names
    return Waiting(
        name,
        RunId(run),
        HostId(host),
        workspace,
        who,
        ThreadId(thread),
        created,
        expires,
        bool(tried),
        fingerprint,
        decode(shown),
        state,
        None if answer is None else _answered(answer),
    )


def _answered(text: str) -> Answered:
    return Answered(**decode(text))
