"""The place of one call, and of the calls that it makes.

A call inside a call needs no further place: it borrows its caller's, one at a time, or takes a free one of its own. So
calls can nest to any depth in a host with a single place. While one of them waits for a person, the place of the
callers that wait with it is free for others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from haft.schedule.admission import Admission


class Place:
    """Held by one run while it works: one of the host's places, or its caller's."""

    __slots__ = ("_admission", "_asking", "_borrowed_from", "_is_extra", "_is_own", "_lent_to", "_pauses")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._is_own = False
        self._is_extra = False
        """Whether it is one more than the host has: see `resume_at_once`."""
        self._borrowed_from: Place | None = None
        self._lent_to: Place | None = None
        self._asking: deque[asyncio.Future[bool]] | None = None
        """Calls that wait until this one can be borrowed, once there were any."""
        self._pauses = 0

    @property
    def is_held(self) -> bool:
        return self._is_own or self._is_extra or self._borrowed_from is not None

    @property
    def _is_free(self) -> bool:
        """Whether a call may borrow it."""
        return self.is_held and self._lent_to is None and not self._pauses

    def take(self, caller: Place | None) -> bool:
        """Take a place at once, if there is one."""
        if self.is_held:
            return True
        if caller is not None and caller._is_free and not caller._asking:
            self._borrow(caller)
        elif self._admission.take():
            self._is_own = True
        else:
            return False
        return True

    async def wait(self, caller: Place | None) -> None:
        """Take a place when there is one: the caller's, or one of the host's, whichever is free first."""
        while not self.take(caller):
            turn = self._admission.line_up()
            if caller is not None:
                if caller._asking is None:
                    caller._asking = deque()
                caller._asking.append(turn)
            try:
                is_own = await turn
            except asyncio.CancelledError:
                self._pass_on(turn, caller)
                raise
            if is_own and self.is_held:
                self._admission.release()  # Another call that was waited for had it come back in the same moment.
            elif is_own:
                self._is_own = True
            elif caller is not None and caller._is_free and not self.is_held:
                self._borrow(caller)
            self._leave(turn, caller)
            if self.is_held:
                return

    def _leave(self, turn: asyncio.Future[bool], caller: Place | None) -> None:
        """Wait nowhere any more."""
        self._admission.leave(turn)
        if caller is not None and caller._asking is not None:
            with contextlib.suppress(ValueError):
                caller._asking.remove(turn)

    def _pass_on(self, turn: asyncio.Future[bool], caller: Place | None) -> None:
        """Who waited gave up. The place may have come in the same moment: it is for the next one."""
        self._leave(turn, caller)
        if turn.done() and not turn.cancelled():
            if turn.result():
                self._admission.release()
            elif caller is not None:
                caller._offer()

    def release(self) -> None:
        """Give it back. A call that has borrowed it keeps it, as if it had been its own from the beginning."""
        heir, self._lent_to = self._lent_to, None
        lender, self._borrowed_from = self._borrowed_from, None
        is_own, self._is_own = self._is_own, False
        is_extra, self._is_extra = self._is_extra, False
        if heir is not None:
            heir._borrowed_from, heir._is_own, heir._is_extra = lender, is_own, is_extra
            if lender is not None:
                lender._lent_to = heir
        elif lender is not None:
            lender._lent_to = None
            lender._offer()
        elif is_own:
            self._admission.release()

    def pause(self) -> None:
        """A call that it made waits for a person: others may have the place meanwhile, unless another such call has
        it."""
        self._pauses += 1
        if self._lent_to is None:
            self.release()

    async def resume(self, caller: Place | None) -> None:
        """The person has answered: have a place again. Who gives up waiting has it all the same: only the call that was
        asked about was cancelled, and its caller goes on."""
        self._pauses -= 1
        if not self._pauses and not self.is_held:
            try:
                await self.wait(caller)
            except asyncio.CancelledError:
                self._is_extra = not self.take(caller)
                self._offer()
                raise
        self._offer()

    def resume_at_once(self, caller: Place | None) -> None:
        """The same for one that must not wait: it holds a lock that those may wait for who have all the places, or its
        call was cancelled. Where none is free, it is one more than the host has."""
        self._pauses -= 1
        if not self._pauses and not self.take(caller):
            self._is_extra = True
        self._offer()

    def _borrow(self, caller: Place) -> None:
        caller._lent_to, self._borrowed_from = self, caller

    def _offer(self) -> None:
        """It may be free now: whoever waits longest looks again."""
        if self._pauses and self._lent_to is None and self.is_held:
            self.release()
            return
        while self._is_free and self._asking:
            turn = self._asking.popleft()
            if not turn.done():
                turn.set_result(False)
                return
