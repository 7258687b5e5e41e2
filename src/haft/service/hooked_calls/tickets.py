"""Tickets: each lets one command of an agent run once, because haft has decided about that command.

A ticket is a file in the state home, so that it is still good after the resident was restarted. It names everything it
is bound to: the agent, its session, the workspace, the directory, and a digest of the command. Whoever removes the file
has redeemed the ticket, so no ticket is redeemed twice. The module decides nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from typing import Any, Final

from haft.service.private_files import write_new
from haft.storage import StateHome
from haft.values import dataclass

LIFE_SECONDS: Final = 3600.0
"""How long a ticket is good. A person may take that long to answer in the agent's own prompt."""
PREFIX: Final = "t_"
_DIGITS: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket, with everything that it is bound to."""

    id: str
    agent: str
    session: str
    workspace: str
    cwd: str
    """The directory in which the command runs: absolute, with links resolved."""
    digest: str
    """The digest of the command."""
    run: str
    """The run in which haft decided about the command."""
    expires_at: float
    is_asked: bool = False
    """Whether the agent asks a person in its own prompt before it uses the ticket."""
    limit_seconds: float | None = None
    """The agent's own time limit for the command."""
    is_background: bool = False

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def why_not(self, command: str, cwd: str) -> str | None:
        """Why the ticket is not good for this command in this directory; None if it is."""
        if time.time() > self.expires_at:
            return "its ticket has expired"
        if not secrets.compare_digest(self.digest, digest_of(command)):
            return "its ticket was made for another command"
        if os.path.realpath(cwd) != self.cwd:
            return f"its ticket was made for the directory {self.cwd}, and the command was to run in {cwd}"
        return None


def digest_of(command: str) -> str:
    """The digest of a command, to which a ticket is bound."""
    return hashlib.sha256(command.encode("utf-8", "surrogateescape")).hexdigest()


def new_ticket_id() -> str:
    """An id that nobody can guess."""
    return PREFIX + secrets.token_hex(9)


class Tickets:
    """The tickets of a state home that were not redeemed yet."""

    def __init__(self, home: StateHome) -> None:
        self._directory = os.path.join(home.path, "hook", "tickets")

    def save(self, ticket: Ticket) -> None:
        """Save a new ticket."""
        os.makedirs(os.path.dirname(self._directory), mode=0o700, exist_ok=True)
        # After a power loss no agent lives that could redeem a ticket.
        write_new(self._directory, ticket.id, json.dumps(ticket.to_json()).encode(), is_synced=False)

    def find(self, name: str) -> Ticket | None:
        """The ticket with this id; None if there is none, or it was redeemed."""
        if not name.startswith(PREFIX) or not _DIGITS.issuperset(name.removeprefix(PREFIX)):
            return None
        try:
            with open(os.path.join(self._directory, name), encoding="utf-8") as file:
                return Ticket(**json.load(file))
        except (OSError, ValueError, TypeError):
            return None

    def take(self, ticket: Ticket) -> bool:
        """Redeem a ticket, or give it up. Returns False if it is gone already."""
        try:
            os.unlink(os.path.join(self._directory, ticket.id))
        except FileNotFoundError:
            return False
        return True

    def remove_expired(self) -> None:
        """Remove the tickets that are good no longer."""
        now = time.time()
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._directory):
                ticket = self.find(name)
                if ticket is not None and ticket.expires_at < now:
                    self.take(ticket)
