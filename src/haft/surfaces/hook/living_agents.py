"""The agents that called a hook and still live. Each is announced as a living client of haft, and watched: when it
ends, the calls whose end it did not tell end as unknown."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from haft.service import Announcement, StateHome, announce
from haft.surfaces.hook.agent_process import AgentProcess
from haft.values import dataclass, field


@dataclass(slots=True)
class _Living:
    name: str
    descriptor: int | None
    announcement: Announcement
    on_end: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What to do when the agent ends, by the key of a call."""


class LivingAgents:
    """The agents that live, by process id."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self._living: dict[int, _Living] = {}

    @property
    def has_any(self) -> bool:
        return bool(self._living)

    def meet(self, name: str, process: AgentProcess | None) -> None:
        """Note that an agent called a hook. Raises `StorageFailed` if it cannot be announced."""
        if process is None:
            return
        known = self._living.get(process.pid)
        if known is not None and known.name == name:
            known.announcement.renew()
            return
        if known is not None:
            self._end(process.pid)
        descriptor = None
        with contextlib.suppress(OSError, AttributeError):
            descriptor = os.pidfd_open(process.pid)
        self._living[process.pid] = _Living(name, descriptor, announce(self._home, name, process.pid))
        if descriptor is not None:
            asyncio.get_running_loop().add_reader(descriptor, self._end, process.pid)

    def await_end(self, process: AgentProcess | None, key: str, lost: Callable[[], None]) -> None:
        """Call `lost` if the agent ends before `forget` is called with the same key."""
        living = None if process is None else self._living.get(process.pid)
        if living is not None:
            living.on_end[key] = lost

    def forget(self, key: str) -> None:
        """Note that a call has ended."""
        for living in self._living.values():
            living.on_end.pop(key, None)

    def _end(self, pid: int) -> None:
        living = self._living.pop(pid, None)
        if living is None:
            return
        self._release(living)
        for lost in living.on_end.values():
            lost()

    @staticmethod
    def _release(living: _Living) -> None:
        if living.descriptor is not None:
            asyncio.get_running_loop().remove_reader(living.descriptor)
            os.close(living.descriptor)
        living.announcement.release()

    def close(self) -> None:
        """Stop watching."""
        for living in self._living.values():
            self._release(living)
        self._living.clear()
