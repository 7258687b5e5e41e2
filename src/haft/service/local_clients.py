"""Programs on this machine, of the same user, that use a server of haft over HTTP.

An agent's program is announced as a living client before its first request is handled, so that no process of this agent
can approve its calls. And a request with the token or session of a person may come from a program of an agent, such as
`curl` in its shell: `agent_behind` finds out.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from haft.contracts import HaftError
from haft.service.client_announcements import announce_peer
from haft.service.living_clients import Announcement, belongs_to, clients_alive, record_refusal
from haft.service.peer_processes import with_connection
from haft.storage import StateHome

MOST_CONNECTIONS: Final = 1000
"""How many connections are kept in mind, so that their processes are not looked up again."""


class LocalClients:
    """The clients of one server that run on this machine."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self._known: dict[tuple[str, str, int], Announcement | None] = {}
        self._recorded: dict[tuple[str, int], None] = {}
        """The connections of agents with the rights of a person that are in the audit log."""
        self._turn = asyncio.Lock()

    async def meet(self, name: str, address: str, port: int) -> None:
        """Announce the agent that connects from this address and port, once for each connection."""
        key = (name, address, port)
        async with self._turn:
            known = self._known.get(key)
            if key in self._known and (known is None or known.lives):
                return
            if known is not None:
                known.release()
            made = None
            with contextlib.suppress(HaftError):  # Without an announcement, the request is answered all the same.
                made = await asyncio.to_thread(announce_peer, self._home, name, address, port, self._pids())
            self._known[key] = made
            self._release_doubles(made, key)

    async def agent_behind(self, name: str, address: str, port: int) -> str | None:
        """The living client to which the program behind this connection belongs, and why haft thinks so. None if the
        program is a person's, is on another machine, or belongs to another user. That an agent uses what belongs to
        the person `name` is in the audit log, once for each connection."""
        return await asyncio.to_thread(self._agent_behind, name, address, port)

    def _agent_behind(self, name: str, address: str, port: int) -> str | None:
        if not clients_alive(self._home):
            return None
        pid = with_connection(address, port, self._pids())
        if pid is None:
            return None
        for client, why in belongs_to(self._home, pid):
            if (address, port) not in self._recorded:
                self._recorded[address, port] = None
                record_refusal(self._home, f"a request with the rights of {name}", client, why)
            while len(self._recorded) > MOST_CONNECTIONS:
                del self._recorded[next(iter(self._recorded))]
            return f"{client.words()}: {why}"
        return None

    def _pids(self) -> set[int]:
        """The processes that are looked at first."""
        return {each.pid for each in list(self._known.values()) if each is not None}

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
