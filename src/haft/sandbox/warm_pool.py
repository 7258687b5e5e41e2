"""Programs that are kept loaded between calls: which there are, who gets which, and when one ends.

A program is first kept when it was called once: the next call may find it loaded. Of one there are as many as there
were calls of it at a time, up to a few. Those that nobody calls for a while end, and so does whoever was not called for
longest when there are too many. What cannot be kept is started anew for each call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from haft.contracts import HaftError, StartFailed
from haft.processes import Helper, WarmStarter

IDLE_SECONDS: Final = 300.0
LOADING_SECONDS: Final = 60.0
MOST: Final = 24
MOST_ALIKE: Final = 4
PAUSE_SECONDS: Final = 0.02
"""After a call, before its program is loaded for the next: who calls once is gone by then."""
_log = logging.getLogger("haft")


@dataclass(frozen=True, slots=True)
class Key:
    """What makes two calls alike enough for one loaded program."""

    name: str
    version: str
    terms: str
    """Everything about its room and its environment."""


@dataclass(eq=False, slots=True)
class _Kept:
    key: Key
    helper: Helper
    starter: WarmStarter
    is_busy: bool = False
    timer: asyncio.TimerHandle | None = field(default=None)

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.starter.close()


class WarmPool:
    """Those of one host."""

    def __init__(
        self,
        idle_seconds: float = IDLE_SECONDS,
        most: int = MOST,
        on_unfit: Callable[[str, str, str], None] = lambda _name, _version, _why: None,
    ) -> None:
        """`on_unfit` is told which version of a program cannot be kept, and why."""
        self._on_unfit = on_unfit
        self._idle_seconds = idle_seconds
        self._most = most
        self._kept: list[_Kept] = []
        """The one that was used last is last."""
        self._loading: dict[Key, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        self.unfit: dict[tuple[str, str], str] = {}
        """Why a version of a program cannot be kept."""

    @property
    def count(self) -> int:
        """How many are loaded."""
        return len(self._kept)

    def take(self, key: Key, helper: Helper) -> WarmStarter | None:
        """One that is loaded and free, if there is any. It is to be given back."""
        self._sort_out(key, helper)
        for each in reversed(self._kept):
            if each.key == key and not each.is_busy:
                each.is_busy = True
                if each.timer is not None:
                    each.timer.cancel()
                    each.timer = None
                self._kept.remove(each)
                self._kept.append(each)
                return each.starter
        return None

    def give_back(self, starter: WarmStarter) -> None:
        """Its call is over."""
        for each in self._kept:
            if each.starter is starter:
                each.is_busy = False
                if starter.is_over or not starter.is_free:
                    self._end(each)
                else:
                    self._let_rest(each)
                return

    def want(self, key: Key, helper: Helper, load: Callable[[], Awaitable[WarmStarter]]) -> None:
        """A call found none that is free: have one more loaded, when there is time."""
        alike = sum(each.key == key for each in self._kept)
        if key in self._loading or alike >= MOST_ALIKE or (key.name, key.version) in self.unfit:
            return
        task = asyncio.create_task(self._load(key, helper, load))
        self._loading[key] = task
        task.add_done_callback(lambda _task: self._loading.pop(key, None))

    async def _load(self, key: Key, helper: Helper, load: Callable[[], Awaitable[WarmStarter]]) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        async with self._turn:  # One after the other: the calls that run meanwhile need the processors too.
            try:
                async with asyncio.timeout(LOADING_SECONDS):
                    starter = await load()
            except TimeoutError:
                self._give_up(key, f"it was not loaded within {LOADING_SECONDS:g} s")
            except StartFailed as error:
                self._give_up(key, error.message)
            except (HaftError, OSError) as error:
                _log.debug("`%s` could not be kept loaded: %s", key.name, error)
            else:
                each = _Kept(key, helper, starter)
                self._kept.append(each)
                self._let_rest(each)
                self._make_room()

    def _give_up(self, key: Key, why: str) -> None:
        self.unfit[key.name, key.version] = why
        self._on_unfit(key.name, key.version, why)
        _log.info("`%s` is started anew for each call: %s", key.name, why)

    def _let_rest(self, each: _Kept) -> None:
        each.timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._end, each)

    def _end(self, each: _Kept) -> None:
        if each in self._kept:
            self._kept.remove(each)
        each.close()

    def _sort_out(self, key: Key, helper: Helper) -> None:
        """End what will not be called again: it is gone, another version came, or its room is of another workspace."""
        for each in list(self._kept):
            is_old = each.key.name == key.name and each.key.version != key.version
            if not each.is_busy and (each.starter.is_over or is_old or each.helper is not helper):
                self._end(each)

    def _make_room(self) -> None:
        free = [each for each in self._kept if not each.is_busy]
        for each in free[: max(0, len(self._kept) - self._most)]:
            self._end(each)

    def close(self) -> None:
        """End all of them."""
        for task in list(self._loading.values()):
            task.cancel()
        for each in list(self._kept):
            self._end(each)
