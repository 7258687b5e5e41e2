"""The run writer: carries over in groups, survives a disk that fails for a while, and hears of cancel requests."""

import errno
import os

import pytest

from haft.contracts import BadConfig, HostId, StorageFailed
from haft.runs import Filter, History, Journal, RunWriter, recover
from haft.runs.journal import journal_paths
from haft.storage import open_stores
from haft.storage.sqlite.runs import SqliteRuns


class Bench:
    def __init__(self, home):
        self.home = home
        self.told = []
        self.fail_telling = None
        stores = open_stores(home)
        self.lease = stores.leases().take()
        self.run_writer = RunWriter(
            Journal(home.hosts, self.lease.host), stores.connect(self.lease), self.tell, lambda: None, self.lease
        )

    def tell(self, records):
        if self.fail_telling is not None:
            raise self.fail_telling
        self.told.extend(records)

    def table(self):
        history = History(self.home)
        try:
            return history.runs(Filter(limit=1000))
        finally:
            history.close()

    def close(self):
        self.run_writer.close()
        self.lease.release(done=not journal_paths(self.home.hosts, self.lease.host))


@pytest.fixture
def bench(home):
    made = Bench(home)
    yield made
    made.close()


def test_a_run_is_seen_as_soon_as_it_is_written_and_its_journal_goes_when_the_table_has_it(
    bench, home, entry, eventually
):
    one = entry(host=bench.lease.host, recorded=False)
    bench.run_writer.write(one)
    assert [run.id for run in bench.table()] == [one.run]
    eventually(lambda: not journal_paths(home.hosts))
    assert [run.id for run in bench.table()] == [one.run]
    assert bench.told == [one.record]


def test_open_runs_and_recorded_ends_are_not_told_to_the_record(bench, home, entry, eventually):
    bench.run_writer.write(entry(status="in-progress", recorded=False))
    bench.run_writer.write(entry(status="done", recorded=True))
    eventually(lambda: not journal_paths(home.hosts))
    assert bench.told == []


def test_a_run_that_begins_and_ends_in_one_group_is_stored_once_with_the_events_of_both_entries(
    bench, home, entry, eventually, monkeypatch
):
    stored = []
    put = SqliteRuns.put
    monkeypatch.setattr(SqliteRuns, "put", lambda store, lines: (stored.extend(lines), put(store, lines)))
    plain = [entry(status="in-progress"), entry(status="in-progress")]
    told = entry(status="in-progress", noted=[(2, 1.0, "progress", "in-progress", {"message": "half"})])
    ends = [entry(one.run, seq=3) for one in (plain[0], told)]
    for one in (*plain, told, *ends):
        bench.run_writer.write(one)
    eventually(lambda: not journal_paths(home.hosts))
    assert stored == [one.line for one in (plain[1], told, *ends)]
    history = History(home)
    try:
        runs = {run.id: run for run in history.runs(Filter(limit=9))}
        assert [runs[one.run].status for one in (plain[0], plain[1], told)] == ["done", "in-progress", "done"]
        assert [event.type for event in history.events_beyond(runs[told.run])] == ["status", "progress", "status"]
    finally:
        history.close()


@pytest.mark.parametrize(
    "failure",
    [StorageFailed("the audit log", OSError(28, "full")), OSError(errno.EIO, "broken"), BadConfig("another version")],
    ids=["full", "broken", "refused"],
)
def test_a_record_that_cannot_be_written_for_a_while_loses_nothing(bench, home, entry, eventually, failure):
    bench.fail_telling = failure
    one = entry(recorded=False)
    bench.run_writer.write(one)
    eventually(lambda: bench.run_writer.trouble is not None)
    assert [run.id for run in bench.table()] == [one.run]
    bench.fail_telling = None
    two = entry(recorded=False)
    bench.run_writer.write(two)
    eventually(lambda: bench.run_writer.trouble is None and not journal_paths(home.hosts))
    assert bench.told == [one.record, two.record]
    assert len(bench.table()) == 2


def test_what_could_not_be_carried_over_is_carried_over_by_the_next_host(home, entry):
    bench = Bench(home)
    bench.fail_telling = StorageFailed("the audit log", OSError(28, "full"))
    one = entry(host=bench.lease.host, recorded=False)
    bench.run_writer.write(one)
    bench.close()
    assert [run.id for run in bench.table()] == [one.run]
    told = []
    assert recover(home, None, lambda records, _since: told.extend(records)) == 0
    assert [b'"run":"' + one.run.encode() in record for record in told] == [True]
    assert journal_paths(home.hosts) == []
    assert os.listdir(home.hosts) == []
    assert [run.id for run in bench.table()] == [one.run]


def test_a_journal_that_cannot_be_written_is_an_error_to_the_writer_and_the_next_one_works(
    bench, home, entry, monkeypatch
):
    write, full = os.write, [True]

    def sometimes_full(descriptor, data):
        if full[0] and os.readlink(f"/proc/self/fd/{descriptor}").endswith(".journal"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", sometimes_full)
    with pytest.raises(StorageFailed, match="No space left"):
        bench.run_writer.write(entry())
    full[0] = False
    one = entry()
    bench.run_writer.write(one)
    assert [run.id for run in bench.table()] == [one.run]


def test_a_cancel_request_of_another_process_reaches_the_host_of_an_open_run_only(bench, home, entry, eventually):
    asked = []
    bench.run_writer.on_cancel(lambda run, who: asked.append((run, who)))
    live = entry(status="in-progress", host=bench.lease.host)
    over = entry(status="done", host=bench.lease.host)
    bench.run_writer.write(live)
    bench.run_writer.write(over)
    history = History(home)
    history.request_cancel(over.run, "someone")
    history.request_cancel(live.run, "someone")
    eventually(lambda: asked)
    assert asked == [(live.run, "someone")]
    history.close()


def test_closing_writes_everything_down(home, entry):
    bench = Bench(home)
    entries = [entry() for _ in range(500)]
    for one in entries:
        bench.run_writer.write(one)
    bench.close()
    assert os.listdir(home.hosts) == []
    assert {run.id for run in bench.table()} == {one.run for one in entries}


def test_a_host_that_has_a_name_writes_only_under_it(home, entry):
    journal = Journal(home.hosts, HostId("h_x"))
    journal.append(entry().line)
    assert os.listdir(home.hosts) == ["h_x.00000001.0.journal"]
    journal.rotate()
