"""The inbox: the calls that wait for a person, stored on disk, so that any process can answer and no request is lost in
a crash.

A request is first `open`, then `answered`, and at last `taken` by the host that asked. An open request that needs no
answer any more is `closed`. The first answer wins. It is bound to a digest of exactly the text that the person saw. If
the host died before it took an approval, the approval stays valid for exactly the same call, once, until it expires.
When a request is taken or closed, the text that was shown is deleted, because it may contain secrets.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.contracts import BadUsage, HostId, UnknownRequest, new_run_id
from haft.storage import NEVER, Answered, Connection, Waiting, digest_of, encode

__all__ = ["NEVER", "Answered", "Inbox", "Waiting", "digest_of", "fingerprint_of", "new_request_id"]

SHORTEST_NAME: Final = 8
KEPT_DAYS: Final = 7
"""For how many days the id of a finished request is kept, so that a person who answers too late gets a clear
message."""


def new_request_id() -> str:
    """A new request id: `a_` and 24 characters; later ids sort after earlier ones."""
    return "a_" + new_run_id()[2:]


def fingerprint_of(value: Mapping[str, Any]) -> str:
    """A digest of facts about a call: an approval is valid for another call only if both have the same digest."""
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
        """The requests that can be answered now, the oldest first: of one workspace, or of all if `workspace` is
        None."""
        return self._store.open(time.time(), workspace)

    def find(self, name: str) -> Waiting:
        """The request whose id, or whose run's id, is `name` or begins with `name`. Raises `UnknownRequest` if there is
        no such request, and `BadUsage` if there are several."""
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
        """Answer a request. Returns False if somebody answered the request before, or if it has expired."""
        return self._store.answer(waiting.id, answered)

    def answer_to(self, name: str) -> Answered | None:
        """The answer to the request with this id; None if nobody has answered yet."""
        return self._store.answer_to(name)

    def reopen(self, name: str) -> bool:
        """Remove an answer that does not count. Returns False if there is none."""
        return self._store.reopen(name)

    def prolong(self, name: str, expires_at: float) -> None:
        """Postpone the expiry of a request to `expires_at`, because a person is still looking at it."""
        self._store.prolong(name, expires_at)

    def show_anew(self, name: str, shown: Mapping[str, Any]) -> bool:
        """Replace what an open request shows. Returns False if the request is not open."""
        return self._store.show_anew(name, shown)

    def end(self, name: str, state: str = "closed", answered: Answered | None = None) -> bool:
        """End a request: with `closed`, an open request whose host needs no answer any more, because of `answered` or
        for another reason; with `taken`, an answered request whose host uses the answer. After that, nobody can answer
        the request, and the text that was shown is deleted. Returns False, and does nothing, if the request is not open
        (for `closed`) or not answered (for `taken`)."""
        return self._store.take_answered(name) if state == "taken" else self._store.close_open(name, answered)

    def take_unused_approval(self, fingerprint: str, is_alive: Callable[[HostId], bool]) -> Waiting | None:
        """Take over an approval of exactly this call that another host got, but did not use because that host died.
        Returns the request with the approval; None if there is no such approval."""
        for waiting in self._store.answered(fingerprint, time.time()):
            answer = waiting.answer
            usable = answer is not None and answer.approved and answer.seen == waiting.digest
            if usable and not is_alive(waiting.host) and self._store.take_answered(waiting.id):
                return waiting
        return None
