"""A new format waits for hosts of another version. With a real second process, which has the code of an older one."""

import asyncio
import os
import sqlite3
import subprocess
import sys

import pytest

from haft import ToolService
from haft.contracts import BadConfig
from haft.files import HeldLock
from haft.storage import Filter, StateHome, open_stores
from haft.storage.sqlite.migrations import MIGRATIONS

OLDER = """
import sys
from haft.storage.sqlite import database, leases, upgrade_check
for module in (database, leases, upgrade_check):
    module.MIGRATIONS = module.MIGRATIONS[:-1]
leases.__version__ = "0.0.9"
from haft.storage import Filter, StateHome, open_stores
stores = open_stores(StateHome(sys.argv[1]))
lease = stores.leases().take()
stores.connect(lease).runs.select(Filter())
print("on", flush=True)
sys.stdin.readline()
lease.release(done=True)
"""


@pytest.fixture
def home(tmp_path):
    home = StateHome(str(tmp_path / "home"))
    home.prepare()
    return home


@pytest.fixture
def older(home):
    """A host of an older version, on a database of its format."""
    process = subprocess.Popen(
        [sys.executable, "-c", OLDER, home.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "on\n"
    yield process
    process.kill()
    process.communicate()


def format_of(home):
    connection = sqlite3.connect(home.database)
    try:
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


def test_a_host_of_another_version_keeps_the_format_and_is_named(home, older):
    connection = open_stores(home).connect()
    with pytest.raises(BadConfig, match=rf"but process {older.pid} of haft 0\.0\.9 uses it") as caught:
        connection.runs.select(Filter())
    assert f"end process {older.pid}" in caught.value.hint
    with pytest.raises(BadConfig, match=f"process {older.pid}"):
        open_stores(home).health()
    assert format_of(home) == len(MIGRATIONS) - 1
    older.communicate("end\n")
    assert connection.runs.select(Filter()) == []
    assert format_of(home) == len(MIGRATIONS)
    connection.close()


def test_one_that_was_killed_is_in_nobodys_way_and_is_recovered_in_the_new_format(home, older):
    older.kill()
    older.wait()
    (lease,) = open_stores(home).leases().dead(None)
    assert format_of(home) == len(MIGRATIONS)
    lease.release(done=True)


def test_hosts_of_the_same_format_are_in_nobodys_way(home, older):
    older.communicate("end\n")
    stores = open_stores(home)
    lease = stores.leases().take()
    connection = stores.connect()
    assert connection.runs.select(Filter()) == []
    connection.close()
    lease.release(done=True)


def test_a_host_of_the_first_version_tells_nothing_and_the_kernel_names_it(home, older):
    older.communicate("end\n")
    lock = HeldLock.create(f"{home.hosts}/h_old.lock")
    connection = open_stores(home).connect()
    with pytest.raises(BadConfig, match=f"but process {os.getpid()} of an earlier haft uses it"):
        connection.runs.select(Filter())
    lock.release(unlink=True)
    assert connection.runs.select(Filter()) == []
    connection.close()


def test_where_nobody_names_it_its_lock_does(home, older, monkeypatch):
    older.communicate("end\n")
    monkeypatch.setattr("haft.storage.sqlite.upgrade_check.holder_of", lambda _path: None)
    lock = HeldLock.create(f"{home.hosts}/h_old.lock")
    with pytest.raises(BadConfig, match=rf"the process that locks {home.hosts}/h_old\.lock of an earlier haft"):
        open_stores(home).connect().runs.select(Filter())
    lock.release(unlink=True)


def test_no_host_begins_beside_one_of_another_version(home, older, tmp_path):
    """Nor does it find out when it first has something to keep, after it answered a call."""
    (tmp_path / "workspace").mkdir()

    async def begin():
        async with ToolService.open(tmp_path / "workspace", home=home, installed=False):
            raise AssertionError("it began")

    with pytest.raises(BadConfig, match=f"but process {older.pid}"):
        asyncio.run(begin())
    assert [name for name in os.listdir(home.hosts) if name.endswith(".lock")] == [
        f"{host}.lock" for host, _ in open_stores(home).leases().live()
    ], "it leaves nothing behind that others would see to"
    assert format_of(home) == len(MIGRATIONS) - 1
