"""A second storage, as unlike SQLite as can be: tables in memory, replayed from a file of JSON lines, of which each is
one transaction; leases that end with time unless they are renewed, as over a network; an audit log of one file for each
write. One lock file is the turn of all writers.
"""

import dataclasses
import fcntl
import functools
import json
import os
import threading
import time
from contextlib import contextmanager, suppress

from haft.contracts import Event, HostId, LeaseLost, RunId, new_host_id
from haft.storage import (
    Answered,
    ApprovalStore,
    AuditLog,
    Connection,
    Health,
    KeptPin,
    KeptRule,
    Lease,
    Leases,
    Ledger,
    PinStore,
    Row,
    RuleStore,
    RunStore,
    Stores,
    Waiting,
)
from haft.version import __version__

FORMAT = 1
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


def replace_file(path, data):
    fresh = f"{path}.{os.urandom(8).hex()}.tmp"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
    os.rename(fresh, path)


def read_file(path):
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return None


class FileConnection(Connection):
    def __init__(self, stores, lease):
        self.stores, self.lease = stores, lease
        self._turn = threading.RLock()
        self._forget()

    runs = functools.cached_property(lambda self: FileRuns(self))
    approvals = functools.cached_property(lambda self: FileApprovals(self))
    rules = functools.cached_property(lambda self: FileRules(self))
    pins = functools.cached_property(lambda self: FilePins(self))
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


class Kept:
    def __init__(self, connection):
        self._connection = connection

    def _all(self, table):
        return self._connection.table(table)

    def _next(self, put, name):
        number = self._all("numbers").get(name, 0) + 1
        put("numbers", name, number)
        return number


class FileRuns(Kept, RunStore):
    def put(self, documents):
        with self._connection.writing() as put:
            for document in documents:
                text = document.decode().rstrip("\n")
                record, rest = (parsed := json.loads(text))["record"], parsed["rest"]
                known = self._all("runs").get(record["run"])
                if known is None or not known["ended"]:
                    put("runs", record["run"], {"text": text, "ended": rest["endedAt"] is not None})
                events = self._all("events").get(record["run"], {})
                events = {**events, **{str(event[0]): event for event in rest["noted"]}}
                if events:
                    put("events", record["run"], events)

    def sync(self):
        with open(self._connection.stores.path("transactions"), "rb") as file:
            os.fsync(file.fileno())

    def _newest(self):
        return [value["text"] for _, value in sorted(self._all("runs").items(), reverse=True)]

    def select(self, wanted):
        return [text for text in self._newest() if wanted.fits(**json.loads(text))][: wanted.limit]

    def named(self, prefix, limit):
        names = sorted((name for name in self._all("runs") if name.startswith(prefix)), reverse=True)
        return [self._all("runs")[name]["text"] for name in names[:limit]]

    def neighbours(self, name):
        names = sorted(self._all("runs"))
        before, after = [one for one in names if one <= name], [one for one in names if one > name]
        return [*before[-2:], *after[:1]]

    def open_runs(self, host):
        texts = [value["text"] for value in self._all("runs").values() if not value["ended"]]
        return [text for text in texts if json.loads(text)["rest"]["host"] == host]

    def events_of(self, run, after=-1):
        events = sorted(self._all("events").get(run, {}).values())
        return [Event(run, *event) for event in events if event[0] > after]

    def request_cancel(self, run, who, at):
        with self._connection.writing() as put:
            put("cancels", run, [who, at])

    def take_cancels(self, runs):
        if not any(run in runs for run in self._all("cancels")):
            return []
        with self._connection.writing() as put:
            found = [(RunId(run), who) for run, (who, _at) in self._all("cancels").items() if run in runs]
            for run, _who in found:
                put("cancels", run, None)
            return found


class FileApprovals(Kept, ApprovalStore):
    def put(self, waiting, forget_before):
        with self._connection.writing() as put:
            for name, kept in self._all("approvals").items():
                if kept["expires_at"] < forget_before:
                    put("approvals", name, None)
            put("approvals", waiting.id, dataclasses.asdict(waiting))

    def _some(self, fits, *, newest_first=False):
        found = (value for _, value in sorted(self._all("approvals").items(), reverse=newest_first))
        return [waiting_of(value) for value in found if fits(value)]

    def open(self, now, workspace=None):
        return self._some(
            lambda one: one["state"] == "open" and one["expires_at"] > now and workspace in (None, one["workspace"])
        )

    def named(self, prefix):
        return self._some(lambda one: one["id"].startswith(prefix) or one["run"].startswith(prefix), newest_first=True)

    def _step(self, name, only, **changed):
        with self._connection.writing() as put:
            kept = self._all("approvals").get(name)
            if kept is None or kept["state"] != only:
                return False
            put("approvals", name, {**kept, **changed})
            return True

    def answer(self, name, answered):
        kept = self._all("approvals").get(name)
        if kept is None or kept["expires_at"] <= answered.at:
            return False
        return self._step(name, "open", state="answered", answer=dataclasses.asdict(answered))

    def answer_to(self, name):
        kept = self._all("approvals").get(name)
        return Answered(**kept["answer"]) if kept is not None and kept["state"] == "answered" else None

    def prolong(self, name, expires_at):
        self._step(name, "open", expires_at=expires_at)

    def close_open(self, name):
        return self._step(name, "open", state="closed", shown={})

    def take_answered(self, name):
        return self._step(name, "answered", state="taken", shown={})

    def answered(self, fingerprint, now):
        return self._some(
            lambda one: (
                (one["fingerprint"], one["state"], one["tried"]) == (fingerprint, "answered", False)
                and one["expires_at"] > now
            )
        )

    def has_answered(self, fingerprint):
        return bool(self._some(lambda one: (one["fingerprint"], one["state"]) == (fingerprint, "answered")))


def waiting_of(value):
    return Waiting(**{**value, "answer": None if value["answer"] is None else Answered(**value["answer"])})


class FileRules(Kept, RuleStore):
    def remember(self, workspace, rule):
        with self._connection.writing() as put:
            for name, (place, kept) in self._all("rules").items():
                if (place, kept[1], kept[2]) == (workspace, rule.thread, rule.rule):
                    put("rules", name, None)
            number = self._next(put, "rules")
            put("rules", str(number), [workspace, [*rule._replace(number=number)]])

    def all(self, workspace):
        found = [KeptRule(*kept) for place, kept in self._all("rules").values() if place == workspace]
        return sorted(found, key=lambda kept: -kept.number)

    def forget(self, workspace, number):
        with self._connection.writing() as put:
            if self._all("rules").get(str(number), [None])[0] != workspace:
                return False
            put("rules", str(number), None)
            return True


class FilePins(Kept, PinStore):
    def of(self, workspace, tool):
        kept = self._all("pins").get(json.dumps([workspace, tool]))
        return None if kept is None else KeptPin(*kept)

    def holding(self, workspace, path):
        pins = [KeptPin(*kept) for key, kept in self._all("pins").items() if json.loads(key)[0] == workspace]
        return [pin for pin in pins if path in pin.definition["files"]]

    def hold(self, workspace, pin, who, at):
        with self._connection.writing() as put:
            key = json.dumps([workspace, pin.tool])
            if key not in self._all("pins"):
                put("pins", key, [*pin])
            return self._all("pins")[key][1]

    def agree(self, workspace, pin, who, at):
        with self._connection.writing() as put:
            put("pins", json.dumps([workspace, pin.tool]), [*pin])


class FileLedger(Kept, Ledger):
    def put(self, row, states=()):
        with self._connection.writing() as put:
            known = self._all("changes")
            if row.run in known and known[row.run]["state"] == row.state:
                return
            values = {"seq": self._next(put, "changes"), "at": row.at or time.time()}
            put("changes", row.run, {**dataclasses.asdict(row), **values})
            for run, state in states:
                if run in self._all("changes"):
                    put("changes", run, {**self._all("changes")[run], "state": state, "latest": row.run})

    def _change(self, run, **changed):
        with self._connection.writing() as put:
            known = self._all("changes").get(run)
            if known is not None:
                put("changes", run, {**known, **changed})

    def set_state(self, run, state, reason=None):
        self._change(run, state=state, reason=reason)

    def forget_images(self, run, reason):
        self._change(run, kept=False, reason=reason)

    def sync(self):
        self._connection.runs.sync()

    def _some(self, **wanted):
        rows = [Row(**{**value, "reverses": tuple(value["reverses"])}) for value in self._all("changes").values()]
        fitting = [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
        return sorted(fitting, key=lambda row: row.seq)

    def latest(self):
        return max((row.seq for row in self._some()), default=0)

    def since(self, seq):
        return [row for row in self._some() if row.seq > seq]

    def get(self, run):
        return next(iter(self._some(run=run)), None)

    def named(self, prefix, limit):
        found = [row for row in self._some() if row.run.startswith(prefix)]
        return sorted(found, key=lambda row: row.run, reverse=True)[:limit]

    def _calls(self, state, **wanted):
        return [row for row in self._some(verb="call", state=state, **wanted) if row.files > 0]

    def last(self, workspace, who):
        return next(reversed(self._calls("committed", workspace=workspace, who=who)), None)

    def last_undone(self, workspace, who):
        return max(self._calls("undone", workspace=workspace, who=who), key=lambda row: row.latest, default=None)

    def later(self, row):
        return [other for other in self._some(workspace=row.workspace) if other.seq > row.seq]

    def of_parent(self, parent):
        return self._some(parent=parent, verb="call")

    def of_thread(self, workspace, thread):
        return self._calls("committed", workspace=workspace, thread=thread)

    def all(self, workspace=None, state=None):
        wanted = {"workspace": workspace, "state": state}
        return self._some(**{name: value for name, value in wanted.items() if value is not None})

    def close(self):
        self._connection.close()


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
