"""Locks between the calls of all hosts on one workspace: a call that will write known paths, or use a named resource,
waits for the calls that claimed them before it.

`claims` says who waits for whom, `claim_files` shows the claims to other processes. This module makes runs wait. A wait
ends at once if the other call belongs to this host, and within 20 milliseconds otherwise.

Readers take no locks, and neither do writers whose paths are not known: nobody waits for them, and what they write is
checked when they commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Final

from haft.contracts import Deadlock
from haft.schedule.claim_files import ClaimFiles
from haft.schedule.claims import Claim, ClaimTable
from haft.values import dataclass

_log = logging.getLogger("haft")

_LOOK_SECONDS: Final = 0.015
"""How often a host with waiting calls looks for changes that other hosts made."""
_LOOKS_PER_PULSE: Final = 10
"""After how many looks a host checks whether the hosts for which it waits are alive."""
_MOST_NEWS: Final = 5
"""How often a waiting run is told for whom it waits now, so that a long line of calls causes few events."""

WaitNews = Callable[[str, bool], None]
"""Is told for which run a call waits, and whether that run waits for a person."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run wants to claim."""

    run: str
    name: str
    """The name of the tool, for messages."""
    writes: tuple[str, ...]
    resources: tuple[str, ...]
    callers: tuple[str, ...]


class _Waiter:
    def __init__(self, claim: Claim, turn: asyncio.Future[None], tell: WaitNews) -> None:
        self.claim = claim
        self.turn = turn
        self._tell = tell
        self._last: tuple[str, bool] | None = None
        self._news = 0

    @property
    def was_told(self) -> bool:
        """Whether the run is told no more, unless a run waits for a person."""
        return self._news >= _MOST_NEWS and self._last is not None and not self._last[1]

    def tell(self, run: str, *, is_person: bool) -> None:
        """Tell the run for whom it waits, unless it knows."""
        news = (run, is_person)
        if news == self._last or (self._news >= _MOST_NEWS and self._last is not None and is_person == self._last[1]):
            return
        self._last = news
        self._news += 1
        self._tell(run, is_person)


class Hold:
    """The claim of one run, from the moment when it is made until the run releases it."""

    __slots__ = ("_asked", "_claim", "_is_released", "_locks")

    def __init__(self, locks: Locks, claim: Claim) -> None:
        self._locks = locks
        self._claim = claim
        self._asked = 0
        """How many requests to people the run, and the runs that it waits for, have open."""
        self._is_released = False

    @property
    def must_wait(self) -> bool:
        """Whether other runs have claimed the same before this run."""
        return self._locks._waits(self._claim)

    async def wait(self, tell: WaitNews) -> None:
        """Wait for the run's turn. `tell` is told for whom it waits."""
        await self._locks._wait(self._claim, tell)

    def begin_person(self) -> None:
        """Say that the run waits for a person, for a request of its own or of a call that it made."""
        self._asked += 1
        if self._asked == 1 and not self._is_released:
            self._locks._set_person(self._claim, waits=True)

    def end_person(self) -> None:
        """Say that one such request has ended."""
        self._asked -= 1
        if not self._asked and not self._is_released:
            self._locks._set_person(self._claim, waits=False)

    def release(self) -> None:
        """End the claim. Calling it again does nothing."""
        if not self._is_released:
            self._is_released = True
            self._locks._release(self._claim)


class Locks:
    """The locks of one workspace, as one host uses them. Use it in one event loop."""

    def __init__(self, directory: str | None, host: str, is_alive: Callable[[str], bool]) -> None:
        """`directory` is where the hosts of this workspace show each other their claims; None if this host is alone.
        `is_alive` says whether the process of another host lives."""
        self._host = host
        self._files = None if directory is None else ClaimFiles(directory, host, is_alive)
        self._table = ClaimTable()
        self._waiters: dict[int, _Waiter] = {}
        self._persons: set[int] = set()
        """The tickets of the claims whose runs wait for a person."""
        self._published: set[int] = set()
        self._last_ticket = 0
        self._watcher: asyncio.Task[None] | None = None
        self.other_waits: Callable[[str], Iterable[str]] = lambda _run: ()
        """For which runs a run of this host waits besides, such as for the process of its tool."""

    def waits_of(self, run: str) -> list[str]:
        """The runs for whose claims a run waits, or a run that it made."""
        return self._table.waits_of(run)

    async def claim(self, wanted: Wanted) -> Hold:
        """Claim what a run will write and use. The run may have to wait for its turn: see `Hold`. Raises `Deadlock` if
        the run would wait for a run that waits for it. The hold must be released."""
        return Hold(self, await self._enter(wanted))

    def close(self) -> None:
        """Withdraw all claims of this host."""
        if self._watcher is not None:
            self._watcher.cancel()
        if self._files is not None:
            self._files.close()

    async def _enter(self, wanted: Wanted) -> Claim:
        """Add a claim to the table."""
        files = self._files
        pause = 0.0002
        while files is not None:
            try:
                files.open()
                with files.try_locked() as is_locked:
                    if is_locked:
                        self._read()
                        return self._enter_locked(files, wanted, files.take_ticket())
            except OSError as error:
                _log.warning("haft cannot see what the calls of other processes write: %s", error)
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.005)
        claim = self._made(wanted, self._last_ticket + 1)
        self._add(claim, self._table.would_wait_for(claim), wanted.name)
        return claim

    def _enter_locked(self, files: ClaimFiles, wanted: Wanted, ticket: int) -> Claim:
        claim = self._made(wanted, ticket)
        blockers = self._table.would_wait_for(claim)
        others = {each.host for each in blockers if each.host != self._host}
        if others and files.bury(others):
            self._read()
            blockers = self._table.would_wait_for(claim)
        self._add(claim, blockers, wanted.name)
        self._published.add(claim.ticket)
        with contextlib.suppress(OSError):  # The disk is full: the claim holds in this process.
            files.publish(claim)
        return claim

    def _made(self, wanted: Wanted, ticket: int) -> Claim:
        self._last_ticket = max(self._last_ticket + 1, ticket)
        return Claim(self._last_ticket, self._host, wanted.run, wanted.writes, wanted.resources, wanted.callers)

    def _add(self, claim: Claim, blockers: list[Claim], name: str) -> None:
        circle = self._table.find_circle(claim, blockers, self.other_waits)
        if circle is not None:
            raise Deadlock(
                f"`{name}` was not called: it would wait for {circle.run}, which waits for this call or for a call that"
                " made it",
                hint="call it again after the other calls have ended",
            )
        self._table.add(claim, blockers)

    def _waits(self, claim: Claim) -> bool:
        return bool(self._table.blockers(claim))

    async def _wait(self, claim: Claim, tell: WaitNews) -> None:
        waiter = _Waiter(claim, asyncio.get_running_loop().create_future(), tell)
        self._waiters[claim.ticket] = waiter
        try:
            self._tell(waiter)
            self._watch()
            await waiter.turn
        finally:
            self._waiters.pop(claim.ticket, None)

    def _release(self, claim: Claim) -> None:
        self._persons.discard(claim.ticket)
        self._remove(claim.ticket)
        if claim.ticket in self._published:
            self._published.discard(claim.ticket)
            assert self._files is not None
            with contextlib.suppress(OSError):
                self._files.withdraw(claim.ticket)

    def _set_person(self, claim: Claim, *, waits: bool) -> None:
        (self._persons.add if waits else self._persons.discard)(claim.ticket)
        self._tell_behind(claim.ticket)
        if claim.ticket in self._published:
            assert self._files is not None
            with contextlib.suppress(OSError):
                self._files.set_person(claim.ticket, waits=waits)

    def _remove(self, *tickets: int) -> None:
        """Remove claims, let those go on that waited only for them, and tell the others for whom they wait now."""
        behind = {claim.ticket for ticket in tickets for claim in self._table.behind(ticket)}
        granted = {claim.ticket for ticket in tickets for claim in self._table.remove(ticket)}
        for ticket in sorted(behind):
            waiter = self._waiters.get(ticket)
            if waiter is None or waiter.turn.done():
                continue
            if ticket in granted:
                waiter.turn.set_result(None)
            else:
                self._tell(waiter)

    def _tell_behind(self, ticket: int) -> None:
        for claim in self._table.behind(ticket):
            if (waiter := self._waiters.get(claim.ticket)) is not None:
                self._tell(waiter)

    def _tell(self, waiter: _Waiter) -> None:
        if waiter.was_told and not self._persons:
            return
        # A run that waits for a person is named first, because its wait may be the longest.
        named = self._table.first_blocker(waiter.claim, self._persons)
        if named is None:
            return
        waiter.tell(named.run, is_person=named.ticket in self._persons)

    def _read(self) -> None:
        """Take over what other hosts have changed."""
        assert self._files is not None
        if not self._files.has_changed():
            return
        new, gone, persons = self._files.read()
        self._remove(*gone)
        for claim in new:
            self._last_ticket = max(self._last_ticket, claim.ticket)
            self._table.add(claim, self._table.would_wait_for(claim))
        changed = (persons ^ self._persons) - self._published
        self._persons = {each for each in self._persons if each in self._published} | (persons - self._published)
        for ticket in changed:
            self._tell_behind(ticket)

    def _watch(self) -> None:
        """Look for changes of other hosts as long as a call of this host waits."""
        if self._files is not None and (self._watcher is None or self._watcher.done()):
            self._watcher = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        assert self._files is not None
        looks = 0
        while self._waiters:
            await asyncio.sleep(_LOOK_SECONDS)
            looks += 1
            with contextlib.suppress(OSError):
                if looks % _LOOKS_PER_PULSE == 0:
                    self._files.bury({claim.host for claim in self._table if claim.host != self._host})
                self._read()
