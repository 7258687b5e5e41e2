"""The leases of the second storage: they end with time unless they are renewed, as over a network."""

import json
import os
import threading
from contextlib import suppress

from haft.contracts import HostId, LeaseLost, new_host_id
from haft.storage import Lease, Leases
from haft.version import __version__

FORMAT = 1


def replace_file(path, data):
    """Whole or not at all."""
    fresh = f"{path}.{os.urandom(8).hex()}.tmp"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
    os.rename(fresh, path)


def read_file(path):
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return None


class FileLease(Lease):
    """Renewed by a thread. It is lost when its time is over and another takes it; it may be before that is known."""

    def __init__(self, leases, host, number, facts, until):
        self.host, self.number, self.facts = host, number, facts
        self._leases, self._until = leases, until
        self._ended = threading.Event()
        threading.Thread(target=self._renew, daemon=True).start()

    def _renew(self):
        while not self._ended.wait(self._leases.seconds / 4):
            with suppress(LeaseLost), self._leases.alone():
                self.require()
                self._until = self._leases.write(self)

    def check(self):
        if self._ended.is_set() or self._leases.now() >= self._until:
            raise LeaseLost(self.host)

    def require(self):
        """Under the lock: whether it is still ours, whatever the clock says."""
        kept = self._leases.read(self.host)
        if kept is None or kept["number"] != self.number:
            self._ended.set()
            raise LeaseLost(self.host)

    def tell(self, facts):
        self.facts = {**own_facts(), **facts}
        with suppress(LeaseLost), self._leases.alone():
            self.require()
            self._leases.write(self)

    def release(self, *, done):
        with suppress(LeaseLost), self._leases.alone():
            self.require()
            if done:
                os.unlink(self._leases.path(self.host))
            else:
                self._leases.write(self, until=0.0)
        self._ended.set()


class FileLeases(Leases):
    def __init__(self, stores):
        self._stores = stores
        self.seconds, self.now, self.alone = stores.lease_seconds, stores.now, stores.alone

    def path(self, host):
        return self._stores.path("leases", f"{host}.json")

    def read(self, host):
        data = read_file(self.path(host))
        return None if data is None else json.loads(data)

    def write(self, lease, until=None):
        until = self.now() + self.seconds if until is None else until
        os.makedirs(self._stores.path("leases"), mode=0o700, exist_ok=True)
        kept = {"number": lease.number, "until": until, "facts": dict(lease.facts)}
        replace_file(self.path(lease.host), json.dumps(kept).encode())
        return until

    def take(self):
        lease = FileLease(self, new_host_id(), 1, own_facts(), self.now() + self.seconds)
        with self.alone():
            self.write(lease)
        return lease

    def _hosts(self):
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(self._stores.path("leases"))):
                if name.endswith(".json"):
                    yield HostId(name.removesuffix(".json"))

    def dead(self, own):
        for host in self._hosts():
            lease = None
            with self.alone():
                kept = self.read(host)
                if host != own and kept is not None and kept["until"] <= self.now():
                    facts = {**kept["facts"], **own_facts()}
                    lease = FileLease(self, host, kept["number"] + 1, facts, self.now() + self.seconds)
                    self.write(lease)
            if lease is not None:
                yield lease

    def live(self):
        for host in self._hosts():
            kept = self.read(host)
            if kept is not None and kept["until"] > self.now():
                yield host, kept["facts"]

    def is_alive(self, host):
        return any(live == host for live, _facts in self.live())


def own_facts():
    return {"pid": os.getpid(), "version": __version__, "format": FORMAT}
