"""Leases: who lives, who takes over, and that whoever was taken over from writes no more. With real processes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from haft.audit.chain import Chain
from haft.contracts import LeaseLost
from haft.storage import Filter, decode, open_stores
from haft.version import __version__

sys.path.insert(0, str(Path(__file__).parent))
from storages import HERE, home_at

SHORT = 0.3
"""Seconds of a lease, where leases end with time."""


def test_a_lease_is_alive_with_what_it_tells_until_it_is_released(stores):
    leases = stores.leases()
    first, second = leases.take(), leases.take()
    first.tell({"abandoned": 2})
    live = dict(leases.live())
    assert set(live) == {first.host, second.host}
    assert (live[first.host]["pid"], live[first.host]["version"]) == (os.getpid(), __version__)
    assert live[first.host]["abandoned"] == 2
    assert list(leases.dead(None)) == []
    first.check()
    first.release(done=True)
    assert not leases.is_alive(first.host)
    assert leases.is_alive(second.host)
    with pytest.raises(LeaseLost):
        first.check()
    second.release(done=True)
    assert list(leases.live()) == []
    assert list(leases.dead(None)) == [], "nothing is left to see to"


def test_who_takes_over_has_a_higher_number_and_what_was_told_and_others_get_nothing(stores):
    leases = stores.leases()
    lease = leases.take()
    lease.tell({"told": "before"})
    lease.release(done=False)
    numbers = [lease.number]
    for _ in range(2):
        (taken,) = stores.leases().dead(None)
        assert list(leases.dead(None)) == []
        assert (taken.host, taken.facts["told"]) == (lease.host, "before")
        taken.check()
        numbers.append(taken.number)
        taken.release(done=False)
    assert sorted(set(numbers)) == numbers
    assert list(leases.dead(lease.host)) == [], "nobody takes over from itself"


def test_a_write_under_an_old_number_is_refused_wherever_it_goes(stores, document):
    lease = stores.leases().take()
    connection = stores.connect(lease)
    chain = Chain(stores.audit_log(lease))
    connection.runs.put([document("r_1", status="in-progress")])
    chain.append([b"{}"])
    lease.release(done=False)
    (taken,) = stores.leases().dead(None)
    refused = [
        lambda: connection.runs.put([document("r_1")]),
        lambda: connection.ledger.set_state("r_1", "held"),
        lambda: connection.approvals.prolong("a_1", 1.0),
        lambda: connection.rules.forget("/w", 1),
        lambda: chain.append([b"{}"]),
        lease.check,
    ]
    for write in refused:
        with pytest.raises(LeaseLost, match=lease.host):
            write()
    assert [decode(text)["record"]["status"] for text in connection.runs.select(Filter())] == ["in-progress"]
    size = stores.audit_log().size()
    with contextlib.closing(stores.connect(taken)) as ours:
        ours.runs.put([document("r_1", status="error")])
        assert [decode(text)["record"]["status"] for text in ours.runs.select(Filter())] == ["error"]
    assert stores.audit_log().size() == size
    taken.release(done=True)
    with pytest.raises(LeaseLost):
        connection.runs.put([document("r_2")])
    connection.close()
    chain.close()


HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from storages import home_at
from haft.contracts import LeaseLost
from haft.storage import open_stores

options = {"lease_seconds": float(sys.argv[4])} if sys.argv[2] == "files" else {}
stores = open_stores(home_at(sys.argv[2], sys.argv[3], **options))
lease = stores.leases().take()
connection = stores.connect(lease)
print(lease.host, flush=True)
for line in sys.stdin.buffer:
    try:
        connection.runs.put([line.rstrip(b"\\n")])
        print("written", flush=True)
    except LeaseLost as error:
        print(f"refused: {error}", flush=True)
"""


@pytest.fixture
def short(kind, tmp_path):
    """A storage whose leases end soon, where they end with time."""
    return open_stores(home_at(kind, tmp_path / "home", **({"lease_seconds": SHORT} if kind == "files" else {})))


@pytest.fixture
def holder(kind, short, tmp_path):
    """A process with a lease, that writes what it is given."""
    command = [sys.executable, "-c", HOLDER, HERE, kind, tmp_path / "home", str(SHORT)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.host = process.stdout.readline().decode().strip()

    def write(document):
        process.stdin.write(document + b"\n")
        process.stdin.flush()
        return process.stdout.readline().decode().strip()

    process.write = write
    yield process
    process.kill()
    process.communicate()


def taken_over(stores):
    """The lease of the one dead host, as soon as it counts as dead."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for lease in stores.leases().dead(None):
            return lease
    raise AssertionError("nobody died")


def test_a_killed_holder_is_dead_and_what_it_wrote_is_there(short, holder, document):
    assert holder.write(document("r_1", host=holder.host)) == "written"
    holder.kill()
    holder.wait()
    lease = taken_over(short)
    assert (lease.host, lease.number) == (holder.host, 2)
    with contextlib.closing(short.connect(lease)) as connection:
        assert len(connection.runs.select(Filter())) == 1
    lease.release(done=True)


def test_a_holder_that_was_stopped_for_longer_than_its_lease_writes_no_more(kind, short, holder, document):
    """Where leases end with time. A lock does not: its holder stays, however long it is stopped."""
    assert holder.write(document("r_1", status="in-progress", host=holder.host)) == "written"
    holder.send_signal(signal.SIGSTOP)
    os.waitpid(holder.pid, os.WUNTRACED)
    if kind == "sqlite":
        assert list(short.leases().dead(None)) == []
        assert short.leases().is_alive(holder.host)
        holder.send_signal(signal.SIGCONT)
        assert holder.write(document("r_1", host=holder.host)) == "written"
        return
    lease = taken_over(short)
    assert lease.host == holder.host
    with contextlib.closing(short.connect(lease)) as connection:
        connection.runs.put([document("r_1", status="error", host=holder.host)])
        holder.send_signal(signal.SIGCONT)
        assert "has lost its lease" in holder.write(document("r_2", host=holder.host))
        assert [decode(text)["record"]["status"] for text in connection.runs.select(Filter())] == ["error"]
    lease.release(done=True)
