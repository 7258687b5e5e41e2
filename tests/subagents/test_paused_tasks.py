"""Tasks that wait for an approval for the program that started them, also when their host ends meanwhile."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys

from haft import Outcome
from haft.service import InboxFacade, Pause, StateHome, this_user
from haft.testing.scripted_model import call, say

ASKS = {"asks": {"description": "d", "tools": ["edit_file", "task"]}}
EDIT = call("edit_file", path="a.txt", old_string="a", new_string="b")
HOST = """
import asyncio, json, sys
from haft import ToolService

workspace, home, settings, prompt = json.loads(sys.argv[1])

async def main():
    async with ToolService.open(workspace, home=home, thread="T-1", settings=settings) as service:
        run = service.call("task", {"prompt": prompt, "agent": "asks"}, pauses=True)
        await run.pause_or_outcome()
        print(run.id, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def killed(world, prompt):
    """A task that waits for an approval below it, and whose host was killed."""
    given = json.dumps([str(world.workspace), str(world.home), world.settings(types=ASKS), prompt])
    host = subprocess.Popen([sys.executable, "-c", HOST, given], stdout=subprocess.PIPE, text=True)
    task = host.stdout.readline().strip()
    os.kill(host.pid, signal.SIGKILL)
    host.communicate()
    return task


def left_behind(world, prompt, pauses=1):
    """A task that waits for approvals below it, and whose host has ended."""

    async def begin(service):
        run = service.call("task", {"prompt": prompt, "agent": "asks"}, pauses=True)
        await run.pause_or_outcome()
        while len(service.inbox()) < pauses:
            await asyncio.sleep(0)
        return run.id

    return with_service(world, begin)


def with_service(world, body, **options):
    async def main():
        async with world.open(approver=None, types=ASKS, **options) as service:
            return await body(service)

    return asyncio.run(main())


def statuses(service):
    return {(each.tool, each.status) for each in service.runs()}


def test_a_paused_task_goes_on_in_another_host_with_the_same_runs(world):
    world.write("a.txt", "a\n")
    prompt = world.model.task(EDIT, say("ready"))
    task = left_behind(world, prompt)

    async def go_on(service):
        before = {each.id: each.status for each in service.runs()}
        assert len(before) == 2 and set(before.values()) == {"blocked-on-user"}
        (waiting,) = service.inbox()
        run = await service.resume(waiting.run, answer=True)
        assert run.id == task
        outcome = await run
        assert (outcome.status, outcome.output) == ("done", "ready")
        after = {each.id: each.status for each in service.runs()}
        assert after == dict.fromkeys(before, "done")
        assert service.inbox() == []

    with_service(world, go_on)
    assert world.read("a.txt") == "b\n"
    assert len(world.model.of(prompt)) == 2


def test_a_task_in_a_task_goes_on_from_below_after_its_host_was_killed(world):
    world.write("a.txt", "a\n")
    inner = world.model.task(EDIT, say("inner ready"))
    outer = world.model.task(call("task", prompt=inner, agent="asks"), say("outer: {{result}}"))
    task = killed(world, outer)

    async def go_on(service):
        assert len(service.runs()) == 3
        run = await service.resume(task, answer=True)
        outcome = await run
        assert outcome.status == "done" and "inner ready" in outcome.output
        assert {each.status for each in service.runs()} == {"done"} and len(service.runs()) == 3

    with_service(world, go_on, depth=2)
    assert world.read("a.txt") == "b\n"
    assert (len(world.model.of(inner)), len(world.model.of(outer))) == (2, 2)


def test_several_calls_of_one_answer_are_answered_one_by_one_here_and_there(world):
    world.write("a.txt", "a\n")
    both = EDIT + call("edit_file", path="c.txt", old_string="c", new_string="d")
    world.write("c.txt", "c\n")
    prompt = world.model.task(both, say("ready"))
    task = left_behind(world, prompt, pauses=2)
    with contextlib.closing(InboxFacade(StateHome(str(world.home)))) as inbox:
        first, second = inbox.waiting()
        inbox.answer(first, approved=False, who=this_user(), message="not this one")

    async def go_on(service):
        assert ("edit_file", "rejected-by-user") in statuses(service)
        run = await service.resume(task)
        pause = await run.pause_or_outcome()
        assert isinstance(pause, Pause) and pause.run == second.run
        pause.answer(answer=True)
        assert isinstance(outcome := await run.pause_or_outcome(), Outcome)
        assert outcome.ok

    with_service(world, go_on)
    assert sorted([world.read("a.txt"), world.read("c.txt")]) in (["a\n", "d\n"], ["b\n", "c\n"])
    assert any("not this one" in text for text in world.model.results(prompt))


def test_cancelling_a_paused_task_without_a_host_ends_all_of_it(world):
    world.write("a.txt", "a\n")
    task = left_behind(world, world.model.task(EDIT, say("ready")))

    async def cancel(service):
        assert service.cancel(task)
        assert statuses(service) == {("task", "cancelled"), ("edit_file", "cancelled")}
        assert service.inbox() == [] and service.record.verify().intact

    with_service(world, cancel)
