"""How calls end, what is refused before, and what a run shows while it goes on."""

import threading

import pytest

from haft.contracts import BadUsage, UnknownRun


def test_a_call_that_is_done(service):
    run = service.call("add", {"a": 1, "b": 2}, thread="T-done")
    outcome = run.wait()
    assert (outcome.ok, outcome.status, outcome.result, outcome.output) == (True, "done", 3, "3")
    assert (outcome.run_id, outcome.tool, outcome.who, outcome.thread) == (run.id, "add", "mia", "T-done")
    assert (outcome.error, outcome.parent, outcome.cached, outcome.changes.state) == (None, None, False, "none")
    assert outcome.decision.action == "allow" and outcome.started_at > 0
    assert run.wait() == outcome and run.status == "done"
    assert "3" in outcome.for_model().text


def test_a_call_that_fails(service):
    outcome = service.call("fails").wait()
    assert (outcome.status, outcome.error.code, outcome.error.retryable) == ("error", "tool-failed", False)
    assert "this tool never works" in outcome.error.message
    assert outcome.process_exit_code == 1


def test_a_process_that_fails(service):
    outcome = service.call("shell", {"command": "echo out; echo err >&2; false"}).wait()
    assert (outcome.status, outcome.exit_code, outcome.error.code) == ("error", 1, "tool-failed")
    assert (outcome.stderr, "out" in outcome.output) == ("err\n", True)
    assert outcome.sandbox.profile != "none" or outcome.sandbox.reason


def test_an_unknown_tool_and_invalid_arguments(service):
    unknown = service.call("ad", {"a": 1}).wait()
    assert (unknown.status, unknown.error.code) == ("error", "unknown-tool")
    assert unknown.error.hint == "did you mean `add`?" and unknown.process_exit_code == 2
    wrong = service.call("add", {"a": "one"}).wait()
    assert (wrong.status, wrong.error.code) == ("error", "invalid-arguments")
    assert "b" in wrong.error.message


@pytest.mark.parametrize(
    ("arguments", "options"),
    [("text", {}), ({}, {"timeout": -1}), ({}, {"timeout": True}), ({}, {"grants": {"sky": True}}), ({}, {"cwd": 3})],
)
def test_misuse_is_an_error_before_there_is_a_run(service, arguments, options):
    before = service.runs(limit=1)
    with pytest.raises(BadUsage):
        service.call("add", arguments, **options)
    assert [each.id for each in service.runs(limit=1)] == [each.id for each in before]


def test_a_rule_rejects(service):
    outcome = service.call("repeats", {"text": "forbidden words", "times": 1}).wait()
    assert (outcome.status, outcome.error.code, outcome.decision.by) == ("rejected-by-user", "rejected", "rule")
    assert "not this text" in outcome.error.message and outcome.process_exit_code == 3


def test_a_call_is_cancelled_by_its_run_and_by_its_id(service):
    for by_id in (False, True):
        run = service.call("waits")
        assert next(event.status for event in run if event.status == "in-progress")
        assert (service.cancel(run.id) if by_id else run.cancel()) is True
        outcome = run.wait()
        assert (outcome.status, outcome.error.code) == ("cancelled", "cancelled")
        assert run.cancel() is False and service.cancel(run.id) is False
    with pytest.raises(UnknownRun):
        service.cancel("r_ffffffffffffffffffffffff")


def test_a_call_runs_out_of_time(service):
    outcome = service.call("waits", timeout=0.05).wait()
    assert (outcome.status, outcome.error.code, outcome.error.retryable) == ("error", "timed-out", True)
    assert outcome.process_exit_code == 4


def test_waiting_for_a_run_can_end_before_the_run(service):
    run = service.call("waits")
    with pytest.raises(TimeoutError):
        run.wait(timeout=0.05)
    assert run.status != "cancelled" and run.cancel()
    assert run.wait().status == "cancelled"


def test_a_tool_calls_others(service, files):
    outcome = service.call("calls", {"names": ["nested-1", "nested-2"]}, thread="T-nested").wait()
    children = service.runs(parent=outcome.run_id)
    assert [each.id for each in children] == outcome.result[::-1]
    assert {(each.tool, each.parent, each.thread) for each in children} == {("write_file", outcome.run_id, "T-nested")}
    assert (files / "nested-2").read_text() == "nested-2\n"


def test_a_live_run_is_found_by_its_id(service):
    run = service.call("waits")
    assert next(iter(run)).run == run.id
    found = service.run(run.id)
    assert (found.id, found.status) == (run.id, run.status)
    found.cancel()
    assert run.wait().status == "cancelled"
    assert service.run(run.id).outcome["error"]["code"] == "cancelled"


def test_many_calls_at_once(service):
    runs = [service.call("add", {"a": n, "b": n}) for n in range(60)]
    assert len({run.id for run in runs}) == 60
    assert [run.wait().result for run in runs] == [2 * n for n in range(60)]


def test_calls_from_many_threads(service):
    sums = {}

    def work(n):
        sums[n] = service.call("add", {"a": n, "b": 1}).wait().result

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == {n: n + 1 for n in range(8)}


def test_the_end_of_a_service_cancels_its_live_calls(kind, tmp_path):
    with kind.open(tmp_path) as service:
        run = service.call("waits")
        assert next(event for event in run if event.status == "in-progress")
    with kind.open(tmp_path) as again:
        assert again.run(run.id).status == "cancelled"
