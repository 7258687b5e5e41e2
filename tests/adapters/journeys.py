"""What every framework must be able to do with haft's tools. The test modules run these journeys, each with the driver
of its framework, against a scripted model and through the real clients.
"""

import asyncio
import contextlib
import gc
import re
import ssl
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import httpx2
from openai import AsyncOpenAI

from haft import ApprovalAnswer, Context, ToolService, tool
from haft.service import InboxFacade, StateHome, recover_dead_hosts, this_user
from haft.testing.scripted_model import call, say

WRITE = call("write_file", path="a.txt", content="hello")


@tool(readonly=True)
async def outer(context: Context) -> str:
    """Needs no approval, and calls a tool that does."""
    outcome = await context.call("write_file", {"path": "deep.txt", "content": "deep"})
    return f"the write is {outcome.status}"


@tool
async def twice(context: Context) -> str:
    """Needs an approval itself, and two more below it."""
    made = [await context.call("write_file", {"path": name, "content": ""}) for name in ("one.txt", "two.txt")]
    return ", ".join(each.status for each in made)


def meeting():
    """A tool whose calls end only if two of them run at once."""
    both = asyncio.Barrier(2)

    @tool(readonly=True)
    async def meet() -> str:
        """Waits for the other one."""
        await both.wait()
        return "met"

    return meet


class World:
    """A workspace, a state home and a model."""

    def __init__(self, base, model):
        self.model = model
        self.workspace, self.home = base / "workspace", base / "home"
        self.workspace.mkdir()

    @contextlib.asynccontextmanager
    async def open(self, driver, *, tools=(), settings=None, **options):
        """A service, with an agent of the framework that has its tools."""
        # Without certificates, which would take longer to load than a test.
        http = httpx2.AsyncClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        places = {"home": self.home, "thread": "T-1", "tools": [outer, twice, *tools], "settings": settings}
        async with (
            AsyncOpenAI(base_url=self.model.openai_url, api_key="none", max_retries=0, http_client=http) as client,
            ToolService.open(self.workspace, **places) as service,
        ):
            yield service, driver(service, client, **options)

    def has(self, name):
        return (self.workspace / name).exists()

    def inbox(self, *, approved, message=None):
        """Answer what waits, without any host."""
        home = StateHome(str(self.home))
        recover_dead_hosts(home)
        with contextlib.closing(InboxFacade(home)) as inbox:
            for waiting in inbox.waiting():
                inbox.answer(waiting, approved=approved, who=this_user(), message=message)


def statuses(service, name):
    return sorted(run.status for run in service.runs() if run.tool == name)


async def answers_of_parallel_calls(driver, world):
    meet = meeting()
    prompt = world.model.task(
        call("meet") + call("meet"),
        WRITE + call("write_file", path="b.txt", content="no") + call("read_file", pth="a.txt"),
        say("ready"),
    )
    async with world.open(driver, tools=[meet]) as (service, agent):
        state, asked = await agent.start(prompt), {}
        no = ApprovalAnswer(approved=False, message="not this one")
        while waiting := agent.asked(state):  # LangGraph shows one call of a node after another.
            paths = [each["arguments"]["path"] for each in waiting]
            asked |= dict(zip(paths, waiting, strict=True))
            state = await agent.answer(state, [True if path == "a.txt" else no for path in paths])
        assert asked["b.txt"]["tool"] == "write_file" and asked["b.txt"]["reason"]
        assert agent.text(state) == "ready"
        assert statuses(service, "write_file") == ["done", "rejected-by-user"]
        assert service.inbox() == []
        results = world.model.results(prompt)[-3:]
        for words in ("wrote 5 bytes", "not this one", "error (invalid-arguments): `read_file` cannot be called"):
            assert sum(words in each for each in results) == 1, results
        await service.undo()
    assert not world.has("a.txt") and not world.has("b.txt")


async def a_call_below_a_call(driver, world):
    prompt = world.model.task(call("outer"), say("{{result}}"))
    async with world.open(driver) as (service, agent):
        state = await agent.start(prompt)
        (asked,) = agent.asked(state)
        assert (asked["tool"], asked["chain"], asked["arguments"]["path"]) == ("write_file", ["outer"], "deep.txt")
        state = await agent.answer(state, [True])
        assert agent.text(state) == "the write is done"
        assert len(service.runs()) == 2


def wait_if_told(request):
    """What a model answers that reads that its call needs another approval."""
    told = re.search(r"with the id `(.+?)`", request.results[-1])
    return call("wait_for_approval", call=told[1]) if told else say(request.results[-1])


async def came(is_so):
    """Wait until it is so: the record of a run may come a moment after its outcome."""
    for _ in range(1_000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come")


async def several_approvals_of_one_call(driver, world):
    prompt = world.model.task(call("twice"), wait_if_told, wait_if_told, wait_if_told)
    async with world.open(driver) as (service, agent):
        state = await agent.start(prompt)
        seen = []
        while waiting := agent.asked(state):
            (asked,) = waiting
            seen.append(asked["arguments"].get("path", asked["tool"]))
            state = await agent.answer(state, [len(seen) < 3])
        assert seen == ["twice", "one.txt", "two.txt"], world.model.results(prompt)
        await came(lambda: statuses(service, "write_file") == ["done", "rejected-by-user"])
        await came(lambda: statuses(service, "twice") == ["done"])
    assert world.has("one.txt") and not world.has("two.txt")


async def left_behind(driver, world, prompt, **options):
    """The stored state of a framework whose process has ended while a call waited for an approval."""
    async with world.open(driver, **options) as (_service, agent):
        state = await agent.start(prompt)
        assert len(agent.asked(state)) == 1
        return agent.dump(state)


async def a_restart_while_a_call_waits(driver, world):
    prompt = world.model.task(WRITE, say("{{result}}"))
    for answer, status in ((True, "done"), (ApprovalAnswer(approved=False, message="no"), "rejected-by-user")):
        stored = await left_behind(driver, world, prompt)
        async with world.open(driver) as (service, agent):
            state = await agent.answer(await agent.load(stored), [answer])
            assert "wrote 5 bytes" in agent.text(state) if status == "done" else "no" in agent.text(state)
            assert service.runs()[0].status == status
            assert service.inbox() == []
    assert len(service.runs()) == 2


async def an_answer_in_the_inbox(driver, world):
    prompt = world.model.task(WRITE, say("{{result}}"))
    async with world.open(driver) as (service, agent):
        state = await agent.start(prompt)
        while not service.inbox():
            await asyncio.sleep(0)
        await service.approve(service.inbox()[0].id)
        await agent.answer(state, [False])  # It comes too late.
        while statuses(service, "write_file") != ["done"]:
            await asyncio.sleep(0)
    stored = await left_behind(driver, world, prompt)
    world.inbox(approved=True)
    async with world.open(driver) as (service, agent):
        state = await agent.answer(await agent.load(stored), [True])
        assert "a.txt already has this content" in agent.text(state)
        assert statuses(service, "write_file") == ["done", "done"]


async def a_restart_while_a_task_in_a_task_waits(driver, world):
    edit = call("edit_file", path="a.txt", old_string="a", new_string="b")
    inner = world.model.task(edit, say("inner ready"))
    middle = world.model.task(call("task", prompt=inner, agent="asks"), say("middle: {{result}}"))
    prompt = world.model.task(call("task", prompt=middle, agent="asks"), say("{{result}}"))
    (world.workspace / "a.txt").write_text("a\n")
    kinds = {"asks": {"description": "d", "tools": ["edit_file", "task"]}}
    own = {"enabled": True, "model": "openai-chat:scripted", "base_url": world.model.openai_url, "types": kinds}
    settings = {f"subagents.{name}": value for name, value in own.items()}
    stored = await left_behind(driver, world, prompt, settings=settings)
    async with world.open(driver, settings=settings) as (service, agent):
        before = {run.id: run.status for run in service.runs()}
        assert len(before) == 3 and set(before.values()) == {"blocked-on-user"}
        state = await agent.answer(await agent.load(stored), [True])
        assert "inner ready" in agent.text(state)
        assert {run.id: run.status for run in service.runs()} == dict.fromkeys(before, "done")
    assert (world.workspace / "a.txt").read_text() == "b\n"


async def cancelling_the_agent(driver, world):
    begun = asyncio.Event()

    @tool(readonly=True)
    async def endless() -> str:
        """Never ends."""
        begun.set()
        return await asyncio.Event().wait()

    prompt = world.model.task(call("endless"), say("never"))
    async with world.open(driver, tools=[endless]) as (service, agent):
        task = asyncio.ensure_future(agent.start(prompt))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        while statuses(service, "endless") != ["cancelled"]:
            await asyncio.sleep(0)


async def waiting_in_the_inbox_by_option(driver, world):
    prompt = world.model.task(WRITE, call("read_output", run="r_1"), say("{{result}}"))
    settings = {"approval.expires_seconds": 600}
    async with world.open(driver, settings=settings, pauses=False, tools_of_agent=["write_*"]) as (service, agent):
        task = asyncio.ensure_future(agent.start(prompt))
        while not service.inbox():
            await asyncio.sleep(0)
        await service.approve(service.inbox()[0].id)
        state = await task
        assert agent.asked(state) == [] and agent.text(state) == "you have no such run"
    assert [each for each in world.model.tools(prompt) if each != "wait_for_approval"] == ["write_file", "read_output"]


EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"


def run_example(name, model, world, monkeypatch, capsys):
    """Run an example, and compare what it prints."""
    prompt = world.model.task(call("write_file", path="greeting.txt", content="hello"), say("It is written."))
    monkeypatch.chdir(world.workspace)
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.setenv(variable, world.model.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("HAFT_HOME", str(world.home))
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    found = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    found.loader.exec_module(example := module_from_spec(found))
    asyncio.run(example.main(model, prompt))
    gc.collect()  # The clients of an example are closed with its process, and in a test only here.
    asked = "approve? write_file {'path': 'greeting.txt', 'content': 'hello'}"
    assert capsys.readouterr().out.splitlines() == [asked, "It is written.", "undone: ['greeting.txt']"]
    assert not world.has("greeting.txt")
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 40


JOURNEYS = (
    answers_of_parallel_calls,
    a_call_below_a_call,
    several_approvals_of_one_call,
    a_restart_while_a_call_waits,
    an_answer_in_the_inbox,
    a_restart_while_a_task_in_a_task_waits,
    cancelling_the_agent,
)
