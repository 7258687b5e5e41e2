"""The slot of one call, and of the calls that it makes.

A nested call is a call that a running call (its caller) makes. It needs no further slot: it borrows the slot of its
caller, or takes a free slot of the host. Only one call at a time can borrow a slot. So calls can nest to any depth in a
host with a single slot. While a nested call waits for a person, its callers wait for the nested call, and other calls
may use the callers' slots.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from haft.schedule.admission import NOBODY, Admission, Caller


class Slot:
    """The slot that one run holds while it works: one of the host's slots, or one that it borrows from its caller."""

    __slots__ = (
        "_admission", "_borrowed_from", "_borrowers", "_caller", "_is_extra", "_is_own", "_lent_to", "_owner",
        "_pauses",
    )  # fmt: skip

    def __init__(self, admission: Admission, caller: Caller = NOBODY) -> None:
        """`caller` is who makes the call: see `Admission`."""
        self._admission = admission
        self._is_own = False
        self._is_extra = False
        """Whether the run continues without any slot of the host, so that more calls run than the host has slots: see
        `resume_at_once`."""
        self._caller = caller
        self._owner = caller
        """The caller who took the slot of the host. The run of another caller may have taken it over."""
        self._borrowed_from: Slot | None = None
        self._lent_to: Slot | None = None
        self._borrowers: deque[asyncio.Future[bool]] | None = None
        """Calls that wait to borrow this slot; None until there is one."""
        self._pauses = 0

    @property
    def is_held(self) -> bool:
        return self._is_own or self._is_extra or self._borrowed_from is not None

    @property
    def _is_free(self) -> bool:
        """Whether a call may borrow this slot."""
        return self.is_held and self._lent_to is None and not self._pauses

    def take(self, caller: Slot | None) -> bool:
        """Take a slot at once; False if none is free."""
        if self.is_held:
            return True
        if caller is not None and caller._is_free and not caller._borrowers:
            self._borrow(caller)
        elif self._admission.take(self._caller):
            self._own()
        else:
            return False
        return True

    async def wait(self, caller: Slot | None) -> None:
        """Wait for a slot and take it: the caller's slot or one of the host's slots, whichever is free first."""
        while not self.take(caller):
            turn = self._admission.enqueue(self._caller)
            if caller is not None:
                if caller._borrowers is None:
                    caller._borrowers = deque()
                caller._borrowers.append(turn)
            try:
                is_own = await turn
            except asyncio.CancelledError:
                self._pass_on(turn, caller)
                raise
            if is_own and self.is_held:
                self._admission.release(self._caller)  # This run got another slot at the same moment.
            elif is_own:
                self._own()
            elif caller is not None and caller._is_free and not self.is_held:
                self._borrow(caller)
            self._leave(turn, caller)
            if self.is_held:
                return

    def _leave(self, turn: asyncio.Future[bool], caller: Slot | None) -> None:
        """Remove `turn` from the queues for a slot: that of the host, and that of the caller's slot."""
        self._admission.leave(turn)
        if caller is not None and caller._borrowers is not None:
            with contextlib.suppress(ValueError):
                caller._borrowers.remove(turn)

    def _pass_on(self, turn: asyncio.Future[bool], caller: Slot | None) -> None:
        """Leave the queues for a slot without taking one. If a slot was assigned at the same moment, the next call in
        the queue gets this slot."""
        self._leave(turn, caller)
        if turn.done() and not turn.cancelled():
            if turn.result():
                self._admission.release(self._caller)
            elif caller is not None:
                caller._offer()

    def release(self) -> None:
        """Return the slot. If another call has borrowed the slot, that call keeps it as its own."""
        heir, self._lent_to = self._lent_to, None
        lender, self._borrowed_from = self._borrowed_from, None
        is_own, self._is_own = self._is_own, False
        is_extra, self._is_extra = self._is_extra, False
        if heir is not None:
            heir._borrowed_from, heir._is_own, heir._is_extra = lender, is_own, is_extra
            heir._owner = self._owner
            if lender is not None:
                lender._lent_to = heir
        elif lender is not None:
            lender._lent_to = None
            lender._offer()
        elif is_own:
            self._admission.release(self._owner)

    def pause(self) -> None:
        """Let other calls use the slot while a nested call of this run waits for a person. If another nested call has
        borrowed the slot, that other call keeps the slot until it ends."""
        self._pauses += 1
        if self._lent_to is None:
            self.release()

    async def resume(self, caller: Slot | None) -> None:
        """Take a slot again after a person has answered the request of a nested call. If this wait is cancelled, only
        the nested call was cancelled: this run continues at once, even if no slot is free."""
        self._pauses -= 1
        if not self._pauses and not self.is_held:
            try:
                await self.wait(caller)
            except asyncio.CancelledError:
                self._is_extra = not self.take(caller)
                self._offer()
                raise
        self._offer()

    def resume_at_once(self, caller: Slot | None) -> None:
        """Take a slot again without waiting. If no slot is free, the run continues without one. There are two reasons
        not to wait: the nested call was cancelled; or the run holds a lock, and the calls that have the slots may be
        waiting for this lock."""
        self._pauses -= 1
        if not self._pauses and not self.take(caller):
            self._is_extra = True
        self._offer()

    def _own(self) -> None:
        self._is_own, self._owner = True, self._caller

    def _borrow(self, caller: Slot) -> None:
        caller._lent_to, self._borrowed_from = self, caller

    def _offer(self) -> None:
        """If the slot is free now, let the call that waits longest try to borrow it."""
        if self._pauses and self._lent_to is None and self.is_held:
            self.release()
            return
        while self._is_free and self._borrowers:
            turn = self._borrowers.popleft()
            if not turn.done():
                turn.set_result(False)
                return
