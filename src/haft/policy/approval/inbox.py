"""The inbox: calls that wait for a person, stored on disk so that any process can answer and a crash loses none.

A request is `open`, then `answered`, then `taken` by the host that asked, or `closed`. The first answer wins, and it is
bound to a digest of exactly what was shown. If the host died before it took an approval, the approval stays valid for
exactly the same call, once, until it expires. Ending a request deletes what was shown, because that may contain
secrets.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.contracts import BadUsage, HostId, UnknownRequest, new_run_id
from haft.storage import Answered, Connection, Waiting, digest_of, encode

__all__ = ["Answered", "Inbox", "Waiting", "digest_of", "fingerprint_of", "new_request_id"]

SHORTEST_NAME: Final = 8
KEPT_DAYS: Final = 7
"""How many days a finished request is remembered by name, so that a late answer gets a clear reply."""


def new_request_id() -> str:
    """A new request id: `a_` and 24 characters; later ids sort after earlier ones."""
    return "a_" + new_run_id()[2:]


def fingerprint_of(value: Mapping[str, Any]) -> str:
    """A digest of the facts about a call that an answer depends on."""
    ordered = {name: value[name] for name in sorted(value)}
    return hashlib.sha256(b"haft call\0" + encode(ordered)).hexdigest()


class Inbox:
    """All requests of a state home."""

    def __init__(self, connection: Connection) -> None:
        self._store = connection.approvals

    def put(self, waiting: Waiting) -> None:
        """Store a request. From now on it can be answered, and it survives the death of this process."""
        self._store.put(waiting, forget_before=time.time() - KEPT_DAYS * 86_400)

    def waiting(self, workspace: str | None = None) -> list[Waiting]:
        """The requests that can be answered now, the oldest first."""
        return self._store.open(time.time(), workspace)

    def find(self, name: str) -> Waiting:
        """A request by its id, by its run's id, or by the beginning of either."""
        if len(name) < SHORTEST_NAME:
            raise UnknownRequest(name)
        found = self._store.named(name)
        still = [each for each in found if each.state == "open"]
        if len(still) > 1 or (not still and len({each.run for each in found}) > 1):
            named = ", ".join(each.id for each in (still or found)[:5])
            raise BadUsage(
                f"more than one request begins with `{name}`: {named}", hint="give more characters of the id"
            )
        if not found:
            raise UnknownRequest(name)
        return still[0] if still else found[0]

    def answer(self, waiting: Waiting, answered: Answered) -> bool:
        """Answer a request; False if somebody else answered it before or it has expired."""
        return self._store.answer(waiting.id, answered)

    def answer_to(self, name: str) -> Answered | None:
        """The answer to a request of this host, if there is one yet."""
        return self._store.answer_to(name)

    def prolong(self, name: str, expires_at: float) -> None:
        """Extend a request that its host still shows to a person."""
        self._store.prolong(name, expires_at)

    def end(self, name: str, state: str = "closed") -> bool:
        """End a request whose host needs no answer any more, or has taken it: nobody can answer it, and what was shown
        is deleted. False if it was answered before it could be closed."""
        return self._store.take_answered(name) if state == "taken" else self._store.close_open(name)

    def take_unused_approval(self, fingerprint: str, is_alive: Callable[[HostId], bool]) -> Waiting | None:
        """Take an approval of exactly this call that a host died before using; None if there is none."""
        for waiting in self._store.answered(fingerprint, time.time()):
            answer = waiting.answer
            usable = answer is not None and answer.approved and answer.seen == waiting.digest
            if usable and not is_alive(waiting.host) and self._store.take_answered(waiting.id):
                return waiting
        return None
