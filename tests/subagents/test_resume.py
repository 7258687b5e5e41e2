"""Tasks that go on after their host was killed, after a spent budget, and after a late approval."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from haft.contracts import Principal
from haft.service import InboxFacade, StateHome, transcript_of
from haft.testing.scripted_model import call, say
from sampling import some

HOST = """
import asyncio, json, sys
from haft import ToolService

workspace, home, settings, prompt, agent = json.loads(sys.argv[1])

async def main():
    approver = None if agent == "asks" else lambda request: True
    async with ToolService.open(workspace, home=home, approver=approver, thread="T-1", settings=settings) as service:
        run = service.tasks.start(prompt, agent=agent)
        print(run.id, flush=True)
        await run

asyncio.run(main())
"""
STEPS = 4
ASKS = {"asks": {"description": "d", "tools": ["edit_file"]}}


def start(world, prompt, agent="work", expires=0, **settings):
    """A host in a process of its own, which performs a task; and the id of the task."""
    given = [str(world.workspace), str(world.home), world.settings(**settings), prompt, agent]
    given[2]["approval.expires_seconds"] = expires
    host = subprocess.Popen([sys.executable, "-c", HOST, json.dumps(given)], stdout=subprocess.PIPE, text=True)
    return host, host.stdout.readline().strip()


def kill(host):
    os.kill(host.pid, signal.SIGKILL)
    host.communicate()


def resume(world, task, prompt=None, **settings):
    async def run():
        async with world.open(**settings) as service:
            outcome = await service.tasks.resume(task, prompt)
            return outcome, service.runs()

    return asyncio.run(run())


def steps():
    return [
        call("shell", command="echo one >> log.txt") + call("list_directory", path="."),
        call("edit_file", path="a.txt", old_string="a", new_string="b"),
        call("shell", command="echo two >> log.txt"),
        say("ready"),
    ]


@pytest.mark.parametrize("cycle", some(range(1, STEPS + 1), 2, "killed in a cycle"))
def test_killed_in_any_request_and_resumed_it_ends_with_the_same_tree(world, cycle):
    world.write("a.txt", "a\n")
    waits = threading.Event()
    script = steps()
    script[cycle - 1] = script[cycle - 1].until(waits)
    prompt = world.model.task(*script)
    host, task = start(world, prompt)
    world.model.wait_for(cycle, prompt)
    kill(host)
    waits.set()
    outcome, runs = resume(world, task)
    assert (outcome.status, outcome.output) == ("done", "ready")
    assert world.read("log.txt") == "one\ntwo\n"
    assert world.read("a.txt") == "b\n"
    made = [each.tool for each in runs if each.parent is not None]
    assert sorted(made) == ["edit_file", "list_directory", "shell", "shell"]
    assert {each.id: each.status for each in runs}[task] == "error"  # `interrupted`: each run ends once.


def test_killed_in_a_call_the_call_that_ended_is_not_repeated(world):
    world.write("a.txt", "a\n")
    prompt = world.model.task(
        call("write_file", path="first.txt", content="first\n")
        + call("shell", command="echo x >> log.txt; while [ ! -e go.txt ]; do sleep 0.05; done"),
        say("{{result}}"),
    )
    host, task = start(world, prompt)
    while True:
        shell = _runs(world, tool="shell")
        if (
            shell
            and shell[0].status == "in-progress"
            and any(each.status == "done" for each in _runs(world, tool="write_file"))
        ):
            break
    kill(host)
    world.write("go.txt", "")
    outcome, runs = resume(world, task)
    assert outcome.status == "done"
    assert world.read("log.txt") == "x\n"  # What the killed call did is gone.
    assert [each.tool for each in runs if each.parent is not None].count("write_file") == 1


def test_a_spent_budget_is_renewed_when_a_person_resumes_the_task(world):
    prompt = world.model.task(
        call("list_directory", path="."), call("find_files", pattern="*"), say("not ready"), say("ready now")
    )

    async def run():
        async with world.open(cycles=2) as service:
            first = await service.tasks.start(prompt)
            return first, await service.tasks.resume(first.run_id)

    first, second = asyncio.run(run())
    assert first.output == "Cut short: its 2 cycles are spent. not ready"
    assert second.output == "ready now"
    assert world.model.of(prompt)[-1].said[-1] == "Go on with your task."


def test_an_ended_task_takes_another_prompt(world):
    prompt = world.model.task(say("first answer"))
    more = world.model.task(say("second answer"))

    async def run():
        async with world.open() as service:
            first = await service.tasks.start(prompt)
            return await service.tasks.resume(first.run_id, more)

    assert asyncio.run(run()).output == "second answer"
    assert prompt in world.model.of(more)[-1].said[0]


def test_a_task_inside_a_task_goes_on_too(world):
    kinds = {"boss": {"description": "d", "tools": ["task", "shell"], "restricted": False}}
    waits = threading.Event()
    below = world.model.task(call("shell", command="echo below >> log.txt"), say("below is done").until(waits))
    prompt = world.model.task(
        call("shell", command="echo above >> log.txt"),
        call("task", prompt=below, agent="boss"),
        say("above: {{result}}"),
    )
    host, task = start(world, prompt, agent="boss", types=kinds)
    world.model.wait_for(2, below)
    kill(host)
    waits.set()
    outcome, _runs_of_all = resume(world, task, types=kinds)
    assert outcome.status == "done"
    assert "below is done" in outcome.output
    assert world.read("log.txt") == "above\nbelow\n"


def test_an_approval_given_after_the_host_ended_counts(world):
    world.write("a.txt", "a\n")
    prompt = world.model.task(call("edit_file", path="a.txt", old_string="a", new_string="b"), say("ready"))
    host, task = start(world, prompt, agent="asks", types=ASKS, expires=600)
    with contextlib.closing(InboxFacade(StateHome(str(world.home)))) as inbox:
        while not (waiting := inbox.waiting()):
            assert host.poll() is None
        kill(host)
        (request,) = waiting
        assert request.shown["chainPurposes"] == [prompt]
        inbox.answer(request, approved=True, who=Principal("me"))
    outcome, _runs_of_all = resume(world, task, types=ASKS, approver=None)
    assert (outcome.status, outcome.output) == ("done", "ready")
    assert world.read("a.txt") == "b\n"


def _runs(world, **wanted):
    async def run():
        async with world.open() as service:
            return service.runs(**wanted)

    return asyncio.run(run())


def test_a_cancelled_task_that_goes_on_is_told_that_its_changes_were_undone(world):
    world.write("a.txt", "a\n")
    never = threading.Event()
    prompt = world.model.task(
        call("edit_file", path="a.txt", old_string="a", new_string="b"),
        call("shell", command="echo x >> log.txt").until(never),
        say("on my way again"),
    )

    async def run():
        async with world.open() as service:
            first = service.tasks.start(prompt)
            await asyncio.to_thread(world.model.wait_for, 2, prompt)
            first.cancel()
            never.set()
            assert (await first).status == "cancelled"
            more = world.model.task(say("again"))
            second = service.tasks.resume(first.id, more)
            return await second, transcript_of(StateHome(str(world.home)), second.id), first.id, more

    second, transcript, first, more = asyncio.run(run())
    assert second.output == "again"
    assert world.read("a.txt") == "a\n"
    assert transcript.continues == first
    assert (
        world.model.of(more)[-1]
        .said[-1]
        .startswith("Your task was cancelled, and all that you had changed was undone.")
    )


def test_a_killed_task_in_a_layer_is_told_that_its_changes_are_not_there(world):
    world.write("a.txt", "a\n")
    waits = threading.Event()
    edit = call("edit_file", path="a.txt", old_string="a", new_string="b")
    prompt = world.model.task(edit, say("never").until(waits), edit, say("edited again"))
    settings = {"isolation": "layer"}
    host, task = start(world, prompt, **settings)
    world.model.wait_for(2, prompt)
    kill(host)
    waits.set()
    outcome, _runs_of_all = resume(world, task, **settings)
    assert outcome.status == "done", outcome.error
    assert any("may not be in the workspace" in said for said in world.model.of(prompt)[-1].said)
