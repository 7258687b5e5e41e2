"""Clients over HTTP that run on this machine, for the same user: each is announced as a living client before its first
request is handled, so that it cannot approve its own calls."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from haft.contracts import HaftError
from haft.service import Announcement, StateHome, announce_peer

if TYPE_CHECKING:
    from haft.service import ClientToken

MOST_CONNECTIONS: Final = 1000
"""How many connections are kept in mind, so that their processes are not looked up again."""


class LocalClients:
    """The clients of one server that run on this machine."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self._known: dict[tuple[str, str, int], Announcement | None] = {}
        self._turn = asyncio.Lock()

    async def meet(self, token: ClientToken, address: str, port: int) -> None:
        """Announce the client that connects from this address and port, once for each connection."""
        key = (token.name, address, port)
        async with self._turn:
            known = self._known.get(key)
            if key in self._known and (known is None or known.lives):
                return
            if known is not None:
                known.release()
            made = None
            with contextlib.suppress(HaftError):  # Without an announcement, the request is answered all the same.
                pids = {each.pid for each in self._known.values() if each is not None}
                made = await asyncio.to_thread(announce_peer, self._home, token.name, address, port, pids)
            self._known[key] = made
            self._release_doubles(made, key)

    def _release_doubles(self, made: Announcement | None, key: tuple[str, str, int]) -> None:
        """Keep one announcement of each process, and forget the oldest connections."""
        for other, known in list(self._known.items()):
            is_same = made is not None and known is not None and known.pid == made.pid
            if other != key and (is_same or len(self._known) > MOST_CONNECTIONS):
                del self._known[other]
                if known is not None:
                    known.release()

    def close(self) -> None:
        """End all announcements."""
        for known in self._known.values():
            if known is not None:
                known.release()
        self._known.clear()
