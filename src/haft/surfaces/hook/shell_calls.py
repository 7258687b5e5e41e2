"""Answers `start.py shell`: runs the command of a rewritten line with the streams of the agent's shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.service import (
    BadHookMessage,
    HookConnection,
    HookedEnd,
    HookKind,
    HookMessage,
    StateHome,
    Tickets,
    ToolService,
)
from haft.surfaces.hook.line import moved_file
from haft.surfaces.hook.resident import signs_of_life
from haft.surfaces.hook.workspaces import Workspaces

NOT_RUN: Final = 126
_KEPT_SECONDS: Final = 3600.0


class ShellCalls:
    """Runs the commands of rewritten lines."""

    def __init__(self, home: StateHome, workspaces: Workspaces, on_redeemed: Callable[[str], None]) -> None:
        """`on_redeemed` gets the ticket of each line that an agent ran."""
        self._home = home
        self._workspaces = workspaces
        self._on_redeemed = on_redeemed

    async def handle(self, connection: HookConnection, message: HookMessage) -> None:
        """Run one command."""
        ticket = ""
        try:
            _format, ticket, command, cwd, told, *_rest = (*map(os.fsdecode, message.fields), "")
            if len(message.descriptors) != 3:
                raise BadHookMessage("a shell call needs three streams")
            async with signs_of_life(connection):
                variables = dict(each.split("=", 1) for each in told.split("\0") if "=" in each)
                end = await self._run(connection, ticket, command, cwd, variables, message.descriptors)
        except ValueError as error:
            end = HookedEnd(NOT_RUN, text=f"haft: the command was not run: {error}")
        finally:
            message.close()
        if end is not None:
            directory = os.fsencode(end.directory or "")
            if end.directory is not None:
                self._note_directory(ticket, directory)
            await connection.send(HookKind.ANSWER, b"%d" % end.status, directory, os.fsencode(end.text))

    async def _run(
        self,
        connection: HookConnection,
        ticket: str,
        command: str,
        cwd: str,
        variables: Mapping[str, str],
        streams: tuple[int, ...],
    ) -> HookedEnd | None:
        found = Tickets(self._home).find(ticket)
        if found is None:
            return HookedEnd(NOT_RUN, text="haft: the command was not run: its ticket is unknown, or was used before")
        self._on_redeemed(ticket)
        stdin, stdout, stderr = streams
        async with self._workspaces.service_of_ticket(found, variables) as service:
            work = asyncio.ensure_future(
                service.hooked.run(ticket, command, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)
            )
            listening = asyncio.ensure_future(_listen(connection, service, ticket))
            both: set[asyncio.Future[Any]] = {work, listening}
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                listening.cancel()
                is_gone = not work.done()
                if is_gone:  # `start.py` has died.
                    work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({work})
            return None if is_gone else await work

    def _note_directory(self, ticket: str, directory: bytes) -> None:
        """Write down where the command ended, for the rest of the rewritten line."""
        path = moved_file(self._home.path, ticket)
        place = os.path.dirname(path)
        os.makedirs(place, mode=0o700, exist_ok=True)
        with open(path, "wb") as file:
            file.write(directory)
        for name in os.listdir(place):
            with contextlib.suppress(OSError):
                other = os.path.join(place, name)
                if time.time() - os.stat(other).st_mtime > _KEPT_SECONDS:
                    os.unlink(other)


async def _listen(connection: HookConnection, service: ToolService, ticket: str) -> None:
    """Pass on signals, until the other end is gone."""
    while (message := await connection.receive()) is not None:
        message.close()
        if message.kind == HookKind.SIGNAL and message.fields and message.fields[0].isdigit():
            service.hooked.signal(ticket, int(message.fields[0]))
