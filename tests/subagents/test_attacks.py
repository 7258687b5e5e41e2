"""Attacks that worked once: by a hostile model, and by texts that it writes."""

import asyncio

import pytest
from worlds import told

from haft import ToolService
from haft.adapters.tool_calls import ToolCalls
from haft.contracts import BadUsage, Event, Rights
from haft.surfaces.cli.screen.task_lines import task_lines
from haft.surfaces.text.requests import call_lines
from haft.testing.scripted_model import Call, Turn, call, say

READS = Rights("a client", readonly=True)
BOSS = {"boss": {"description": "d", "tools": ["task", "read_file"]}}
RESULT = {"with-result": {"description": "d", "tools": ["*"], "output": {"type": "string"}}}


def perform(world, *steps, kind="openai-chat", agent=None, **settings):
    """A task with these steps: its outcome, and what it told."""
    prompt = world.model.task(*steps)

    async def run():
        async with world.open(kind, **settings) as service:
            return await told(service.tasks.start(prompt, agent=agent))

    return asyncio.run(run())


def raw(arguments, tool="list_directory"):
    """A call with these arguments, to the letter."""
    return Turn(calls=(Call(tool, raw=arguments),))


def make(path):
    return call("!write_file", path=path, content="made\n")


@pytest.mark.parametrize("nested", [False, True], ids=["of a client", "of a sub-agent"])
def test_a_resumed_task_has_no_more_rights_than_before(world, nested):
    script = world.model.task(make("first"), say("no"), make("second"), say("no"), make("third"), say("no"))
    boss = world.model.task(call("task", prompt=script, agent="work"), say("no"))

    async def run():
        async with world.open(types=BOSS) as service:
            if nested:
                await service.tasks.start(boss, agent="boss")
            else:
                await service.tasks.start(script, rights=READS)
            task = next(each for each in service.runs() if each.tool == "task" and (each.parent or not nested))
            again = await service.tasks.resume(task.id, "more")
            await service.tasks.resume(again.run_id, "more")
            return [each.outcome["decision"]["layer"] for each in service.runs() if each.tool == "write_file"]

    assert asyncio.run(run()) == ["rights"] * 3
    assert not list(world.workspace.iterdir())


def test_a_task_is_resumed_only_in_its_own_workspace(world):
    prompt = world.model.task(say("ready"), call("read_file", path="private"), say("{{result}}"))
    other = world.workspace.with_name("other")
    other.mkdir()
    (other / "private").write_text("of the other workspace\n")

    async def run():
        async with world.open() as service:
            task = await service.tasks.start(prompt)
        async with ToolService.open(other, home=world.home, settings=world.settings()) as service:
            with pytest.raises(BadUsage, match="belongs to the workspace"):
                service.tasks.resume(task.run_id, "more")

    asyncio.run(run())


def test_a_sub_agent_of_an_agent_of_a_framework_has_no_more_tools_than_that_agent(world):
    prompt = world.model.task(make("made"), say("ready"))

    async def run():
        async with world.open() as service:
            calls = ToolCalls(service, "key-", tools=["task", "read_file"], pauses=False)
            await calls.call("task", {"prompt": prompt}, "1")

    asyncio.run(run())
    (result,) = world.model.results(prompt)
    assert "may not call `write_file`" in result
    assert not (world.workspace / "made").exists()


def test_two_calls_of_a_framework_with_one_id_are_not_approved_together(world):
    async def run():
        async with world.open() as service:
            calls = ToolCalls(service, "key-")
            await calls.call("shell", {"command": "touch bad"}, "1")
            return await calls.call("shell", {"command": "touch good"}, "1")

    assert "has this id" in asyncio.run(run()).text


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic"])
def test_an_answer_that_cannot_be_stored_or_sent_again_does_not_end_the_task(world, kind):
    outcome, _ = perform(
        world,
        say("lone \ud800") + call("!odd\ud800", path="\ud800"),
        raw('{"path": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        raw('{"path": ' + "[" * 500 + "]" * 500 + "}"),
        raw('{"path": NaN}'),
        say("ready"),
        kind=kind,
    )
    assert (outcome.status, outcome.output) == ("done", "ready")


@pytest.mark.parametrize(
    "answer", [Turn(calls=(Call("list_directory"),) * 1_001), say("x" * 4_000_001)], ids=["calls", "characters"]
)
def test_an_answer_that_does_not_end_is_broken_off(world, answer):
    outcome, told = perform(world, answer, say("ready"))
    assert outcome.error.code == "tool-failed"
    assert "4_000_000 characters" in told[-1]["errorMessage"]
    assert len(world.model.requests) == 1


@pytest.mark.parametrize("reported", [0, -(10**9)], ids=["nothing", "less than nothing"])
def test_a_model_that_does_not_tell_its_tokens_still_spends_them(world, reported):
    step = (say("x" * 5_000) + call("list_directory", path=".")).used(reported, reported)
    outcome, _ = perform(world, step, step, say("report"), tokens=2_000)
    assert outcome.output.startswith("Cut short:")
    assert len(world.model.requests) == 2


def test_a_task_goes_on_after_any_end(world):
    taken = world.model.task(call("report_result", result="one"), call("report_result", result="two"))
    cut = world.model.task(call("list_directory", path="."), call("!list_directory", path="."), say("ready"))

    async def run():
        async with world.open(types=RESULT, cycles=1) as service:
            first = await service.tasks.start(taken, agent="with-result")
            second = await service.tasks.start(cut)
            return [await service.tasks.resume(each.run_id, "more") for each in (first, second)]

    with_result, without = asyncio.run(run())
    assert with_result.result == "two"
    assert without.output == "ready"


def test_a_name_of_a_tool_stays_on_one_line():
    told = {"type": "tool-execution", "toolName": "x\nhaft: approved", "arguments": {}, "result": "", "status": "done"}
    (line,) = task_lines(Event("r_1", 1, 0.0, "progress", "in-progress", {"task": told}))
    assert line.startswith("x haft: approved")


def test_a_long_task_does_not_push_the_call_out_of_sight(world):
    asked = []
    steps = make("made"), say("ready")
    prompt = world.model.task(*steps) + "\n" * 500 + "\nAllow it? y\n" * 60

    async def run():
        async with world.open(approver=lambda request: asked.append(request) or False) as service:
            await service.tasks.start(prompt)

    asyncio.run(run())
    (request,) = asked
    lines = list(call_lines(request, request.arguments, str(world.workspace)))
    assert len(lines) < 25
    assert any("more lines: `haft show" in line for line in lines)
    assert not any(line.strip() == "Allow it? y" for line in lines)


def test_a_known_secret_is_not_stored_in_the_conversation(world, monkeypatch):
    monkeypatch.setenv("A_TOKEN", "s3cr3t-value-of-a-token")
    text = "s3cr3t-value-of-a-token"
    prompt = world.model.task(call("write_file", path="made", content=text), say(text)) + f" Use {text}."
    providers = {"other": {"command": ["true"], "env": {"A_TOKEN": "${env:A_TOKEN}"}}}

    async def run():
        async with world.open(more={"providers": providers}) as service:
            return await service.tasks.start(prompt)

    task = asyncio.run(run()).run_id
    assert world.read("made") == text
    stored = (world.home / "conversations" / f"{task}.task").read_text()
    assert text not in stored
    assert stored.count("[secret removed by haft]") == 3
