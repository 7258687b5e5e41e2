"""Models that fail, conversations that become too long, and tasks that are cancelled."""

import asyncio
import threading
import time

import pytest
from worlds import KINDS, told

from haft.testing.scripted_model import (
    attempts,
    call,
    context_overflow,
    overloaded,
    rate_limited,
    say,
    server_error,
    unauthorized,
)


def perform(world, prompt, kind="openai-chat", **settings):
    async def run():
        async with world.open(kind, **settings) as service:
            return await told(service.tasks.start(prompt))

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    from haft.agents import requests

    monkeypatch.setattr(requests, "FIRST_WAIT", 0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_failed_requests_are_sent_again_and_no_call_is_made_twice(world, kind):
    world.write("n.txt", "")
    prompt = world.model.task(
        attempts(
            rate_limited(0),
            server_error(),
            call("shell", command="echo x >> n.txt").breaking(),
            say("some words before it breaks").breaking(),
            call("shell", command="echo x >> n.txt"),
        ),
        attempts(overloaded(), say("done")),
    )
    outcome, objects = perform(world, prompt, kind)
    assert (outcome.status, outcome.output) == ("done", "done")
    assert world.read("n.txt") == "x\n"
    assert len([each for each in objects if each.get("state") == "waiting"]) == 5
    assert len(world.model.of(prompt)) == 7


def test_the_wait_is_that_which_the_provider_asks_for(world):
    prompt = world.model.task(attempts(rate_limited(1), say("done")))
    _outcome, objects = perform(world, prompt)
    (waiting,) = (each["message"] for each in objects if each.get("state") == "waiting")
    assert "429" in waiting
    assert "trying again in 1 s (1 of 5)" in waiting


@pytest.mark.parametrize("fault", [unauthorized(), server_error()])
def test_a_model_that_fails_for_good_ends_the_task_with_a_clear_error(world, fault):
    world.write("a.txt", "a\n")
    prompt = world.model.task(call("edit_file", path="a.txt", old_string="a", new_string="b"), fault)
    outcome, objects = perform(world, prompt)
    assert (outcome.status, outcome.error.code) == ("error", "tool-failed")
    assert "the model `scripted` failed: it answered" in outcome.error.message
    assert objects[-1] == {"type": "error", "errorMessage": outcome.error.message}
    assert [each["type"] for each in objects if each["type"] in ("complete", "error")] == ["error"]
    assert world.read("a.txt") == "b\n"  # What was done is done, and can be undone.


@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_that_is_too_long_loses_old_output_of_tools(world, kind):
    world.write("long.txt", "a very long line\n" * 200)
    world.write("other.txt", "another very long line\n" * 200)
    prompt = world.model.task(
        call("read_file", path="long.txt"),
        call("read_file", path="other.txt"),
        call("list_directory", path="."),
        attempts(context_overflow(), say("done")),
    )
    outcome, objects = perform(world, prompt, kind)
    assert outcome.output == "done"
    results = world.model.of(prompt)[-1].results
    assert "was dropped to make room" in results[0]
    assert "another very long line" in results[1]
    assert any("became too long" in each.get("message", "") for each in objects)


def test_a_task_that_is_too_long_even_without_old_output_fails(world):
    prompt = world.model.task(context_overflow())
    outcome, objects = perform(world, prompt)
    assert "longer than the model can read" in outcome.error.message
    assert objects[-1]["type"] == "error"


@pytest.mark.parametrize("phase", ["before the answer", "in the answer", "in a call", "in a question", "in a child"])
def test_a_cancelled_task_leaves_nothing_running(world, phase):
    world.write("a.txt", "a\n")
    never = threading.Event()
    edit = call("edit_file", path="a.txt", old_string="a", new_string="b")
    kinds = {"boss": {"description": "d", "tools": ["task", "shell", "edit_file"], "restricted": False}}
    steps = {
        "before the answer": [edit, say("never").until(never)],
        "in the answer": [edit, say("some words that come one after another").until(never, after=2)],
        "in a call": [edit, call("shell", command="echo begun; sleep 600")],
        "in a question": [edit, call("shell", command="touch asked")],
        "in a child": None,
    }
    below = world.model.task(call("shell", command="echo begun; sleep 600"))
    prompt = world.model.task(*(steps[phase] or [edit, call("task", prompt=below, agent="boss")]))
    reached = asyncio.Event()

    async def approver(request):
        if request.arguments.get("command") == "touch asked":
            reached.set()
            await asyncio.sleep(600)
        return True

    async def run():
        async with world.open(approver=approver, types=kinds) as service:
            task = service.tasks.start(prompt, agent="boss")
            collected = asyncio.ensure_future(told(task))
            if phase in ("before the answer", "in the answer"):
                await asyncio.to_thread(world.model.wait_for, 2, prompt)
            elif phase == "in a question":
                await reached.wait()
            else:
                while not any(each.tool == "shell" and each.status == "in-progress" for each in service.runs()):
                    await asyncio.sleep(0.02)
            task.cancel()
            outcome, objects = await collected
            open_runs = [each.id for each in service.runs() if each.is_open]
            return outcome, objects, open_runs

    outcome, objects, open_runs = asyncio.run(run())
    assert outcome.status == "cancelled"
    assert objects[-1]["type"] == "error"
    assert "cancelled" in objects[-1]["errorMessage"]
    assert open_runs == []
    assert world.read("a.txt") == "a\n"  # A cancelled call changes nothing, and neither do its own calls.
    if phase in ("before the answer", "in the answer"):
        last = world.model.of(prompt)[-1]
        deadline = time.monotonic() + 10
        while not last.gone.is_set() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert last.gone.is_set()  # The client has closed the connection.
    never.set()


def test_time_that_is_over_ends_in_a_report_and_cancels_the_call(world):
    prompt = world.model.task(call("shell", command="sleep 600"), say("it took too long"))
    outcome, _objects = perform(world, prompt, seconds=31)
    assert outcome.status == "done"
    assert outcome.output == "Cut short: its 31 seconds are spent. it took too long"
