"""Limits how many calls run at the same time, and lets the callers take turns.

The calls of one caller run in their order of arrival. If several callers wait, each of them gets a slot in turn, so
that a caller with 900 calls does not keep the others waiting. A caller whose user has as many calls in progress as one
user may have is passed over. Every operation takes the same time however many calls wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final, NamedTuple


class Caller(NamedTuple):
    """Who makes calls: a user or an agent, in one thread."""

    who: str
    thread: str


NOBODY: Final = Caller("", "")
"""The caller of calls for which no caller is known."""

_Turns = OrderedDict[asyncio.Future[bool], None]


class Admission:
    """The slots of one host. `Slot` takes and returns them."""

    def __init__(self, places: int, places_per_user: int = 0) -> None:
        """`places_per_user` is how many slots one user may have; 0: all."""
        self._free = places
        self._per_user = places_per_user
        self._running: dict[str, int] = {}
        """How many slots each user has, if that is limited."""
        self._queues: dict[Caller, _Turns] = {}
        """The calls that wait, by caller, each in the order of arrival."""
        self._ring: OrderedDict[Caller, None] = OrderedDict()
        """The callers that may get a slot, the next one first."""
        self._held_back: dict[str, OrderedDict[Caller, None]] = {}
        """The callers whose user has all slots that one user may have, by user."""
        self._callers: dict[asyncio.Future[bool], Caller] = {}

    def take(self, caller: Caller = NOBODY) -> bool:
        """Take a slot at once. Returns False if no slot is free for this caller, or if other calls are waiting."""
        if self._free > 0 and not self._ring and caller not in self._queues and not self._is_full(caller.who):
            self._occupy(caller.who)
            return True
        return False

    def enqueue(self, caller: Caller = NOBODY) -> asyncio.Future[bool]:
        """Join the queue for a slot. The returned future becomes True when a slot is assigned."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._callers[turn] = caller
        queue = self._queues.get(caller)
        if queue is None:
            queue = self._queues[caller] = OrderedDict()
            self._line_up(caller)
        queue[turn] = None
        return turn

    def leave(self, turn: asyncio.Future[bool]) -> None:
        """Leave the queue; `turn` is the future that `enqueue` returned."""
        caller = self._callers.pop(turn, None)
        if caller is None:
            return  # `release` has removed it already.
        queue = self._queues[caller]
        del queue[turn]
        if not queue:
            self._remove(caller)

    def release(self, caller: Caller = NOBODY) -> None:
        """Give up a slot of this caller. The next call in turn gets it, if any may have it."""
        self._free += 1
        if self._per_user:
            left = self._running[caller.who] - 1
            if left:
                self._running[caller.who] = left
            else:
                del self._running[caller.who]
            self._admit_held_back(caller.who)
        self._assign()

    @property
    def free(self) -> int:
        return self._free

    @property
    def waiting(self) -> int:
        return len(self._callers)

    def _assign(self) -> None:
        """Give the free slots to the callers whose turn it is."""
        while self._free > 0 and self._ring:
            caller, _ = self._ring.popitem(last=False)
            if self._is_full(caller.who):
                self._line_up(caller)
                continue
            queue = self._queues[caller]
            turn, _ = queue.popitem(last=False)
            del self._callers[turn]
            if queue:
                self._ring[caller] = None  # Behind the other callers.
            else:
                del self._queues[caller]
            if turn.done():  # The call has borrowed another slot, or was cancelled.
                self._admit_held_back(caller.who)
            else:
                self._occupy(caller.who)
                turn.set_result(True)

    def _line_up(self, caller: Caller) -> None:
        if self._is_full(caller.who):
            self._held_back.setdefault(caller.who, OrderedDict())[caller] = None
        else:
            self._ring[caller] = None

    def _remove(self, caller: Caller) -> None:
        """Forget a caller of whom no call waits."""
        del self._queues[caller]
        self._ring.pop(caller, None)
        held_back = self._held_back.get(caller.who)
        if held_back is not None:
            held_back.pop(caller, None)
            if not held_back:
                del self._held_back[caller.who]
        self._admit_held_back(caller.who)
        self._assign()

    def _admit_held_back(self, who: str) -> None:
        """Let the next caller of this user take turns again, if the user may have another slot."""
        held_back = self._held_back.get(who)
        if held_back is not None and not self._is_full(who):
            caller, _ = held_back.popitem(last=False)
            if not held_back:
                del self._held_back[who]
            self._ring[caller] = None

    def _is_full(self, who: str) -> bool:
        return self._per_user > 0 and self._running.get(who, 0) >= self._per_user

    def _occupy(self, who: str) -> None:
        self._free -= 1
        if self._per_user:
            self._running[who] = self._running.get(who, 0) + 1
