"""The services of the resident: one for each workspace in which agents work, opened at the first call there. Agents of
another terminal, with another PATH or an activated environment, get a service of their own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Final

from haft.service import StateHome, Ticket, ToolService, config_signature, environment_key, environment_of
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
    """The open services, by workspace and by those variables of agents that make a difference."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self._opened: dict[tuple[str, object], _Opened] = {}
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
    async def service(self, workspace: str, variables: Mapping[str, str]) -> AsyncIterator[ToolService]:
        """The service of a workspace for an agent with these variables. It stays open at least as long as this is
        entered."""
        async with self._used(await self._open(workspace, variables)) as service:
            yield service

    @contextlib.asynccontextmanager
    async def service_of_ticket(self, ticket: Ticket, variables: Mapping[str, str]) -> AsyncIterator[ToolService]:
        """The service that made a ticket, or, if it was closed meanwhile, another one of the same workspace."""
        found = next((each for each in self._all() if each.service.hooked.has(ticket.id)), None)
        async with self._used(found or await self._open(ticket.workspace, variables)) as service:
            yield service

    @contextlib.asynccontextmanager
    async def _used(self, opened: _Opened) -> AsyncIterator[ToolService]:
        opened.users += 1
        try:
            yield opened.service
        finally:
            opened.users -= 1
            opened.used_at = time.monotonic()

    async def _open(self, workspace: str, variables: Mapping[str, str]) -> _Opened:
        environ = environment_of(variables)
        key = workspace, environment_key(environ)
        async with self._lock:
            signature = config_signature(workspace, environ, self._home.path)
            found = self._opened.get(key)
            if found is not None and found.signature == signature:
                return found
            service = ToolService.open(workspace, home=self._home, environ=environ, waits_for_flush=True)
            await service.__aenter__()
            if found is not None:  # Its rules are old: no new call gets it.
                self._old.append(found)
            self._opened[key] = opened = _Opened(service, signature, time.monotonic())
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
