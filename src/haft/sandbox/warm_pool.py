"""The programs that haft keeps loaded between calls.

After the first call of a program, haft loads the program, so that the next call may find it loaded. Of each program,
haft keeps as many copies as there were calls at the same time, up to a few. A copy that no call uses for a while ends.
If there are too many copies, the one that has been unused for longest ends. A program that cannot be kept loaded is
started anew for each call.
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
MAX_PROGRAMS: Final = 24
MAX_ALIKE: Final = 4
PAUSE_SECONDS: Final = 0.02
"""How long haft waits after a call before it loads the program: a host that makes only one call has ended by then."""
_log = logging.getLogger("haft")


@dataclass(frozen=True, slots=True)
class Key:
    """Two calls with equal keys can use the same loaded program."""

    name: str
    version: str
    setup: str
    """The sandbox, working directory and environment of the program, as JSON."""


@dataclass(eq=False, slots=True)
class _LoadedProgram:
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
    """The loaded programs of one host process."""

    def __init__(
        self,
        idle_seconds: float = IDLE_SECONDS,
        most: int = MAX_PROGRAMS,
        on_unfit: Callable[[str, str, str], None] = lambda _name, _version, _why: None,
    ) -> None:
        """`on_unfit` is called with the name and version of a program that cannot be kept loaded, and the reason."""
        self._on_unfit = on_unfit
        self._idle_seconds = idle_seconds
        self._most = most
        self._loaded: list[_LoadedProgram] = []
        """Sorted by last use, the most recent last."""
        self._loading: dict[Key, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        self.unfit: dict[tuple[str, str], str] = {}
        """By name and version of a program, the reason why it cannot be kept loaded."""

    @property
    def count(self) -> int:
        """The number of loaded programs."""
        return len(self._loaded)

    def take(self, key: Key, helper: Helper) -> WarmStarter | None:
        """A loaded program that no call uses now; None if there is no such program. After the call, the program must be
        returned with `give_back`."""
        self._end_outdated(key, helper)
        for each in reversed(self._loaded):
            if each.key == key and not each.is_busy:
                each.is_busy = True
                if each.timer is not None:
                    each.timer.cancel()
                    each.timer = None
                self._loaded.remove(each)
                self._loaded.append(each)
                return each.starter
        return None

    def give_back(self, starter: WarmStarter) -> None:
        """Take back a program whose call has ended."""
        for each in self._loaded:
            if each.starter is starter:
                each.is_busy = False
                if starter.is_over or not starter.is_free:
                    self._end(each)
                else:
                    self._start_idle_timer(each)
                return

    def load_later(self, key: Key, helper: Helper, load: Callable[[], Awaitable[WarmStarter]]) -> None:
        """Load one more copy of a program in the background, because a call found no free copy."""
        alike = sum(each.key == key for each in self._loaded)
        if key in self._loading or alike >= MAX_ALIKE or (key.name, key.version) in self.unfit:
            return
        task = asyncio.create_task(self._load(key, helper, load))
        self._loading[key] = task
        task.add_done_callback(lambda _task: self._loading.pop(key, None))

    async def _load(self, key: Key, helper: Helper, load: Callable[[], Awaitable[WarmStarter]]) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        async with self._turn:  # Load one at a time: running calls need the processors too.
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
                each = _LoadedProgram(key, helper, starter)
                self._loaded.append(each)
                self._start_idle_timer(each)
                self._end_excess()

    def _give_up(self, key: Key, why: str) -> None:
        self.unfit[key.name, key.version] = why
        self._on_unfit(key.name, key.version, why)
        _log.info("`%s` is started anew for each call: %s", key.name, why)

    def _start_idle_timer(self, each: _LoadedProgram) -> None:
        each.timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._end, each)

    def _end(self, each: _LoadedProgram) -> None:
        if each in self._loaded:
            self._loaded.remove(each)
        each.close()

    def _end_outdated(self, key: Key, helper: Helper) -> None:
        """Drop the programs that no call will use again: dead ones, old versions, and those of a replaced workspace."""
        for each in list(self._loaded):
            is_old = each.key.name == key.name and each.key.version != key.version
            if not each.is_busy and (each.starter.is_over or is_old or each.helper is not helper):
                self._end(each)

    def _end_excess(self) -> None:
        free = [each for each in self._loaded if not each.is_busy]
        for each in free[: max(0, len(self._loaded) - self._most)]:
            self._end(each)

    def close(self) -> None:
        """End all programs."""
        for task in list(self._loading.values()):
            task.cancel()
        for each in list(self._loaded):
            self._end(each)
