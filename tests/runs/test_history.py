"""Reading back: every filter, names by their beginning, and what lies in journals beside what lies in the table."""

import tempfile
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haft.contracts import BadUsage, HostId, UnknownRun
from haft.runs import Filter, History, Journal, KeptOutput, RunRecord, follow
from haft.runs import history as reading
from haft.storage import StateHome, open_stores

STATUSES = ["done", "error", "in-progress", "cancelled"]
few = {
    "tool": st.sampled_from(["add", "shell"]),
    "status": st.sampled_from(STATUSES),
    "who": st.sampled_from(["me", "you"]),
    "thread": st.sampled_from(["T-1", "T-2"]),
    "parent": st.none() | st.sampled_from(["r_p1", "r_p2"]),
    "workspace": st.sampled_from(["/a", "/b"]),
}
runs = st.lists(
    st.fixed_dictionaries(
        {**few, "paths": st.lists(st.sampled_from(["x", "y/z", "ü"]), max_size=2, unique=True), "at": st.integers(0, 5)}
    ),
    max_size=12,
)
filters = st.builds(
    Filter,
    **{name: st.none() | values for name, values in few.items()},
    path=st.none() | st.sampled_from(["x", "y/z", "ü"]),
    since=st.none() | st.integers(0, 6).map(float),
    limit=st.integers(1, 15),
)


def put_in(home, entries):
    connection = open_stores(home).connect()
    connection.runs.put([one.line for one in entries])
    connection.close()


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=runs, wanted=st.lists(filters, min_size=1, max_size=6), data=st.data())
def test_a_filter_finds_what_a_plain_comparison_of_every_field_finds(runs, wanted, data, entry):
    with tempfile.TemporaryDirectory() as directory:
        home = StateHome(directory)
        home.prepare()
        made = [entry(f"r_{number:024x}", **facts) for number, facts in enumerate(runs)]
        # Some lie in the table, some in a journal, some in both, where the table may know an older state.
        places = [data.draw(st.sampled_from(["table", "journal", "both", "older"])) for _ in made]
        older = [entry(one.run, **{**facts, "status": "in-progress"}) for one, facts in zip(made, runs, strict=True)]
        journal = Journal(home.hosts, HostId("h_test"))
        for one, place in zip(made, places, strict=True):
            if place != "table":
                journal.append(one.line)
        put_in(home, [one for one, place in zip(made, places, strict=True) if place in ("table", "both")])
        put_in(home, [old for old, place in zip(older, places, strict=True) if place == "older"])
        journal.rotate()
        history = History(home)
        records = [RunRecord.from_text(one.line) for one in made]
        for one in wanted:
            fitting = [
                record.id
                for record, facts in zip(records, runs, strict=True)
                if all(getattr(one, name) is None or getattr(one, name) == facts[name] for name in few)
                and (one.path is None or one.path in facts["paths"])
                and (one.since is None or facts["at"] >= one.since)
            ]
            found = history.runs(one)
            assert [run.id for run in found] == sorted(fitting, reverse=True)[: one.limit]
            assert all(run.status == facts["status"] for run in found for facts in [runs[int(run.id[2:], 16)]])
            assert history.runs(replace(one, limit=1000, tool="no such")) == []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(reading, "PAGE", 2)
                assert [run.id for run in history.each(one)] == [run.id for run in found]
        history.close()


def test_a_run_is_found_by_the_beginning_that_only_it_has(home, entry):
    put_in(home, [entry("r_aaaa00000000000000000000"), entry("r_aabb00000000000000000000")])
    journal = Journal(home.hosts, HostId("h_test"))
    journal.append(entry("r_aacc00000000000000000000").line)
    history = History(home)
    assert history.find("r_aaaa").id == "r_aaaa00000000000000000000"
    assert history.find("r_aac").id == "r_aacc00000000000000000000"
    assert history.find("r_aabb00000000000000000000").id == "r_aabb00000000000000000000"
    for name in ("r_aa", "r_a"):
        with pytest.raises((BadUsage, UnknownRun)):
            history.find(name)
    with pytest.raises(BadUsage, match="more than one run"):
        history.find("r_aa")
    for name in ("r_ff", "", "r_", "r_aaaaa", "%", "r_a%", "r_aaaa00000000000000000000x"):
        with pytest.raises(UnknownRun):
            history.find(name)
    history.close()
    journal.rotate()


def test_a_run_that_has_ended_never_reopens_whatever_is_replayed(home, entry):
    run = "r_aaaa00000000000000000000"
    put_in(home, [entry(run, status="done")])
    put_in(home, [entry(run, status="in-progress"), entry(run, status="error")])
    history = History(home)
    assert history.find(run).status == "done"
    history.close()


def test_a_journal_that_is_behind_the_table_hides_nothing(home, entry):
    # A host removes carried journals one by one: who reads meanwhile may meet an older one alone.
    run, later = "r_aaaa00000000000000000000", "r_bbbb00000000000000000000"
    journal = Journal(home.hosts, HostId("h_test"))
    for each in (run, later):
        journal.append(entry(each, status="queued").line)
    put_in(home, [entry(run, status="in-progress", seq=3), entry(later, status="blocked-on-user", seq=2)])
    history = History(home)
    assert [history.find(each).status for each in (run, later)] == ["in-progress", "blocked-on-user"]
    assert [each.id for each in history.runs(Filter(status="in-progress"))] == [run]
    assert history.runs(Filter(status="queued")) == []
    history.close()
    journal.rotate()


def test_runs_that_have_not_ended_are_asked_for_at_once(home, entry):
    ended, waiting, begun = "r_aaaa00000000000000000000", "r_bbbb00000000000000000000", "r_cccc00000000000000000000"
    journal = Journal(home.hosts, HostId("h_test"))
    journal.append(entry(ended, status="in-progress").line)
    journal.append(entry(begun, status="queued").line)
    put_in(home, [entry(ended, status="done", seq=2), entry(waiting, status="blocked-on-user")])
    history = History(home)
    assert [run.id for run in history.runs(Filter(is_open=True))] == [begun, waiting]
    assert [run.id for run in history.runs(Filter(is_open=False))] == [ended]
    history.close()
    journal.rotate()


def test_events_are_those_of_table_journal_and_output_in_their_order(home, entry):
    run = "r_aaaa00000000000000000000"
    first = entry(run, status="in-progress", noted=[(3, 0.0, "progress", "in-progress", {"message": "half"})])
    put_in(home, [first])
    journal = Journal(home.hosts, HostId("h_test"))
    last = entry(run, status="done", noted=[(6, 0.0, "progress", "in-progress", {"message": "most"})])
    journal.append(last.line)
    kept = KeptOutput(home.outputs, run, 1000)
    kept.append(4, 0.0, "stdout", "wörds".encode()[:2])
    kept.append(5, 0.0, "stdout", "wörds".encode()[2:])
    kept.close()
    history = History(home)
    events = list(follow(history, run))
    assert [(event.seq, event.type, event.text) for event in events[:-1]] == [
        (0, "status", ""),
        (1, "status", ""),
        (3, "progress", "half"),
        (4, "stdout", "w"),
        (5, "stdout", "örds"),
        (6, "progress", "most"),
    ]
    assert events[-1].type == "outcome"
    assert events[-1].facts["outcome"]["status"] == "done"
    assert [event.seq for event in history.events_beyond(history.find(run), after=3)] == [6]
    history.close()
    journal.rotate()


def test_the_output_of_a_run_is_what_was_kept_else_what_its_outcome_shows(home, entry):
    put_in(home, [entry("r_aaaa00000000000000000000", output="shown")])
    history = History(home)
    assert [frame.data for frame in history.output(history.find("r_aaaa"))] == [b"shown"]
    history.close()


def test_a_short_name_is_the_beginning_that_no_other_run_has(tmp_path, entry):
    home = StateHome(str(tmp_path))
    home.prepare()
    runs = ["r_1a1e00000010000000000000", "r_1a1e00000010000000000001", "r_1a1e0000002ffffffffffff0"]
    journal = Journal(home.hosts, HostId("h_test"))
    journal.append(entry(runs[0]).line)
    put_in(home, [entry(run) for run in runs[1:]])
    history = History(home)
    short = history.shortest([*runs, "r_ffffffffffffffffffffffff"])
    assert short == {runs[0]: runs[0], runs[1]: runs[1], runs[2]: runs[2][:13]}
    assert [history.find(name).id for name in short.values()] == runs
    with pytest.raises(BadUsage, match=rf"`r_1a1e`: {runs[2]} \(add, .*\), {runs[1]} \(add, .*\), {runs[0]} "):
        history.find("r_1a1e")
    history.close()


def test_very_many_runs_are_read_a_few_at_a_time(tmp_path, entry, monkeypatch):
    home = StateHome(str(tmp_path))
    home.prepare()
    put_in(home, [entry(f"r_{number:024x}") for number in range(25)])
    monkeypatch.setattr(reading, "PAGE", 10)
    history = History(home)
    asked = []
    whole = history.runs
    monkeypatch.setattr(history, "runs", lambda wanted: asked.append(wanted.limit) or whole(wanted))
    assert [int(run.id[2:], 16) for run in history.each(Filter(limit=1000))] == [*range(24, -1, -1)]
    assert asked == [10, 10, 10]
    history.close()
