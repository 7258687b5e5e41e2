"""A host's claim on its runs: an exclusive lock on a file of its own, for its whole life.

The kernel gives the lock back when the process is gone, however it went. Whoever can take it knows that the host is
dead; nothing else proves that, neither a pid nor a run that looks open.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from haft.contracts import HostId, new_host_id
from haft.files import HeldLock, noted, try_take
from haft.runs.journal import journal_paths

UNBORN_SECONDS = 60.0


class Lease:
    """This host's lock, held."""

    def __init__(self, hosts: str) -> None:
        self.host = new_host_id()
        self._hosts = hosts
        self._lock = HeldLock.create(os.path.join(hosts, f"{self.host}.lock"))

    def tell(self, facts: Mapping[str, Any]) -> None:
        """Let other processes know this of the host, for as long as it lives; it stands in for what was told before.
        Nobody relies on it: where the disk is full, nothing is told."""
        with contextlib.suppress(OSError):
            self._lock.note(json.dumps(dict(facts)).encode())

    def release(self) -> None:
        """At the end of a host. Where something could not be carried over, the file stays for the next host to find."""
        self._lock.release(unlink=not journal_paths(self._hosts, self.host))


def dead_hosts(hosts: str, own: HostId | None) -> Iterator[tuple[HostId, HeldLock]]:
    """Each host whose lock could be taken: it is dead, and only we may clean up after it."""
    for name in sorted(os.listdir(hosts)):
        stem, dot, ending = name.partition(".")
        if ending.endswith(".tmp"):
            _forget_unborn(os.path.join(hosts, name))
        if (dot, ending) == (".", "lock") and stem != own:
            lock = None
            with contextlib.suppress(OSError):  # Not a file of ours.
                lock = try_take(os.path.join(hosts, name))
            if lock is not None:
                yield HostId(stem), lock


def live_hosts(hosts: str) -> Iterator[tuple[HostId, dict[str, Any]]]:
    """Each host that lives, this one included, and what it told of itself; empty where it told nothing."""
    for name in sorted(os.listdir(hosts)):
        stem, dot, ending = name.partition(".")
        if (dot, ending) == (".", "lock"):
            note = None
            with contextlib.suppress(OSError):  # Not a file of ours.
                note = noted(os.path.join(hosts, name))
            if note is not None:
                yield HostId(stem), _facts_in(note)


def _facts_in(note: bytes) -> dict[str, Any]:
    """The facts at the beginning of a note: behind them the end of an older one may stand, or they may be torn."""
    try:
        facts, _end = json.JSONDecoder().raw_decode(note.decode())
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _forget_unborn(path: str) -> None:
    """Remove a lock file that never got its name, as its host was killed first. A young one may still get it."""
    with contextlib.suppress(FileNotFoundError):
        if time.time() - os.stat(path).st_mtime > UNBORN_SECONDS:
            os.unlink(path)
