"""Pauses: approvals that the program which made the call gives, now or much later, here or in another process."""

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from haft import ApprovalAnswer, Context, Outcome, Principal, ToolService, tool
from haft.contracts import BadUsage
from haft.service import InboxFacade, Pause, open_history, recover_dead_hosts, request_cancel, this_user
from haft.storage import StateHome

WRITE = ("write_file", {"path": "a.txt", "content": "hello"})


@tool
async def twice(context: Context) -> str:
    """Writes two files."""
    first = await context.call("write_file", {"path": "one.txt", "content": "1"})
    second = await context.call("write_file", {"path": "two.txt", "content": "2"})
    return f"{first.status}, {second.status}"


def in_a_loop(test):
    @functools.wraps(test)
    def run(*args, **options):
        asyncio.run(test(*args, **options))

    return run


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home", "tools": [twice]}


def opened(places, **more):
    return ToolService.open(**places, **more)


async def paused(service, call=WRITE, **options):
    """The pause of a new call."""
    run = service.call(*call, pauses=True, **options)
    state = await run.pause_or_outcome()
    assert isinstance(state, Pause), state
    return run, state


def record_of(places, run):
    recover_dead_hosts(StateHome(str(places["home"])))
    with contextlib.closing(open_history(StateHome(str(places["home"])))) as history:
        return history.find(run)


def status_of(places, run):
    return record_of(places, run).status


async def left_behind(places, call=WRITE, **options):
    """The id of a paused run whose host has ended."""
    async with opened(places) as service:
        run, _pause = await paused(service, call, **options)
    assert run.outcome.status == "blocked-on-user"
    return run.id


@in_a_loop
async def test_a_call_pauses_for_its_program_and_goes_on_with_its_answer(places):
    def never(request):
        raise AssertionError("asked")

    async with opened(places, approver=never) as service:
        run, pause = await paused(service)
        assert (pause.root, pause.run, pause.request.tool) == (run.id, run.id, "write_file")
        assert pause.outlives_host and run.status == "blocked-on-user"
        assert pause.answer(answer=True)
        assert not pause.answer(answer=True)
        outcome = await run.pause_or_outcome()
        assert (outcome.status, outcome.decision.by) == ("done", "person")
        assert (await service.call("read_file", {"path": "a.txt"}, pauses=True)).ok


@in_a_loop
async def test_a_rejection_has_its_message(places):
    async with opened(places) as service:
        _run, pause = await paused(service)
        run = await service.resume(pause.run, ApprovalAnswer(approved=False, message="not on a Sunday"))
        outcome = await run
        assert outcome.status == "rejected-by-user" and "not on a Sunday" in outcome.error.message


@in_a_loop
async def test_calls_below_the_call_pause_one_after_another(places):
    async with opened(places) as service:
        run = service.call("twice", pauses=True)
        tools = []
        while isinstance(state := await run.pause_or_outcome(), Pause):
            tools.append((state.request.tool, state.request.arguments.get("path"), state.root == run.id))
            await service.resume(state.run, answer=len(tools) < 3)
        assert tools == [("twice", None, True), ("write_file", "one.txt", True), ("write_file", "two.txt", True)]
        assert state.output == "done, rejected-by-user"
        assert not state.error and (places["workspace"] / "one.txt").exists()


@in_a_loop
async def test_the_inbox_may_answer_first(places):
    async with opened(places) as service:
        run, pause = await paused(service)
        while not service.inbox():
            await asyncio.sleep(0)
        (waiting,) = service.inbox()
        assert waiting.id == pause.request.id and not waiting.expires
        await service.approve(run.id)
        assert (await run).ok
        assert not pause.answer(answer=False)


@in_a_loop
async def test_a_paused_run_outlives_its_host_and_is_resumed_under_its_id(places):
    name = await left_behind(places, who="mia", thread="T-7", key="k")
    assert status_of(places, name) == "blocked-on-user"
    async with opened(places) as service:
        found = await service.paused_runs.find("k")
        assert found.id == name
        asked = await service.paused_runs.asked(name)
        assert asked.is_only
        shown = asked.to_json()
        assert (shown["tool"], shown["args"], shown["expiresAt"]) == (*WRITE, None)
        run = await service.resume(name, answer=True)
        assert run.id == name
        outcome = await run
        assert (outcome.status, outcome.who, outcome.thread) == ("done", "mia", "T-7")
        assert service.inbox() == []
        with pytest.raises(BadUsage, match="has ended: done"):
            await service.resume(name, answer=True)
    record = record_of(places, name)
    assert [event.status for event in record.states()] == [
        "queued", "blocked-on-user", "queued", "in-progress", "done",
    ]  # fmt: skip
    assert (places["workspace"] / "a.txt").read_text() == "hello"
    assert service.record.verify().intact


@in_a_loop
async def test_an_answer_from_the_inbox_waits_for_the_program(places):
    name = await left_behind(places)
    with contextlib.closing(InboxFacade(StateHome(str(places["home"])))) as inbox:
        reply = inbox.answer(
            inbox.find(name), approved=True, who=this_user(), arguments={**WRITE[1], "content": "less"}
        )
    assert reply.is_paused and status_of(places, name) == "blocked-on-user"
    async with opened(places) as service:
        # An equal call does not take the approval of the paused one.
        _other, pause = await paused(service)
        pause.answer(answer=False)
        outcome = await (await service.resume(name))
        assert outcome.ok
    assert (places["workspace"] / "a.txt").read_text() == "less"


@in_a_loop
async def test_an_answer_to_another_request_does_not_count(places):
    name = await left_behind(places)
    async with opened(places) as service:
        run = await service.resume(name, answer=True, request="a_0123456789")
        pause = await run.pause_or_outcome()
        await service.resume(name, answer=True, request="a_0123456789")
        assert (await run.pause_or_outcome()) is pause
        await service.resume(name, answer=False, request=pause.request.id)
        assert (await run).status == "rejected-by-user"


@in_a_loop
async def test_without_an_answer_a_resumed_run_asks_again(places):
    name = await left_behind(places)
    async with opened(places) as service:
        run = await service.resume(name)
        pause = await run.pause_or_outcome()
        assert (pause.run, pause.request.arguments) == (name, WRITE[1])
        pause.answer(answer=True)
        assert (await run).ok


@in_a_loop
async def test_a_person_rejects_or_cancels_a_paused_run_without_any_host(places):
    rejected, cancelled = await left_behind(places), await left_behind(places)
    home = StateHome(str(places["home"]))
    with contextlib.closing(InboxFacade(home)) as inbox:
        inbox.answer(inbox.find(rejected), approved=False, who=this_user(), message="no")
    with contextlib.closing(open_history(home)) as history:
        request_cancel(home, history, [history.find(cancelled)], this_user())
    assert (status_of(places, rejected), status_of(places, cancelled)) == ("rejected-by-user", "cancelled")
    assert "was rejected: no" in record_of(places, rejected).outcome["error"]["message"]
    async with opened(places) as service:
        assert service.inbox() == []
        with pytest.raises(BadUsage, match="has ended"):
            await service.resume(rejected, answer=True)
    assert service.record.verify().intact


@in_a_loop
async def test_changed_rules_are_judged_anew_and_an_answer_holds_for_what_was_shown(places):
    now_rejected, changed = (
        await left_behind(places),
        await left_behind(places, call=("shell", {"command": "date > a"})),
    )
    rule = {"tool": "write_file", "action": "reject", "message": "not any more"}
    grant = {"tool": "shell", "action": "ask", "grant": {"network": ["example.org"]}}
    async with opened(places, settings={"permissions": [rule, grant]}) as service:
        outcome = await (await service.resume(now_rejected, answer=True))
        assert outcome.status == "rejected-by-user" and "not any more" in outcome.error.message
        run = await service.resume(changed, answer=True)
        pause = await run.pause_or_outcome()
        assert isinstance(pause, Pause), "the approval did not hold for a call with the network"
        pause.answer(answer=False)


@pytest.mark.parametrize("options", [{"env": {"A": "b"}}, {"config": {"a": "b"}}])
@in_a_loop
async def test_a_call_with_values_that_are_not_stored_ends_with_its_host(places, options):
    async with opened(places) as service:
        run, pause = await paused(service, **options)
        assert not pause.outlives_host
    assert run.outcome.status == status_of(places, run.id) == "cancelled"


@in_a_loop
async def test_a_call_with_a_secret_in_its_arguments_ends_with_its_host(places):
    async with opened(places, secrets=["s3cret-value"]) as service:
        run, pause = await paused(service, ("shell", {"command": "echo s3cret-value > a"}))
        assert not pause.outlives_host
    assert run.outcome.status == "cancelled"
    assert b"s3cret-value" not in b"".join(path.read_bytes() for path in places["home"].rglob("*") if path.is_file())


@in_a_loop
async def test_a_call_below_a_tool_that_cannot_go_on_ends_with_its_host(places):
    async with opened(places) as service:
        run = service.call("twice", pauses=True)
        (await run.pause_or_outcome()).answer(answer=True)
        pause = await run.pause_or_outcome()
        assert pause.request.tool == "write_file" and not pause.outlives_host
    assert status_of(places, run.id) == status_of(places, pause.run) == "cancelled"


@in_a_loop
async def test_calls_of_a_batch_below_the_call_pause_too(places):
    class Approver:
        async def __call__(self, request):
            raise AssertionError("asked")

        approve_batch = __call__

    @tool(readonly=True)
    async def together(context: Context) -> str:
        """Makes a batch."""
        calls = [("write_file", {"path": name, "content": ""}) for name in ("one.txt", "two.txt")]
        return " ".join(each.status for each in await service.batch(calls, parent=context.run))

    places["tools"] = [together]
    async with opened(places, approver=Approver()) as service:
        run = service.call("together", pauses=True)
        while isinstance(state := await run.pause_or_outcome(), Pause):
            state.answer(state.request.arguments["path"] == "one.txt")
        assert state.output == "done rejected-by-user"


@in_a_loop
async def test_the_code_of_a_tool_that_an_agent_called_cannot_approve(places):
    @tool(readonly=True)
    async def sly(run: str) -> str:
        """Tries to approve."""
        await service.resume(run, answer=True)
        return "approved"

    places["tools"] = [sly]
    async with opened(places) as service:
        run, pause = await paused(service)
        outcome = await service.call("sly", {"run": run.id}, who=Principal("bot", kind="agent"))
        assert "needs a person" in outcome.error.message and run.status == "blocked-on-user"
        pause.answer(answer=False)


def test_without_an_event_loop(places):
    with ToolService.open_sync(**places) as service:
        run = service.call(*WRITE, pauses=True)
        pause = run.pause_or_outcome()
        assert service.resume(pause.run, True, request=pause.request.id).wait().ok


HOST = """
    import asyncio, sys
    from haft import ToolService
    async def main():
        async with ToolService.open(sys.argv[1], home=sys.argv[2]) as service:
            if sys.argv[3] == "call":
                run = service.call("write_file", {"path": "a.txt", "content": "hello"}, pauses=True)
                pause = await run.pause_or_outcome()
                print(run.id, flush=True)
                await asyncio.Event().wait()
            try:
                outcome = await (await service.resume(sys.argv[3], answer=True))
                print(outcome.status)
            except Exception as error:
                print(type(error).__name__)
    asyncio.run(main())
"""


def host(places, word):
    program = [sys.executable, "-c", textwrap.dedent(HOST), str(places["workspace"]), str(places["home"]), word]
    return subprocess.Popen(program, stdout=subprocess.PIPE, text=True)


def test_a_killed_host_leaves_its_paused_run_to_exactly_one_other(places):
    first = host(places, "call")
    name = first.stdout.readline().strip()
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    assert status_of(places, name) == "blocked-on-user"
    both = [host(places, name) for _ in range(2)]
    said = sorted(each.communicate()[0].strip() for each in both)
    assert said == ["BadUsage", "done"]
    record = record_of(places, name)
    assert [event.status for event in record.states()].count("in-progress") == 1


@in_a_loop
async def test_a_live_host_keeps_its_paused_run(places):
    async with opened(places) as one, opened(places) as other:
        run, pause = await paused(one)
        with pytest.raises(BadUsage, match="another process is at work on it"):
            await other.resume(run.id, answer=True)
        pause.answer(answer=True)
        assert isinstance(await run.pause_or_outcome(), Outcome)
