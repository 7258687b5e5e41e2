"""The runs of a service: found by id, listed with filters, and kept when the service ends."""

import pytest

from haft.contracts import BadUsage, UnknownRun


@pytest.fixture(scope="module")
def made(service):
    made = [service.call("add", {"a": n, "b": n}, thread=f"T-{n % 2}").wait() for n in range(4)]
    made.append(service.call("fails", thread="T-0").wait())
    made.append(service.call("write_file", {"path": "ü x", "content": ""}).wait())
    return [each.run_id for each in made]


def ids(runs):
    return [run.id for run in runs]


def test_runs_are_listed_and_filtered(service, made):
    assert ids(service.runs()) == made[::-1]
    assert ids(service.runs(limit=2)) == made[:-3:-1]
    assert ids(service.runs(limit=2, before=made[2])) == [made[1], made[0]]
    assert ids(service.runs(tool="add", thread="T-1")) == [made[3], made[1]]
    assert ids(service.runs(status="error")) == [made[4]]
    assert ids(service.runs(path="ü x")) == [made[5]]
    assert ids(service.runs(who="mia")) == made[::-1] and service.runs(who="nobody") == []
    first = service.run(made[1])
    assert made[1] in ids(service.runs(since=first.started_at)) and made[0] not in ids(
        service.runs(since=first.started_at + 0.0005, before=made[1])
    )
    assert service.runs(is_open=True) == []


def test_an_unknown_filter_is_refused(service):
    with pytest.raises(BadUsage, match="did you mean `tool`"):
        service.runs(toll="add")


def test_a_stored_run(service, made):
    record = service.run(made[0])
    assert (record.id, record.tool, record.status, record.who, record.thread) == (made[0], "add", "done", "mia", "T-0")
    assert (record.parent, record.batch, record.is_open) == (None, None, False)
    assert record.started_at <= record.ended_at
    assert record.outcome["result"] == 0 and record.record["arguments"] == {"a": 0, "b": 0}
    statuses = [event.status for event in record.states()]
    assert (statuses[0], statuses[-1]) == ("queued", "done")
    assert record.to_json()["outcome"] == record.outcome
    assert service.run(made[5]).changed_paths == ["ü x"]


def test_the_beginning_of_an_id(service, made):
    rest = [each for each in made if each != made[2]]
    beginning = next(made[2][:end] for end in range(2, 27) if not any(x.startswith(made[2][:end]) for x in rest))
    assert service.run(beginning).id == made[2]
    with pytest.raises(UnknownRun):
        service.run("r_ffffffffffffffffffffffff")
    shared = made[0][: next(end for end in range(26) if made[0][end] != made[-1][end])]
    with pytest.raises(BadUsage, match="more than one run"):
        service.run(shared)


def test_runs_outlive_their_service(kind, tmp_path):
    with kind.open(tmp_path) as service:
        outcome = service.call("add", {"a": 20, "b": 22}).wait()
    with kind.open(tmp_path) as service:
        (record,) = service.runs()
        assert record.id == outcome.run_id and record.outcome == outcome.to_json()
        assert service.output(outcome.run_id).text == "42"
