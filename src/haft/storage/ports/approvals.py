"""The port of the inbox: calls that wait for a person, and the answers to them.

A request is `open`, then `answered`, then `taken` by the host that asked, or `closed`. Each step is taken once, by
whoever is first among all processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

from haft.contracts import HostId, Principal, PrincipalKind, RunId, ThreadId
from haft.storage.encoding import encode
from haft.values import dataclass


def digest_of(value: Any) -> str:
    """Of exactly what was shown."""
    return hashlib.sha256(b"haft shown\0" + encode(value)).hexdigest()


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
    thread: str | None = None
    kind: PrincipalKind = "person"

    @property
    def principal(self) -> Principal:
        """Whoever answered."""
        return Principal(self.who, self.thread, self.kind)

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


class ApprovalStore(Protocol):
    """Every request of a state home. Any thread may use it."""

    def put(self, waiting: Waiting, forget_before: float) -> None:
        """Keep a request, which can be answered from now on; forget those that expired before a time."""
        ...

    def open(self, now: float, workspace: str | None = None) -> list[Waiting]:
        """The requests that can be answered now, oldest first."""
        ...

    def named(self, prefix: str) -> list[Waiting]:
        """The requests whose name, or whose run's name, begins so, in any state, newest first."""
        ...

    def answer(self, name: str, answered: Answered) -> bool:
        """Answer it: False where it is no longer open, or had expired when the answer was given."""
        ...

    def answer_to(self, name: str) -> Answered | None:
        """The answer to a request, until it is taken."""
        ...

    def prolong(self, name: str, expires_at: float) -> None:
        """Move the end of an open request."""
        ...

    def close_open(self, name: str) -> bool:
        """Close an open request and forget what was shown; False where it was not open any more."""
        ...

    def take_answered(self, name: str) -> bool:
        """Take the answer to a request and forget what was shown; False where there was none to take."""
        ...

    def answered(self, fingerprint: str, now: float) -> list[Waiting]:
        """The answered requests of one call that were not tried, that nobody took and that have not expired."""
        ...

    def has_answered(self, fingerprint: str) -> bool:
        """Whether an answer may lie there that nobody took: a look that costs little."""
        ...
