"""Leases as file locks: each host holds an exclusive lock on its own file, for its whole life.

The kernel releases the lock when the process ends, however it ends. A process that gets the lock knows that the host is
dead; neither a pid nor an open run proves that. The fencing number is in the database, and each write checks it in the
same transaction.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from haft.contracts import HostId, LeaseLost, StorageFailed, new_host_id
from haft.files import HeldLock, noted, try_lock
from haft.storage.ports.leases import Lease, Leases
from haft.storage.sqlite.migrations import MIGRATIONS
from haft.version import __version__

UNBORN_SECONDS: Final = 60.0


class LockLease(Lease):
    def __init__(self, host: HostId, number: int, lock: HeldLock, facts: Mapping[str, Any]) -> None:
        self.host = host
        self.number = number
        self.facts = facts
        self._lock = lock

    def check(self) -> None:
        if not self._lock.held:
            raise LeaseLost(self.host)

    def tell(self, facts: Mapping[str, Any]) -> None:
        self.facts = {**_own_facts(), **facts}
        with contextlib.suppress(OSError):
            self._lock.note(json.dumps(self.facts).encode())

    def release(self, *, done: bool) -> None:
        self._lock.release(unlink=done)


class LockLeases(Leases):
    def __init__(
        self,
        directory: str,
        raise_number: Callable[[HostId], int],
        require_format: Callable[[], None] = lambda: None,
    ) -> None:
        """`raise_number` gives a host's lease its next number; from then on, writes with earlier numbers are refused.
        `require_format` raises if the database has a format that this haft cannot use."""
        self._directory = directory
        self._raise_number = raise_number
        self._require_format = require_format

    def take(self) -> LockLease:
        host, facts = new_host_id(), _own_facts()
        try:
            lock = HeldLock.create(self._path(host), json.dumps(facts).encode())
        except OSError as error:
            raise StorageFailed(f"no host can begin in {self._directory}", error) from error
        try:
            # After taking the lock: a process that migrates the database meanwhile sees this host.
            self._require_format()
        except BaseException:
            lock.release(unlink=True)
            raise
        return LockLease(host, 1, lock, facts)

    def dead(self, own: HostId | None) -> Iterator[LockLease]:
        for name in sorted(os.listdir(self._directory)):
            if name.partition(".")[2].endswith(".tmp"):
                _forget_unborn(os.path.join(self._directory, name))
        for host in _hosts(self._directory):
            lock = None
            if host != own:
                with contextlib.suppress(OSError):  # Not a file of ours.
                    lock = try_lock(self._path(host), makes=False)
            if lock is not None:
                lease = LockLease(host, 1, lock, _facts_in(lock.read_note()))
                lease.tell({name: value for name, value in lease.facts.items() if name not in _own_facts()})
                try:
                    lease.number = self._raise_number(host)
                except BaseException:
                    lock.release(unlink=False)
                    raise
                yield lease

    def live(self) -> Iterator[tuple[HostId, dict[str, Any]]]:
        return live_hosts(self._directory)

    def is_alive(self, host: HostId) -> bool:
        return noted(self._path(host)) is not None

    def _path(self, host: HostId) -> str:
        return _path(self._directory, host)


def live_hosts(directory: str) -> Iterator[tuple[HostId, dict[str, Any]]]:
    """Each host that is alive, and its facts."""
    for host in _hosts(directory):
        note = None
        with contextlib.suppress(OSError):  # Not a file of ours.
            note = noted(_path(directory, host))
        if note is not None:
            yield host, _facts_in(note)


def _hosts(directory: str) -> Iterator[HostId]:
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(directory)):
            stem, dot, ending = name.partition(".")
            if (dot, ending) == (".", "lock"):
                yield HostId(stem)


def _path(directory: str, host: HostId) -> str:
    return os.path.join(directory, f"{host}.lock")


def _own_facts() -> dict[str, Any]:
    return {"pid": os.getpid(), "version": __version__, "format": len(MIGRATIONS)}


def _facts_in(note: bytes) -> dict[str, Any]:
    """The facts in the content of a lock file. The end of an older, longer content may follow them and is ignored.
    Empty if the facts are incomplete."""
    try:
        facts, _end = json.JSONDecoder().raw_decode(note.decode())
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _forget_unborn(path: str) -> None:
    """Remove a temporary lock file whose host was killed before it renamed the file. A recent file is not removed,
    because its host may still rename it."""
    with contextlib.suppress(FileNotFoundError):
        if time.time() - os.stat(path).st_mtime > UNBORN_SECONDS:
            os.unlink(path)
