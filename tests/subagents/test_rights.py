"""What the calls of sub-agents may do: never more than their callers, whoever makes them."""

import asyncio

import pytest
from worlds import told

from haft import ApprovalAnswer, Context, tool
from haft.surfaces.mcp.offers.offered_tools import OfferedTools
from haft.testing.scripted_model import call, say

EDIT = {"path": "a.txt", "old_string": "a", "new_string": "b"}


def perform(world, prompt, agent="work", **options):
    async def run():
        async with world.open(**options) as service:
            outcome, _objects = await told(service.tasks.start(prompt, agent=agent))
            return outcome, {each.tool: each for each in service.runs() if each.parent is not None}

    return asyncio.run(run())


def test_a_tool_of_a_sub_agent_cannot_call_what_the_sub_agent_may_not(world):
    @tool
    async def sly(context: Context) -> str:
        """Call another tool."""
        return (await context.call("write_file", {"path": "made.txt", "content": "x"})).status

    kinds = {"narrow": {"description": "d", "tools": ["sly"]}}
    prompt = world.model.task(call("sly"), say("{{result}}"))
    outcome, runs = perform(world, prompt, "narrow", tools=[sly], types=kinds)
    assert outcome.status == "done"
    assert runs["write_file"].status == "rejected-by-user"
    assert runs["write_file"].outcome["decision"]["layer"] == "rights"
    assert not (world.workspace / "made.txt").exists()


@pytest.mark.parametrize(("context", "edited"), [("subagent", False), ("thread", True)])
def test_rules_can_be_for_sub_agents_only(world, context, edited):
    world.write("a.txt", "a\n")
    world.write("haft.toml", f'[[permissions]]\ntool = "edit_file"\naction = "reject"\ncontext = "{context}"\n')
    outcome, runs = perform(world, world.model.task(call("edit_file", **EDIT), say("x")))
    assert outcome.status == "done"
    assert (runs["edit_file"].status == "done") == edited


def test_an_answer_for_the_thread_ends_with_the_task(world):
    asked = []

    def approver(request):
        asked.append((request.tool, request.chain_tools, request.chain_purposes))
        return ApprovalAnswer(approved=True, scope="thread")

    twice = call("shell", command="touch x"), call("shell", command="touch x"), say("done")
    first, second = world.model.task(*twice), world.model.task(*twice)

    async def run():
        async with world.open(approver=approver, types={"free": {"description": "d", "tools": ["shell"]}}) as service:
            for prompt in (first, second):
                assert (await service.tasks.start(prompt, agent="free")).output == "done"

    asyncio.run(run())
    assert asked == [("shell", ("task",), (first,)), ("shell", ("task",), (second,))]


@pytest.mark.parametrize("remembered_for", ["thread", "always"])
def test_answers_about_the_calls_of_the_parent_do_not_count(world, remembered_for):
    answers = [ApprovalAnswer(approved=True, scope=remembered_for)]

    def approver(_request):
        return answers.pop() if answers else False

    prompt = world.model.task(call("shell", command="touch x"), say("done"))

    async def run():
        async with world.open(approver=approver) as service:
            assert (await service.call("shell", {"command": "touch x"})).ok
            assert (await service.call("shell", {"command": "touch x"})).ok
            outcome = await service.tasks.start(prompt)
            return outcome, service.runs(parent=outcome.run_id)

    outcome, (child,) = asyncio.run(run())
    assert outcome.status == "done"
    assert child.status == "rejected-by-user"


def calls_alone_and_in_a_task(world, command, rule):
    """The outcome of a command that a rule allows, called by the program itself, and by a restricted sub-agent."""
    prompt = world.model.task(call("shell", command=command), say("x"))

    async def run():
        async with world.open(more={"permissions": [rule]}, approver=lambda _request: False) as service:
            outcome = await service.tasks.start(prompt)
            (child,) = service.runs(parent=outcome.run_id)
            return await service.call("shell", {"command": command}), child.outcome

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("command", "danger"), [("rm -rf build", "recursive-delete"), ("cat a | bash", "fetch-and-run")]
)
def test_dangerous_commands_of_work_are_rejected_even_if_a_rule_allows_them(world, command, danger):
    world.write("build/a.txt", "a")
    world.write("a", "true")
    rule = {"tool": "shell", "action": "allow", "dangers": [danger]}
    alone, in_task = calls_alone_and_in_a_task(world, command, rule)
    assert alone.status == "done", alone.error
    assert in_task["decision"]["layer"] == "rights"
    assert in_task["status"] == "rejected-by-user"


def test_the_grants_of_rules_do_not_count_for_restricted_types(world, tmp_path):
    place = tmp_path / "outside" / "place.txt"
    place.parent.mkdir()
    rule = {"tool": "shell", "action": "allow", "grant": {"write": [str(place.parent)]}}
    alone, in_task = calls_alone_and_in_a_task(world, f'python3 -c \'open("{place}", "a").write("x")\'', rule)
    assert alone.status == "done", alone.error
    assert in_task["status"] == "error"
    assert place.read_text() == "x"


def test_a_read_only_surface_binds_its_sub_agents(world):
    world.write("a.txt", "a\n")
    prompt = world.model.task(
        call("read_file", path="a.txt") + call("!edit_file", **EDIT),
        call("shell", command="echo x > a.txt"),
        call("shell", command="cat a.txt"),
        say("done"),
    )

    async def run():
        async with world.open() as service:
            offered = OfferedTools(service, read_only=True)
            assert "task" in {listing.spec.name for listing in offered.listings(None)}
            outcome = await service.call("task", {"prompt": prompt}, rights=offered.rights)
            return outcome, [(each.tool, each.status) for each in service.runs(parent=outcome.run_id)][::-1]

    outcome, runs = asyncio.run(run())
    assert outcome.status == "done"
    assert sorted(runs[:2]) == [("edit_file", "rejected-by-user"), ("read_file", "done")]
    assert runs[2:] == [("shell", "rejected-by-user"), ("shell", "done")]
    assert world.read("a.txt") == "a\n"


def test_a_surface_with_some_tools_binds_only_the_sub_agents_of_its_clients(world):
    prompt = world.model.task(
        call("!write_file", path="x", content="x") + call("read_file", path="haft.toml"), say("x")
    )
    world.write("haft.toml", "")

    async def run():
        async with world.open() as service:
            offered = OfferedTools(service, globs=("task", "read_*"))
            outcome = await service.call("task", {"prompt": prompt}, rights=offered.rights)
            alone = await service.call("write_file", {"path": "y", "content": "y"}, rights=offered.rights)
            return outcome, service.runs(parent=outcome.run_id), alone

    outcome, runs, alone = asyncio.run(run())
    notes = [line for line in outcome.output.splitlines() if line.startswith("Note: ")]
    assert len(notes) == 1 and notes[0].endswith(" may not call the tool")
    tools = "`list_directory`, `search`, `find_files`, `write_file`, `edit_file`, `shell` were left out"
    assert notes[0].startswith(f"Note: {tools}: ")
    assert {each.tool: each.status for each in runs} == {"write_file": "rejected-by-user", "read_file": "done"}
    assert alone.status == "done"
