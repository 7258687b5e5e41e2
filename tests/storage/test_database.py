"""The database: opened by several processes at once, refused when a newer haft wrote it, all or nothing."""

import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest

from haft.contracts import BadConfig, StorageFailed
from haft.storage import StateHome
from haft.storage.sqlite.database import Database, format_in
from haft.storage.sqlite.migrations import MIGRATIONS


def test_a_database_of_a_newer_format_is_refused_and_left_alone(tmp_path):
    path = str(tmp_path / "haft.db")
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(BadConfig, match=rf"newer haft \(format 99, this one knows {len(MIGRATIONS)}\)") as caught:
        Database(path)
    assert "update haft" in caught.value.hint
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (99,)
    connection.close()


def test_a_file_that_is_no_database_is_an_error_of_storage(tmp_path):
    path = tmp_path / "haft.db"
    path.write_bytes(b"this is not a database, but long enough to look at" * 100)
    with pytest.raises(StorageFailed, match="cannot be opened"):
        Database(str(path))


def test_the_database_is_its_owners_alone(tmp_path):
    Database(str(tmp_path / "haft.db")).close()
    assert stat.S_IMODE(os.stat(tmp_path / "haft.db").st_mode) == 0o600


def test_opening_again_migrates_nothing_and_keeps_everything(tmp_path):
    path = str(tmp_path / "haft.db")
    database = Database(path)
    database.execute("INSERT INTO cancels VALUES ('r_1', 0, 'me')")
    database.close()
    database = Database(path)
    assert database.rows("SELECT run FROM cancels") == [("r_1",)]
    database.close()


def test_a_transaction_that_fails_leaves_nothing(tmp_path):
    database = Database(str(tmp_path / "haft.db"))

    def half_a_change():
        with database.transaction():
            database.execute("INSERT INTO cancels VALUES ('r_1', 0, 'me')")
            database.execute("INSERT INTO no_such_table VALUES (1)")

    with pytest.raises(StorageFailed):
        half_a_change()
    assert database.rows("SELECT * FROM cancels") == []
    with database.transaction():
        database.execute("INSERT INTO cancels VALUES ('r_2', 0, 'me')")
    assert len(database.rows("SELECT * FROM cancels")) == 1
    database.close()


OPENING = """
import sys
from haft.storage import StateHome
from haft.storage.sqlite.database import Database, format_in
sys.stdin.readline()
home = StateHome(sys.argv[1])
home.prepare()
database = Database(home.database)
with database.transaction():
    database.execute("INSERT INTO cancels VALUES (?, 0, 'me')", [sys.argv[2]])
database.close()
"""


def test_several_processes_that_open_a_fresh_home_at_once_all_succeed(tmp_path):
    for attempt in range(3):
        home = tmp_path / str(attempt)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", OPENING, home, str(n)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for n in range(6)
        ]
        for process in processes:
            process.stdin.write(b"go\n")
            process.stdin.flush()
        complaints = [process.communicate()[1].decode() for process in processes]
        assert complaints == [""] * 6
        database = Database(StateHome(str(home)).database)
        assert len(database.rows("SELECT * FROM cancels")) == 6
        database.close()


def test_closing_waits_for_a_thread_that_is_still_at_work(tmp_path):
    database, inside, go_on, closed = Database(str(tmp_path / "haft.db")), Event(), Event(), Event()

    def write():
        with database.transaction():
            inside.set()
            go_on.wait()
            assert not closed.is_set()

    def close():
        database.close()
        closed.set()

    with ThreadPoolExecutor(2) as pool:
        written = pool.submit(write)
        inside.wait()
        ended = pool.submit(close)
        wait([ended], timeout=0.5)
        go_on.set()
        written.result()
        ended.result()
    with pytest.raises(StorageFailed):  # Who comes too late is told so.
        database.rows("SELECT 1")


def test_reading_the_format_does_not_drop_the_locks_of_open_connections(tmp_path):
    path = str(tmp_path / "haft.db")
    database = Database(path)
    database.execute("CREATE TABLE words (word)")
    assert format_in(path) == len(MIGRATIONS)
    # The last process that closes a database deletes its WAL file. If the locks were gone, this one would take itself
    # for the last.
    program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM words'); c.close()"
    subprocess.run([sys.executable, "-c", program, path], check=True)
    assert os.path.exists(path + "-wal")
    database.execute("INSERT INTO words VALUES ('seen')")
    shown = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT word FROM words').fetchall())"
    done = subprocess.run([sys.executable, "-c", shown, path], capture_output=True, text=True, check=True)
    assert done.stdout == "[('seen',)]\n"
    database.close()
    assert format_in(path) == len(MIGRATIONS)
