"""The events of a run: for those who follow it from the beginning, and for those who come late."""

from itertools import takewhile


def test_the_events_of_a_run_end_with_its_outcome(service):
    run = service.call("speaks", {"words": ["one", "two", "ü"]})
    events = list(run)
    outcome = run.wait()
    assert events[0].type == "status" and events[-1].type == "outcome"
    assert {event.run for event in events} == {run.id}
    numbers = [event.seq for event in events]
    assert numbers == sorted(numbers)
    assert events[-1].facts["outcome"] == outcome.to_json() and events[-1].status == "done"
    assert [event.status for event in events if event.type == "status"][-1] == "done"


def test_output_streams_while_the_call_goes_on(service, tmp_path):
    first, last = tmp_path / "first", tmp_path / "last"
    words = {"words": ["one", "two", "last"], "first": str(first), "last": str(last)}
    run = service.call("speaks", words)
    seen, heard = "", []
    for event in run:
        heard.append(event)
        if event.type in ("stdout", "stderr"):
            seen += event.text
        if event.status == "in-progress":
            first.touch()
        if "two" in seen and not last.exists():
            assert run.status == "in-progress"
            last.touch()
    assert seen == "one\ntwo\nlast" == run.wait().output and run.wait().stderr == "last"
    assert {event.type for event in heard} >= {"status", "stdout", "stderr", "progress", "outcome"}
    assert "two" in [event.text for event in heard if event.type == "progress"]
    numbers = [event.seq for event in heard]
    assert numbers == sorted(set(numbers))


def test_who_comes_late_gets_the_current_state_first(service):
    run = service.call("waits")
    assert list(takewhile(lambda event: event.status != "in-progress", run)) is not None
    late, later = iter(run), iter(service.run(run.id))
    for events in (late, later):
        assert (first := next(events)).status == "in-progress" and first.type == "status"
    assert run.cancel()
    for events in (late, later):
        rest = list(events)
        assert [event.status for event in rest][-1] == "cancelled" and rest[-1].type == "outcome"


def test_who_comes_after_the_end_gets_the_outcome(service):
    run = service.call("add", {"a": 1, "b": 1})
    outcome = run.wait()
    first, last = run
    assert (first.type, first.status, last.type) == ("status", "done", "outcome")
    assert last.facts["outcome"] == outcome.to_json()


def test_several_follow_one_run(service):
    run = service.call("speaks", {"words": ["x"] * 5})
    followers = [iter(run) for _ in range(3)]
    ends = [list(each)[-1] for each in followers]
    assert [end.facts["outcome"]["status"] for end in ends] == ["done"] * 3
