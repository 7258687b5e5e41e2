"""The port (storage interface) of the inbox: calls that wait for a person, and the answers to them.

A request is `open`, then `answered`, then `taken` by the host that made it; or `closed`. Each step happens once: if
several processes try it, only the first one succeeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

from haft.contracts import HostId, Principal, PrincipalKind, RunId, ThreadId
from haft.storage.encoding import encode
from haft.values import dataclass

NEVER: Final = 253_402_300_799.0
"""The time at which a request expires that waits as long as its run does: the end of the year 9999."""


def digest_of(value: Any) -> str:
    """The digest of `value`, which is exactly what was shown to a person."""
    return hashlib.sha256(b"haft shown\0" + encode(value)).hexdigest()


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: who gave it, and what they had seen."""

    approved: bool
    who: str
    seen: str
    """The digest of what was shown to the person."""
    at: float
    message: str | None = None
    arguments: dict[str, Any] | None = None
    grants: Mapping[str, Any] | None = None
    scope: str = "once"
    allow: int = 0
    thread: str | None = None
    kind: PrincipalKind = "person"
    proof: str | None = None
    """The proof that the person knows the approval passphrase, if one is set: see `policy.Verifier`."""
    rule_proof: str | None = None
    """The same for the rule that this answer makes."""
    paths: list[str] | None = None
    """For the changes of a trial run: the paths whose changes are applied. None: all changes."""

    @property
    def principal(self) -> Principal:
        """Who answered: the user's name, the thread and the kind, such as `person`."""
        return Principal(self.who, self.thread, self.kind)

    def to_json(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.__slots__}
        for name in ("proof", "rule_proof", "paths"):  # Earlier versions do not know these fields.
            if told[name] is None:
                del told[name]
        return told


@dataclass(frozen=True, slots=True)
class Waiting:
    """One request for approval."""

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

    @property
    def expires(self) -> bool:
        """Whether the request expires at some time."""
        return self.expires_at < NEVER


class ApprovalStore(Protocol):
    """Every request of a state home. Any thread of the process may use this object."""

    def put(self, waiting: Waiting, forget_before: float) -> None:
        """Store a request, which can be answered from now on; remove the requests that expired before
        `forget_before`."""
        ...

    def open(self, now: float, workspace: str | None = None) -> list[Waiting]:
        """The requests that can be answered now, oldest first; only those of `workspace`, unless `workspace` is
        None."""
        ...

    def named(self, prefix: str) -> list[Waiting]:
        """All requests, open or not, for which `prefix` is the beginning of the request's name or of its run's name;
        newest first."""
        ...

    def answer(self, name: str, answered: Answered) -> bool:
        """Answer a request. Returns False if the request is no longer open, or had expired when the answer was
        given."""
        ...

    def answer_to(self, name: str) -> Answered | None:
        """The answer to a request; None if there is no answer yet, or the host has already taken it."""
        ...

    def reopen(self, name: str) -> bool:
        """Remove an answer that does not count, so that the request can be answered again. Returns False if there was
        no answer, or the host has already taken it."""
        ...

    def show_anew(self, name: str, shown: Mapping[str, Any]) -> bool:
        """Replace what an open request shows. Returns False if the request was no longer open."""
        ...

    def prolong(self, name: str, expires_at: float) -> None:
        """Change the time at which an open request expires."""
        ...

    def close_open(self, name: str, answered: Answered | None = None) -> bool:
        """Close an open request, and delete the stored text that was shown to the person. `answered` is the answer that
        the host got from its approver, if it got one. Returns False if the request was no longer open."""
        ...

    def take_answered(self, name: str) -> bool:
        """Mark the answer to a request as taken, and delete the stored text that was shown to the person. Returns False
        if there was no answer to take."""
        ...

    def answered(self, fingerprint: str, now: float) -> list[Waiting]:
        """The answered requests for calls with this fingerprint, which is a digest of the call. Leaves out requests
        that have expired, requests whose answer was taken, and requests for trial runs."""
        ...

    def has_answered(self, fingerprint: str) -> bool:
        """A cheap check before `answered`: False if `answered` would certainly return no requests for this
        fingerprint."""
        ...
