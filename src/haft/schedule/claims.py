"""The claims of calls on paths and resources, and who waits for whom. Pure data: no clock, no file, no other process.

A claim is made in one step for all that a call writes, and gets a ticket. A claim waits for every earlier claim that it
meets, so nobody starves, and two claims that meet are never granted at the same time. A nested call joins the claims of
its callers: it does not wait for them, nor for a claim that waits for one of them.

The graph of waits follows from the claims alone: a waiting claim waits for the claims before it, and a run that holds a
claim waits for whatever the claims of its descendants wait for. Claims never change, so only a new claim can close a
circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from haft.contracts import meeting_path
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """What one run claims for itself, until it ends."""

    ticket: int
    """The place in the order of arrival, among all processes."""
    host: str
    run: str
    writes: tuple[str, ...]
    resources: tuple[str, ...] = ()
    callers: tuple[str, ...] = ()
    """The runs that wait for this run: its caller, the caller of its caller, and so on."""

    def meets(self, other: Claim) -> bool:
        """Whether the two claims cannot be granted at the same time, apart from nesting."""
        if self.resources and any(name in other.resources for name in self.resources):
            return True
        return meeting_path(self.writes, other.writes) is not None

    def to_json(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "run": self.run,
            "writes": self.writes,
            "resources": self.resources,
            "callers": self.callers,
        }


class ClaimTable:
    """All live claims, with the claims for which each of them waits."""

    def __init__(self) -> None:
        self._claims: dict[int, Claim] = {}
        self._blockers: dict[int, dict[int, Claim]] = {}
        """For each waiting claim: the claims for which it waits."""
        self._behind: dict[int, set[int]] = {}
        """For each claim: the claims that wait for it."""
        self._by_caller: dict[str, set[int]] = {}
        """The claims of the calls that a run made, at any depth, by that run."""
        self._by_run: dict[str, set[int]] = {}
        """The claims of each run."""

    def __contains__(self, ticket: object) -> bool:
        return ticket in self._claims

    def __iter__(self) -> Iterator[Claim]:
        return iter(list(self._claims.values()))

    def get(self, ticket: int) -> Claim | None:
        """The live claim with this ticket."""
        return self._claims.get(ticket)

    def blockers(self, claim: Claim) -> list[Claim]:
        """The claims for which this one waits, the earliest first; empty if it is granted."""
        return [each for _, each in sorted(self._blockers.get(claim.ticket, {}).items())]

    def first_blocker(self, claim: Claim, preferred: Iterable[int]) -> Claim | None:
        """The earliest claim for which this one waits, if possible one of those with the `preferred` tickets; None if
        it is granted."""
        waits = self._blockers.get(claim.ticket)
        if not waits:
            return None
        return waits[min([each for each in preferred if each in waits] or waits)]

    def behind(self, ticket: int) -> list[Claim]:
        """The claims that wait for this one."""
        return [self._claims[each] for each in sorted(self._behind.get(ticket, ()))]

    def would_wait_for(self, claim: Claim) -> list[Claim]:
        """The claims for which a claim waits, or would wait if it were added now, in no order."""
        callers = frozenset(claim.callers)
        own = [each.ticket for each in self._claims.values() if each.run in callers] if callers else []
        return [
            each
            for each in self._claims.values()
            if each.ticket < claim.ticket
            and each.run not in callers
            and claim.meets(each)
            # A claim that waits for a caller is granted only after the caller, and so after this claim.
            and self._blockers.get(each.ticket, {}).keys().isdisjoint(own)
        ]

    def waits_of(self, run: str) -> list[str]:
        """The runs for whose claims a run waits, or a run that it made."""
        waiting = [*self._by_caller.get(run, ()), *self._by_run.get(run, ())]
        return [each.run for ticket in waiting for each in self._blockers.get(ticket, {}).values()]

    def find_circle(
        self, claim: Claim, blockers: Iterable[Claim], other_waits: Callable[[str], Iterable[str]] = lambda _run: ()
    ) -> Claim | None:
        """The claim for which `claim` would wait, although its run waits for `claim` in turn; None if there is no such
        circle. `blockers` are the claims for which `claim` would wait. `other_waits` says for which runs a run waits
        besides."""
        if not claim.callers and claim.run not in self._by_run:
            return None  # Nobody waits for a run that made no call and has no claim. Most calls are such runs.
        above = {claim.run, *claim.callers}
        seen: set[str] = set()
        for first in blockers:
            held_up = [first.run]
            while held_up:
                run = held_up.pop()
                if run in seen:
                    continue
                seen.add(run)
                if run in above:
                    return first
                held_up += [*self.waits_of(run), *other_waits(run)]
        return None

    def add(self, claim: Claim, blockers: Iterable[Claim]) -> None:
        """Add a claim. `blockers` are the claims for which it waits: see `would_wait_for`."""
        blockers = list(blockers)
        self._claims[claim.ticket] = claim
        if blockers:
            self._blockers[claim.ticket] = {each.ticket: each for each in blockers}
            for each in blockers:
                self._behind.setdefault(each.ticket, set()).add(claim.ticket)
        self._by_run.setdefault(claim.run, set()).add(claim.ticket)
        for caller in claim.callers:
            self._by_caller.setdefault(caller, set()).add(claim.ticket)

    def remove(self, ticket: int) -> list[Claim]:
        """Remove a claim. Returns the claims that are granted by that, in the order of arrival."""
        claim = self._claims.pop(ticket, None)
        if claim is None:
            return []
        for each in self._blockers.pop(ticket, {}):
            self._behind.get(each, set()).discard(ticket)
        _discard(self._by_run, claim.run, ticket)
        for caller in claim.callers:
            _discard(self._by_caller, caller, ticket)
        granted: list[Claim] = []
        for behind in sorted(self._behind.pop(ticket, ())):
            blockers = self._blockers[behind]
            del blockers[ticket]
            if not blockers:
                del self._blockers[behind]
                granted.append(self._claims[behind])
        return granted


def _discard(tickets: dict[str, set[int]], run: str, ticket: int) -> None:
    tickets[run].discard(ticket)
    if not tickets[run]:
        del tickets[run]
