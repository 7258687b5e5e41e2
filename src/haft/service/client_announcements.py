"""Announces the program at the other end of a connection as a living client: of stdin, or of a TCP connection.

`haft serve mcp` uses this module. Other surfaces know the process of their agent, and call `announce` themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from haft.service import process_tree
from haft.service.living_clients import Announcement, announce
from haft.service.peer_processes import at_other_end, with_connection
from haft.storage import StateHome


def announce_caller(home: StateHome, stdin: int) -> Announcement | None:
    """Announce the program that talks to this process over the descriptor `stdin`, as an MCP client does. If a wrapper
    such as `sh -c` started this process, the client is the program that holds the other end. None if a person started
    it at a terminal, or if nobody is found."""
    if os.isatty(stdin):
        return None
    pid = at_other_end(stdin) or os.getppid()
    found = process_tree.process(pid)
    return None if pid <= 1 else announce(home, "an MCP client" if found is None else found.name, pid)


def announce_peer(
    home: StateHome, name: str, address: str, port: int, likely: Iterable[int] = ()
) -> Announcement | None:
    """Announce the program of this user that connected to this process from `address` and `port`. None if the program
    is on another machine, or belongs to another user, or is not found. The processes `likely` are looked at first."""
    pid = with_connection(address, port, likely)
    return None if pid is None else announce(home, name, pid)
