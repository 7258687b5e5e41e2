"""The claims of all hosts on one workspace, as files in one directory of the state home.

DIRECTORY/
  table                     the next ticket, and a text that differs after every change; locked to take a ticket
  TICKET-HOST.claim         one claim, as JSON; it is never changed
  TICKET-HOST.person        the run with this claim waits for a person

A process that reads `table` sees in 24 bytes whether anything has changed. Whoever finds claims of a host that is dead
removes them, so claims end with their process. Nothing is synced to disk: claims mean nothing after a restart of the
machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
from collections.abc import Callable, Iterator
from typing import Final

from haft.files import owner_only
from haft.schedule.claims import Claim

_TABLE: Final = struct.Struct("=Q16s")


class ClaimFiles:
    """The directory, as one host uses it. Every method may raise `OSError`, except `close`."""

    def __init__(self, directory: str, host: str, is_alive: Callable[[str], bool]) -> None:
        self._directory = directory
        self._host = host
        self._is_alive = is_alive
        self._seen = b""
        self._known: dict[int, str] = {}
        """The claims of other hosts that were read and are not gone: the name of the file by ticket."""
        self._table = -1

    def open(self) -> None:
        """Make and open the directory, and remove what dead hosts left in it. Done once."""
        if self._table >= 0:
            return
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        self._table = os.open(os.path.join(self._directory, "table"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.bury({host for name in os.listdir(self._directory) if (host := _host_in(name)) is not None})

    def close(self) -> None:
        """Close the directory, and remove what this host left in it."""
        if self._table < 0:
            return
        with contextlib.suppress(OSError):
            self._remove_all({self._host})
        os.close(self._table)
        self._table = -1

    @contextlib.contextmanager
    def try_locked(self) -> Iterator[bool]:
        """Lock the table if it is free. Inside, the value is True, and no other process adds a claim; or the value is
        False, because another process has the lock."""
        try:
            fcntl.flock(self._table, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.flock(self._table, fcntl.LOCK_UN)

    def take_ticket(self) -> int:
        """The next ticket. Call it only while the table is locked."""
        ticket = self._read()[0] + 1
        os.pwrite(self._table, _TABLE.pack(ticket, os.urandom(16)), 0)
        return ticket

    def publish(self, claim: Claim) -> None:
        """Show a claim of this host to the other hosts."""
        path = self._path(claim.ticket, "claim")
        with open(f"{path}.tmp", "w", opener=owner_only) as file:
            json.dump(claim.to_json(), file)
        os.rename(f"{path}.tmp", path)
        self._changed()

    def withdraw(self, ticket: int) -> None:
        """Remove a claim of this host."""
        os.unlink(self._path(ticket, "claim"))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(ticket, "person"))
        self._changed()

    def set_person(self, ticket: int, *, waits: bool) -> None:
        """Show to the other hosts whether the run with this claim waits for a person."""
        path = self._path(ticket, "person")
        if waits:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        self._changed()

    def has_changed(self) -> bool:
        """Whether anything may have changed since `read`."""
        return self._read()[1] != self._seen

    def read(self) -> tuple[list[Claim], list[int], set[int]]:
        """The claims of other hosts that are new since the last time, the tickets of those that are gone, and the
        tickets of all claims whose runs wait for a person."""
        seen = self._read()[1]
        there: dict[int, str] = {}
        persons: set[int] = set()
        for name in os.listdir(self._directory):
            host = _host_in(name)
            if host is None:
                continue
            ticket = int(name.partition("-")[0])
            if name.endswith(".person"):
                persons.add(ticket)
            elif host != self._host:
                there[ticket] = name
        gone = [ticket for ticket in self._known if ticket not in there]
        for ticket in gone:
            del self._known[ticket]
        new = []
        for ticket in sorted(there.keys() - self._known.keys()):
            try:
                new.append(_claim_in(os.path.join(self._directory, there[ticket]), ticket))
            except (FileNotFoundError, IsADirectoryError, ValueError, TypeError, LookupError):
                continue  # It ended meanwhile, or it is damaged.
            self._known[ticket] = there[ticket]
        self._seen = seen
        return new, gone, persons

    def bury(self, hosts: set[str]) -> bool:
        """Remove the claims of those of the `hosts` that are dead. Returns whether any of them is."""
        dead = {host for host in hosts if host != self._host and not self._is_alive(host)}
        if dead:
            self._remove_all(dead)
        return bool(dead)

    def _remove_all(self, hosts: set[str]) -> None:
        for name in os.listdir(self._directory):
            if _host_in(name, unfinished=True) in hosts:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._directory, name))
        self._changed()

    def _read(self) -> tuple[int, bytes]:
        found = os.pread(self._table, _TABLE.size, 0)
        return _TABLE.unpack(found) if len(found) == _TABLE.size else (0, b"")

    def _changed(self) -> None:
        # A random text and not a counter: two processes may write it at once, and each change must be seen.
        os.pwrite(self._table, os.urandom(16), 8)

    def _path(self, ticket: int, ending: str) -> str:
        return os.path.join(self._directory, f"{ticket}-{self._host}.{ending}")


def _claim_in(path: str, ticket: int) -> Claim:
    with open(path) as file:
        facts = json.load(file)
    paths, resources, callers = (tuple(facts[name]) for name in ("writes", "resources", "callers"))
    return Claim(ticket, facts["host"], facts["run"], paths, resources, callers)


def _host_in(name: str, *, unfinished: bool = False) -> str | None:
    """The host in the name of a file; None if it is another kind of file."""
    ticket, _, rest = name.partition("-")
    host, dot, ending = rest.partition(".")
    endings = ("claim", "person", "claim.tmp") if unfinished else ("claim", "person")
    return host if dot and ticket.isdecimal() and ending in endings else None
