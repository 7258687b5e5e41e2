"""The services of the resident: one for each workspace in which agents work, opened at the first call there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import Final

from haft.service import StateHome, ToolService, config_signature
from haft.values import dataclass

IDLE_SECONDS: Final = 900.0
"""After how many seconds without a call the service of a workspace is closed."""


@dataclass(slots=True)
class _Opened:
    service: ToolService
    signature: tuple[object, ...]
    used_at: float
    users: int = 0

    @property
    def is_busy(self) -> bool:
        return self.users > 0 or self.service.hooked.is_busy or self.service.observed.is_busy


class Workspaces:
    """The open services, by workspace."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self._opened: dict[str, _Opened] = {}
        self._old: list[_Opened] = []
        """Services with an old configuration, which still have work."""
        self._lock = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether a command runs, or the end of a call is awaited."""
        return any(each.is_busy for each in self._all())

    def _all(self) -> list[_Opened]:
        return [*self._opened.values(), *self._old]

    def services(self) -> list[ToolService]:
        """All open services."""
        return [each.service for each in self._all()]

    @contextlib.asynccontextmanager
    async def service(self, workspace: str):  # type: ignore[no-untyped-def]  # noqa: ANN201  an async generator
        """The service of a workspace. It stays open at least as long as this is entered."""
        opened = await self._open(workspace)
        opened.users += 1
        try:
            yield opened.service
        finally:
            opened.users -= 1
            opened.used_at = time.monotonic()

    async def _open(self, workspace: str) -> _Opened:
        async with self._lock:
            signature = config_signature(workspace, os.environ, self._home.path)
            found = self._opened.get(workspace)
            if found is not None and found.signature == signature:
                return found
            service = ToolService.open(workspace, home=self._home)
            await service.__aenter__()
            if found is not None:  # Its rules are old: no new call gets it.
                self._old.append(found)
            self._opened[workspace] = opened = _Opened(service, signature, time.monotonic())
        return opened

    async def close_idle(self) -> None:
        """Close the services that nobody needs."""
        now = time.monotonic()
        idle = [name for name, each in self._opened.items() if not each.is_busy and now - each.used_at > IDLE_SECONDS]
        closing = [self._opened.pop(name) for name in idle]
        closing += [each for each in self._old if not each.is_busy]
        self._old = [each for each in self._old if each.is_busy]
        for each in closing:
            await _close(each.service)

    async def close(self) -> None:
        """Close all services."""
        closing, self._opened, self._old = self._all(), {}, []
        await asyncio.gather(*(_close(each.service) for each in closing), return_exceptions=True)


async def _close(service: ToolService) -> None:
    service.hooked.close()
    await service.observed.close()
    await service.close()
