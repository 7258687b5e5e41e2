"""What a task may spend, and how it ends when that is spent."""

import asyncio

import pytest
from worlds import told

from haft.testing.scripted_model import attempts, broken_call, call, say, server_error, unauthorized

MANY = [call("list_directory", path="."), call("find_files", pattern="*"), call("search", pattern="x")]


def perform(world, prompt, approver=lambda _request: True, **settings):
    async def run():
        async with world.open(approver=approver, **settings) as service:
            return await told(service.tasks.start(prompt))

    return asyncio.run(run())


def test_the_defaults_are_those_of_the_specification(world):
    steps = [call("read_file", path=f"{number}.txt") for number in range(30)]
    for number in range(30):
        world.write(f"{number}.txt", str(number))
    prompt = world.model.task(*steps)
    outcome, objects = perform(world, prompt)
    asked = world.model.of(prompt)
    assert len(asked) == 11  # ten cycles, and the report
    assert outcome.status == "done"
    assert outcome.output.startswith("Cut short: its 10 cycles are spent.")
    assert objects[-1]["type"] == "complete"
    assert len(objects[-1]["toolExecutions"]) == 10
    assert asked[-1].output_tokens == 1000


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"cycles": 2}, "its 2 cycles"),
        ({"tokens": 1_030}, "its 1,030 tokens are spent"),
        ({"cycles": 1}, "its 1 cycle is spent"),
    ],
)
def test_a_spent_budget_ends_with_one_report(world, settings, says):
    prompt = world.model.task(*MANY, say("what I have seen"))
    outcome, objects = perform(world, prompt, **settings)
    assert outcome.status == "done"
    assert says in outcome.output
    assert [each["state"] for each in objects if each["type"] == "status"][-1] == "reporting"
    assert "must end now" in world.model.of(prompt)[-1].said[-1]


def test_calls_that_fit_run_and_the_others_are_answered(world):
    prompt = world.model.task(MANY[0] + MANY[1] + MANY[2], say("two of three"))
    outcome, objects = perform(world, prompt, calls=2)
    assert outcome.status == "done"
    assert [each["toolName"] for each in objects if each["type"] == "tool-execution"] == [
        "list_directory",
        "find_files",
    ]
    assert "budget spent" in world.model.of(prompt)[-1].results[-1]


def test_a_report_that_fails_is_made_from_the_record(world):
    world.write("a.txt", "a\n")
    prompt = world.model.task(
        say("I change a.txt. ") + call("edit_file", path="a.txt", old_string="a", new_string="b"), unauthorized()
    )
    outcome, objects = perform(world, prompt, cycles=1)
    assert outcome.status == "done"
    assert "It made 1 call" in outcome.output
    assert "Changed files: a.txt." in outcome.output
    assert "I change a.txt." in outcome.output
    assert objects[-1]["modifiedFiles"] == [{"path": "a.txt", "type": "modify"}]


def test_the_clock_stands_still_while_a_person_is_asked(world):
    world.write("a.txt", "a\n")
    prompt = world.model.task(call("edit_file", path="a.txt", old_string="a", new_string="b"), say("done"))

    async def slowly(_request):
        await asyncio.sleep(1.5)
        return True

    outcome, _objects = perform(world, prompt, slowly, seconds=31)
    assert (outcome.status, outcome.output) == ("done", "done")


def test_a_child_spends_the_budget_of_its_parent(world):
    kinds = {
        "boss": {
            "description": "delegates",
            "tools": ["task", "list_directory", "find_files", "search"],
            "restricted": False,
        }
    }
    below = world.model.task(*MANY, *MANY, say("below"))
    prompt = world.model.task(call("task", prompt=below, agent="explore"), say("above: {{result}}"))

    async def run():
        async with world.open(types=kinds, calls=4) as service:
            return await told(service.tasks.start(prompt, agent="boss"))

    outcome, _objects = asyncio.run(run())
    assert outcome.status == "done"
    assert any("budget spent" in result for request in world.model.of(below) for result in request.results)


def test_sub_agents_nest_no_deeper_than_the_budget_says(world):
    kinds = {"boss": {"description": "delegates", "tools": ["task", "read_file"], "restricted": False}}
    third = world.model.task(say("too deep"))
    second = world.model.task(call("!task", prompt=third, agent="explore"), say("second: {{result}}"))
    first = world.model.task(call("task", prompt=second, agent="boss"), say("first: {{result}}"))

    async def run():
        async with world.open(types=kinds) as service:
            return await told(service.tasks.start(first, agent="boss"))

    outcome, _objects = asyncio.run(run())
    assert outcome.status == "done"
    assert world.model.of(third) == []
    assert "task" not in world.model.of(second)[0].tools
    assert "may not call `task`" in world.model.of(second)[-1].results[-1]


def test_a_call_cut_off_by_the_output_limit_is_answered_and_then_gets_more_room(world):
    text = "word " * 50
    prompt = world.model.task(
        call("write_file", path="a.txt", content=text).cut_off(),
        call("write_file", path="a.txt", content=text).cut_off(),
        call("write_file", path="a.txt", content=text),
        say("written"),
    )
    outcome, _objects = perform(world, prompt)
    asked = world.model.of(prompt)
    assert (outcome.status, outcome.output) == ("done", "written")
    assert "Write it in parts" in asked[1].results[-1]
    assert [request.output_tokens for request in asked] == [4000, 4000, 8000, 4000]
    assert world.read("a.txt") == text


def test_a_malformed_call_is_answered_with_what_is_wrong(world):
    prompt = world.model.task(broken_call("read_file", raw='{"path": '), call("read_file", wrong=1), say("sorry"))
    outcome, _objects = perform(world, prompt)
    assert outcome.status == "done"
    results = world.model.of(prompt)[-1].results
    assert "cannot be read" in results[0]
    assert "path" in results[1]


def test_a_call_repeated_unchanged_is_pointed_out_and_then_ends_the_task(world):
    prompt = world.model.task(*[call("list_directory", path=".")] * 5, say("I was going in circles"))
    outcome, _objects = perform(world, prompt)
    results = world.model.of(prompt)[-1].results
    assert "3 times" not in results[1]
    assert "3 times" in results[2]
    assert outcome.output.startswith("Cut short: the same call was made 5 times.")


def test_a_call_that_finds_something_new_each_time_is_no_repetition(world):
    steps = []
    for number in range(4):
        steps += [call("write_file", path="n.txt", content=str(number)), call("shell", command="cat n.txt >&2; false")]
    prompt = world.model.task(*steps, say("done"))
    outcome, _objects = perform(world, prompt)
    assert outcome.output == "done"


def test_retries_are_told_and_counted(world):
    prompt = world.model.task(attempts(server_error(), say("after all")))
    outcome, objects = perform(world, prompt)
    assert outcome.output == "after all"
    waiting = [each["message"] for each in objects if each.get("state") == "waiting"]
    assert len(waiting) == 1
    assert "500" in waiting[0]


@pytest.mark.parametrize(("limit", "is_cut"), [(0.001, True), (1.0, False)])
def test_the_cost_is_that_which_pydantic_ai_computes(world, limit, is_cut):
    prompt = world.model.task(MANY[0].used(20_000, 100), say("done"))
    outcome, _objects = perform(world, prompt, cost=limit, model="openai-chat:gpt-4o-mini")
    assert outcome.output == ("Cut short: its money is spent. done" if is_cut else "done")
