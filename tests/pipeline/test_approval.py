"""Who may act unasked, and what a person's answer does."""

import asyncio

import pytest

from haft import ApprovalAnswer, Grants, ToolService, tool


@tool(readonly=True)
async def look() -> str:
    """Only looks."""
    return "seen"


@tool
async def act(what: str = "something") -> str:
    """Does something."""
    return f"did {what}"


def with_service(tmp_path, body, **options):
    async def main():
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        async with ToolService.open(workspace, tools=[look, act], home=tmp_path / "home", **options) as service:
            return await body(service)

    return asyncio.run(main())


def test_read_only_tools_pass_unasked_whether_built_in_or_handed_over(tmp_path):
    async def never(request):
        raise AssertionError("asked")

    async def body(service):
        for name, arguments in (("look", {}), ("list_directory", {"path": "."})):
            outcome = await service.call(name, arguments)
            assert outcome.status == "done"
            assert (outcome.decision.action, outcome.decision.by) == ("allow", "rule")
            assert outcome.decision.rule and outcome.decision.source

    with_service(tmp_path, body, approver=never)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("act", {}), ("shell", {"command": "touch x"}), ("write_file", {"path": "x", "content": ""})],
)
def test_everything_else_is_rejected_when_nobody_can_be_asked(tmp_path, name, arguments):
    async def body(service):
        outcome = await service.call(name, arguments)
        assert (outcome.status, outcome.error.code, outcome.process_exit_code) == ("rejected-by-user", "rejected", 3)
        assert (outcome.decision.action, outcome.decision.by) == ("reject", "nobody")
        assert "--approve" in outcome.error.hint
        assert not (tmp_path / "workspace" / "x").exists()
        assert service.run(outcome.run_id).status == "rejected-by-user"

    with_service(tmp_path, body)


def test_an_approver_is_shown_the_whole_call_and_its_yes_lets_it_run(tmp_path):
    asked = []

    async def ask(request):
        asked.append(request)
        return True

    async def body(service):
        run = service.call("act", {"what": "this"}, who="mia", thread="T-1")
        events = [event.status async for event in run if event.type == "status"]
        assert events == ["queued", "blocked-on-user", "in-progress", "done"]
        outcome = await run
        assert outcome.output == "did this"
        assert (outcome.decision.action, outcome.decision.layer, outcome.decision.by) == ("allow", "approval", "person")
        (request,) = asked
        assert (request.tool, request.arguments, request.who, request.thread) == ("act", {"what": "this"}, "mia", "T-1")
        assert request.run == run.id and request.reason

    with_service(tmp_path, body, approver=ask)


@pytest.mark.parametrize("answer", [False, ApprovalAnswer(approved=False, message="not on a Sunday")])
def test_a_no_rejects_the_call(tmp_path, answer):
    async def ask(request):
        return answer

    async def body(service):
        outcome = await service.call("act")
        assert outcome.status == "rejected-by-user"
        assert outcome.decision.by == "person"
        if isinstance(answer, ApprovalAnswer):
            assert "not on a Sunday" in outcome.error.message

    with_service(tmp_path, body, approver=ask)


def test_edited_arguments_are_validated_again_and_are_what_runs_and_is_recorded(tmp_path):
    async def ask(request):
        return ApprovalAnswer(approved=True, arguments={"what": "less"})

    async def body(service):
        outcome = await service.call("act", {"what": "too much"})
        assert outcome.output == "did less"
        assert service.run(outcome.run_id).record["arguments"] == {"what": "less"}

    with_service(tmp_path, body, approver=ask)


def test_edited_arguments_that_are_wrong_end_the_call(tmp_path):
    async def ask(request):
        return ApprovalAnswer(approved=True, arguments={"waht": 1})

    async def body(service):
        outcome = await service.call("act", {"what": "x"})
        assert outcome.error.code == "invalid-arguments"
        assert "what" in outcome.error.message

    with_service(tmp_path, body, approver=ask)


def test_what_an_approver_does_to_its_copy_of_the_arguments_changes_nothing(tmp_path):
    async def ask(request):
        request.arguments["what"] = "something else"
        return True

    async def body(service):
        assert (await service.call("act", {"what": "agreed"})).output == "did agreed"

    with_service(tmp_path, body, approver=ask)


def test_an_approver_that_fails_approves_nothing(tmp_path):
    async def ask(request):
        raise RuntimeError("the dialogue broke")

    async def body(service):
        outcome = await service.call("act")
        assert (outcome.status, outcome.decision.by) == ("rejected-by-user", "nobody")
        assert "the dialogue broke" in outcome.error.message
        assert outcome.output == ""

    with_service(tmp_path, body, approver=ask)


def test_a_plain_function_will_do_as_an_approver(tmp_path):
    async def body(service):
        assert (await service.call("act")).output == "did something"

    with_service(tmp_path, body, approver=lambda request: True)


def test_a_blocked_call_can_be_cancelled_and_is_visible_on_disk_while_it_waits(tmp_path):
    async def body(service):
        run = service.call("act")
        await asyncio.sleep(0.05)
        assert run.status == "blocked-on-user"
        (record,) = service.runs()
        assert record.status == "blocked-on-user"
        run.cancel()
        assert (await run).status == "cancelled"

    async def ask(request):
        await asyncio.Event().wait()

    with_service(tmp_path, body, approver=ask)


def test_no_place_is_held_while_a_person_thinks(tmp_path):
    async def ask(request):
        await asyncio.Event().wait()

    async def body(service):
        waiting = [service.call("act") for _ in range(5)]
        await asyncio.sleep(0.02)
        assert (await service.call("look")).output == "seen"
        for run in waiting:
            run.cancel()

    with_service(tmp_path, body, approver=ask, settings={"limits.max_concurrent": 1})


@pytest.mark.parametrize("grants", [Grants(env=("GRANTED",)), {"env": ["GRANTED"]}])
def test_whoever_is_asked_sees_the_sandbox_and_may_open_it(tmp_path, grants, monkeypatch):
    monkeypatch.setenv("GRANTED", "seen")
    shown = []

    async def generous(request):
        shown.append(request.sandbox)
        return ApprovalAnswer(approved=True, grants=grants)

    async def body(service):
        outcome = await service.call("shell", {"command": "touch x; echo ${GRANTED:-hidden}"})
        assert (outcome.output, outcome.sandbox.env) == ("seen\n", ("GRANTED",))
        await service.call("act")

    with_service(tmp_path, body, approver=generous)
    assert [confinement.profile for confinement in shown] == ["workspace", "none"]
    assert shown[0].env == ()


def test_grants_that_cannot_be_understood_open_nothing_and_nothing_runs(tmp_path):
    async def confused(_request):
        return ApprovalAnswer(approved=True, grants={"netwrok": True})

    async def body(service):
        outcome = await service.call("shell", {"command": "touch ran"})
        assert outcome.error.code == "rejected" and "netwrok" in outcome.error.message
        assert not (tmp_path / "workspace/ran").exists()

    with_service(tmp_path, body, approver=confused)


@pytest.mark.parametrize(
    "given", [None, "y", "yes", 1, 0, [], ApprovalAnswer(approved="y"), ApprovalAnswer(approved=None)]
)
@pytest.mark.parametrize("is_async", [True, False])
def test_an_answer_that_is_neither_yes_nor_no_is_named_as_a_mistake_of_the_program(tmp_path, given, is_async):
    async def later(_request):
        return given

    async def body(service):
        run = service.call("write_file", {"path": "x", "content": ""})
        events = [event async for event in run]
        outcome = await run
        assert (outcome.status, outcome.error.code, outcome.process_exit_code) == ("error", "bad-approver", 1)
        assert "neither yes nor no" in outcome.error.message
        assert "returns True, False or an ApprovalAnswer" in outcome.error.hint
        assert [event.status for event in events if event.type == "status"][-1] == "error"
        assert service.run(outcome.run_id).status == "error"
        assert not (tmp_path / "workspace" / "x").exists()
        assert service.inbox() == []

    with_service(tmp_path, body, approver=later if is_async else lambda _request: given)


def test_a_wrong_answer_about_what_was_tried_leaves_its_changes_held(tmp_path):
    async def body(service):
        outcome = await service.call("write_file", {"path": "x", "content": ""}, trial=True)
        assert (outcome.status, outcome.error.code, outcome.changes.state) == ("error", "bad-approver", "held")
        assert not (tmp_path / "workspace" / "x").exists()

    with_service(tmp_path, body, approver=lambda _request: None)
