"""The facts that a host publishes, and who can read them. With real processes."""

import os
import subprocess
import sys

import pytest

from haft.contracts import StorageFailed
from haft.files import try_lock
from haft.storage import StateHome, open_stores
from haft.storage.sqlite.migrations import MIGRATIONS
from haft.version import __version__

HOST = """
import sys
from haft.storage import StateHome, open_stores
lease = open_stores(StateHome(sys.argv[1])).leases().take()
print(lease.host, flush=True)
for line in sys.stdin:
    lease.tell({"abandoned": int(line)})
    print("told", flush=True)
"""


@pytest.fixture
def home(tmp_path):
    home = StateHome(str(tmp_path / "home"))
    home.prepare()
    return home


@pytest.fixture
def leases(home):
    return open_stores(home).leases()


@pytest.fixture
def host(home):
    """A host in a process of its own, that tells the numbers it is given."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", HOST, home.path], stdin=pipe, stdout=pipe, text=True)
    process.name = process.stdout.readline().strip()

    def tell(number):
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "told\n"

    process.tell = tell
    yield process
    process.kill()
    process.communicate()


def test_what_a_host_tells_is_heard_by_others_while_it_lives(leases, host):
    own = {"pid": host.pid, "version": __version__, "format": len(MIGRATIONS)}
    assert list(leases.live()) == [(host.name, own)]
    for number in (123_456, 7):
        host.tell(number)
        assert list(leases.live()) == [(host.name, {**own, "abandoned": number})]
    assert list(leases.dead(None)) == [], "who listens takes nothing"
    host.kill()
    host.wait()
    assert list(leases.live()) == []
    [lease] = leases.dead(None)
    assert lease.host == host.name, "who listened left it to who cleans up"
    lease.release(done=True)


def test_a_host_hears_itself_until_it_ends(home, leases):
    lease = leases.take()
    lease.tell({"abandoned": 1})
    ((name, facts),) = leases.live()
    assert (name, facts["abandoned"]) == (lease.host, 1)
    lease.release(done=True)
    assert list(leases.live()) == []
    lease.tell({"abandoned": 2})
    assert os.listdir(home.hosts) == []


@pytest.mark.parametrize(
    ("note", "facts"),
    [
        (b'{"abandoned": 7}56}', {"abandoned": 7}),
        (b'{"abandoned": ', {}),
        (b"\xff\xfe", {}),
        (b"[1]", {}),
        (b"[" * 60_000, {}),
    ],
)
def test_a_note_that_is_torn_is_no_note(leases, note, facts):
    lease = leases.take()
    lease._lock.note(note)
    assert list(leases.live()) == [(lease.host, facts)]
    lease.release(done=True)


def test_files_that_are_no_locks_are_passed_over(home, leases):
    os.symlink("/dev/null", os.path.join(home.hosts, "h_1.lock"))
    os.mkfifo(os.path.join(home.hosts, "h_2.lock"))
    os.mkdir(os.path.join(home.hosts, "h_3.lock"))
    with open(os.path.join(home.hosts, "h_4.journal"), "w"):
        pass
    assert list(leases.live()) == []


def test_facts_that_change_while_they_are_read_are_whole_or_none(home, leases):
    """Alternately long and short, as fast as it goes."""
    program = """
import sys
from haft.storage import StateHome, open_stores
lease = open_stores(StateHome(sys.argv[1])).leases().take()
print("on", flush=True)
while True:
    lease.tell({"abandoned": 10**40})
    lease.tell({"abandoned": 1})
"""
    process = subprocess.Popen([sys.executable, "-c", program, home.path], stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        heard = [facts.get("abandoned") for _ in range(2000) for _host, facts in leases.live()]
    finally:
        process.kill()
        process.communicate()
    assert len(heard) == 2000
    assert set(heard) <= {1, 10**40, None}
    assert heard.count(None) < 1000


def test_listening_and_cleaning_up_at_once_disturb_no_living_host(home, leases):
    lease = leases.take()
    path = os.path.join(home.hosts, f"{lease.host}.lock")
    for _ in range(200):
        assert len(list(leases.live())) == 1
        assert try_lock(path) is None
    lease.release(done=True)


def test_where_no_lock_can_be_made_the_storage_has_failed(home, leases):
    os.rmdir(home.hosts)
    with pytest.raises(StorageFailed, match="no host can begin"):
        leases.take()
