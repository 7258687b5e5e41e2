"""A second storage, as unlike SQLite as can be: tables in memory, replayed from a file of JSON lines, of which each is
one transaction; leases that end with time unless they are renewed, as over a network; an audit log of one file for each
write. One lock file is the turn of all writers.
"""

import fcntl
import functools
import json
import os
import shutil
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from haft.storage import AuditLog, Connection, Health, Stores
from haft.values import replace

sys.path.insert(0, str(Path(__file__).parent))
from file_leases import FileLeases, read_file, replace_file
from file_tables import FileApprovals, FileLedger, FilePins, FileRequestKeys, FileRules, FileRuns

LEASE_SECONDS = 30.0


class FileStores(Stores):
    def __init__(self, home, *, lease_seconds=LEASE_SECONDS):
        self.directory = os.path.join(home.path, "files")
        self.lease_seconds = lease_seconds

    def now(self):
        """The time of all processes, which a test can advance."""
        return time.time() + float(read_file(self.path("advanced")) or 0)

    def advance(self, seconds):
        replace_file(self.path("advanced"), str(seconds).encode())

    def connect(self, lease=None):
        return FileConnection(self, lease)

    def leases(self):
        return FileLeases(self)

    def audit_log(self, lease=None):
        return SegmentLog(self, lease)

    def exists(self):
        return os.path.exists(self.path("transactions"))

    def health(self):
        return Health("files")

    def copy_to(self, path, fixing):
        with fixing, self.alone():
            shutil.copytree(self.directory, path)

    def problem(self):
        return None

    def move_areas(self, places):
        ledger = self.connect().ledger
        for row in ledger.all():
            if row.area in places:
                ledger.put(replace(row, area=places[row.area]))

    def path(self, *names):
        return os.path.join(self.directory, *names)

    @contextmanager
    def alone(self):
        """Alone among all threads and processes."""
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        descriptor = os.open(self.path("turn"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class FileConnection(Connection):
    def __init__(self, stores, lease):
        self.stores, self.lease = stores, lease
        self._turn = threading.RLock()
        self._forget()

    runs = functools.cached_property(lambda self: FileRuns(self))
    approvals = functools.cached_property(lambda self: FileApprovals(self))
    rules = functools.cached_property(lambda self: FileRules(self))
    pins = functools.cached_property(lambda self: FilePins(self))
    request_keys = functools.cached_property(lambda self: FileRequestKeys(self))
    ledger = functools.cached_property(lambda self: FileLedger(self))

    def _forget(self):
        self._tables, self._at = {}, 0

    def table(self, name):
        """Everything of a kind, by its key, as of now."""
        with self._turn:
            self._replay()
            return dict(self._tables.get(name, {}))

    @contextmanager
    def writing(self):
        """`put(table, key, value)`; a value of None deletes. All or nothing."""
        with self._turn, self.stores.alone():
            if self.lease is not None:
                self.lease.require()
            self._replay()
            changes = []

            def put(table, key, value):
                changes.append([table, key, value])
                self._apply(table, key, value)

            try:
                yield put
                if changes:
                    self._append(json.dumps(changes).encode() + b"\n")
            except BaseException:
                self._forget()
                raise

    def _append(self, line):
        with open(self.stores.path("transactions"), "ab", buffering=0) as file:
            file.truncate(self._at)  # Behind it lies what a writer that was killed had begun.
            file.write(line)
        self._at += len(line)

    def _replay(self):
        with suppress(FileNotFoundError), open(self.stores.path("transactions"), "rb") as file:
            file.seek(self._at)
            whole, newline, _torn = file.read().rpartition(b"\n")
            for line in whole.split(b"\n") if newline else ():
                for change in json.loads(line):
                    self._apply(*change)
            self._at += len(whole) + len(newline)

    def _apply(self, table, key, value):
        if value is None:
            self._tables.setdefault(table, {}).pop(key, None)
        else:
            self._tables.setdefault(table, {})[key] = value

    def version(self):
        with suppress(FileNotFoundError):
            return os.stat(self.stores.path("transactions")).st_size
        return 0

    def close(self):
        self._forget()


class SegmentLog(AuditLog):
    """One file for each write, whose name says where it begins."""

    def __init__(self, stores, lease):
        self._stores, self._lease = stores, lease

    def exists(self):
        return os.path.isdir(self._stores.path("log"))

    def begin(self):
        os.makedirs(self._stores.path("log"), mode=0o700, exist_ok=True)

    @contextmanager
    def turn(self):
        with self._stores.alone():
            if self._lease is not None:
                self._lease.require()
            yield

    def _segments(self):
        names = sorted(name for name in os.listdir(self._stores.path("log")) if name.isdigit())
        return [(int(name), self._stores.path("log", name)) for name in names]

    def size(self):
        segments = self._segments()
        return segments[-1][0] + os.path.getsize(segments[-1][1]) if segments else 0

    def read(self, start, end):
        parts = []
        for begin, path in self._segments():
            data = read_file(path) if begin < end and begin + os.path.getsize(path) > start else b""
            parts.append(data[max(0, start - begin) : max(0, end - begin)])
        return b"".join(parts)

    def append(self, data):
        replace_file(self._stores.path("log", f"{self.size():020d}"), data)

    def head(self):
        return read_file(self._stores.path("head")) or b""

    def set_head(self, data):
        replace_file(self._stores.path("head"), data)

    def key(self):
        return read_file(self._stores.path("key"))

    def set_key(self, key):
        replace_file(self._stores.path("key"), key)

    def sync(self):
        for path in [*(path for _, path in self._segments()[-1:]), self._stores.path("head")]:
            with suppress(FileNotFoundError), open(path, "rb") as file:
                os.fsync(file.fileno())

    def close(self):
        pass
