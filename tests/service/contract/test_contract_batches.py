"""Batches: outcomes in the order of the list, `after`, plans, and misuse."""

import pytest

from haft.contracts import BadUsage


def test_a_batch_gives_outcomes_in_its_order(service, files):
    write = [("write_file", {"path": "batched", "content": f"{n}\n"}) for n in range(5)]
    outcomes = service.batch([*write, {"tool": "read_file", "args": {"path": "batched"}, "id": "last"}], thread="T-b")
    assert [each.status for each in outcomes] == ["done"] * 6
    assert "4" in outcomes[-1].output and (files / "batched").read_text() == "4\n"
    assert {each.thread for each in outcomes} == {"T-b"}
    batch = service.run(outcomes[0].run_id).batch
    assert [run.id for run in service.runs(batch=batch)] == [each.run_id for each in outcomes][::-1]
    assert service.cancel(batch) is False


def test_a_call_waits_for_those_that_it_names(service):
    calls = [
        {"tool": "fails", "id": "first"},
        {"tool": "add", "args": {"a": 1, "b": 2}, "id": "second"},
        {"tool": "add", "args": {"a": 1, "b": 2}, "after": ["first"]},
        {"tool": "add", "args": {"a": 1, "b": 2}, "after": ["second"]},
        {"tool": "waits", "timeout": 0.05},
        {"tool": "nothing"},
    ]
    outcomes = service.batch(calls)
    codes = [each.error and each.error.code for each in outcomes]
    assert codes == ["tool-failed", None, "dependency-failed", None, "timed-out", "unknown-tool"]


def test_a_plan_calls_nothing(service):
    before = [run.id for run in service.runs()]
    calls = [
        ("write_file", {"path": "planned", "content": ""}),
        ("read_file", {"path": "planned"}),
        ("add", {"a": 1, "b": 2}),
        ("missing", {}),
    ]
    plan = service.plan_batch(calls)
    assert [each.group for each in plan.calls][:2] == [1, 2] and plan.calls[1].waits_for[0][0] == "1"
    assert [each.call.tool for each in plan.calls] == ["write_file", "read_file", "add", "missing"]
    assert [each.problem is None for each in plan.calls] == [True, True, True, False]
    assert sum(map(len, plan.groups)) == 4
    assert [run.id for run in service.runs()] == before


@pytest.mark.parametrize(
    "calls", [[("add", 3)], [{"args": {}}], [{"tool": "add", "id": "x"}] * 2, [{"tool": "add", "after": ["no"]}], "add"]
)
def test_a_wrong_list_is_refused_before_anything_runs(service, calls):
    before = [run.id for run in service.runs()]
    for refuses in (service.batch, service.plan_batch):
        with pytest.raises(BadUsage):
            refuses(calls)
    assert [run.id for run in service.runs()] == before
