"""The tasks extension: which calls become tasks, how a client follows them, and who may reach them."""

import asyncio
import os

import pytest
from tests.surfaces.mcp.raw_client import LEGACY, MODERN, TASKS, ProtocolError, serving

from haft import Context, Principal, Question, tool

NAME = Question.form("What is your name?", {"name": {"type": "string"}}, key="user_name")
SURE = Question.form("Sure?", {"sure": {"type": "boolean"}}, key="user_name")
CAPABILITIES = {"elicitation": {}, "extensions": {TASKS: {}}}
ENVELOPE = {"result", "error", "inputRequests", "requestState", "task", "ttl", "pollInterval"}


@tool(readonly=True)
def quick(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


@tool(readonly=True, task_support="optional")
async def compute(seconds: float) -> str:
    """Compute."""
    await asyncio.sleep(seconds)
    return "computed"


@tool(readonly=True, task_support="required")
async def fail() -> str:
    """Fail."""
    raise ValueError("it failed")


@tool(readonly=True, isolated=True, task_support="optional")
def die() -> str:
    """Die."""
    os._exit(70)


@tool(readonly=True, task_support="optional")
async def confirm(context: Context):
    """Ask two questions at once."""
    return [answer.to_json() for answer in await context.ask(NAME, SURE)]


@tool(readonly=True, task_support="required")
async def ask_first(context: Context) -> str:
    """Ask, then work."""
    (answer,) = await context.ask(NAME)
    await asyncio.sleep(0.3)
    return f"Hello, {answer.content['name']}!"


@tool(task_support="optional")
def write(text: str) -> str:
    """Write something."""
    return f"wrote {text}"


@tool
def plain(text: str) -> str:
    """Write something, and declare nothing about tasks."""
    return f"wrote {text}"


TOOLS = [quick, compute, fail, die, confirm, ask_first, write, plain]


def run(places, body, **options):
    async def main():
        async with serving(places, tools=TOOLS, **options) as served:
            client = await served.connect(MODERN, CAPABILITIES)
            return await asyncio.wait_for(body(served, client), 90)

    return asyncio.run(main())


async def reached(client, task, *statuses):
    while True:
        found = await client.request("tasks/get", {"taskId": task})
        assert found["resultType"] == "complete" and found["taskId"] == task
        if found["status"] in (statuses or ("completed", "failed", "cancelled")):
            return found
        await asyncio.sleep(0.02)


def accepted(**content):
    return {"action": "accept", "content": content}


def test_a_declared_tool_becomes_a_task_at_once_and_its_result_stands_in_the_task(places):
    async def body(_served, client):
        made = await client.call("compute", {"seconds": 0.2})
        assert made["resultType"] == "task" and made["status"] == "working"
        assert not ENVELOPE & made.keys()
        assert isinstance(made["ttlMs"], int) and isinstance(made["pollIntervalMs"], int)
        assert made["createdAt"].endswith("Z")
        found = await reached(client, made["taskId"])
        assert found["status"] == "completed"
        assert found["result"]["content"][0]["text"] == "computed"
        assert "error" not in found and "requestState" not in found

    run(places, body)


def test_the_server_says_that_it_has_tasks(places):
    async def body(_served, client):
        capabilities = (await client.request("server/discover", {}))["capabilities"]
        assert capabilities["extensions"][TASKS] == {}
        assert "tasks" not in capabilities

    run(places, body)


def test_a_call_that_ends_quickly_is_no_task(places):
    async def body(_served, client):
        result = await client.call("quick", {"name": "World"}, task={"ttl": 60000})
        assert result["resultType"] == "complete" and "taskId" not in result
        assert result["content"][0]["text"] == "Hello, World!"

    run(places, body)


def test_a_call_that_takes_long_becomes_a_task(places):
    async def body(served, client):
        served.waiting.task_seconds = 0.05
        made = await client.call("shell", {"command": "sleep 0.5; echo done"})
        assert made["resultType"] == "task"
        assert "done" in (await reached(client, made["taskId"]))["result"]["content"][0]["text"]

    run(places, body)


def test_a_failed_tool_completes_and_a_tool_that_died_fails(places):
    async def body(_served, client):
        made = await client.call("fail")
        assert made["resultType"] == "task"
        found = await reached(client, made["taskId"])
        assert found["status"] == "completed" and found["result"]["isError"] is True
        made = await client.call("die")
        found = await reached(client, made["taskId"])
        assert found["status"] == "failed" and "result" not in found
        assert isinstance(found["error"]["code"], int) and "worker process" in found["error"]["message"]

    run(places, body)


def test_cancelling_is_acknowledged_with_nothing_and_ends_the_run(places):
    async def body(_served, client):
        made = await client.call("compute", {"seconds": 60})
        acknowledged = await client.request("tasks/cancel", {"taskId": made["taskId"]})
        assert acknowledged["resultType"] == "complete"
        assert not {"taskId", "status", *ENVELOPE} & acknowledged.keys()
        found = await reached(client, made["taskId"])
        assert found["status"] == "cancelled" and "result" not in found
        assert (await client.request("tasks/cancel", {"taskId": made["taskId"]}))["resultType"] == "complete"

    run(places, body)


def test_questions_of_a_task_are_answered_one_by_one(places):
    async def body(_served, client):
        made = await client.call("confirm")
        assert made["resultType"] == "task"
        found = await reached(client, made["taskId"], "input_required")
        first, second = found["inputRequests"]
        assert {one["method"] for one in found["inputRequests"].values()} == {"elicitation/create"}

        async def update(**responses):
            answer = await client.request("tasks/update", {"taskId": made["taskId"], "inputResponses": responses})
            assert answer["resultType"] == "complete"
            return await client.request("tasks/get", {"taskId": made["taskId"]})

        found = await update(**{first: accepted(name="Alice"), "unknown": {"ignored": True}})
        assert found["inputRequests"].keys() == {second}
        found = await update(**{second: accepted(sure="perhaps")})
        assert found["inputRequests"].keys() == {second} and "not valid" in found["statusMessage"]
        await update(**{second: accepted(sure=True)})
        found = await reached(client, made["taskId"])
        assert [one["content"] for one in found["result"]["structuredContent"]["result"]] == [
            {"name": "Alice"},
            {"sure": True},
        ]

    run(places, body)


def test_an_approval_is_a_question_of_the_task(places):
    async def body(served, client):
        made = await client.call("write", {"text": "a"})
        found = await reached(client, made["taskId"], "input_required")
        (key,) = found["inputRequests"]
        assert (await served.inbox())[0].run == made["taskId"]
        answer = {key: accepted(decision="approve")}
        await client.request("tasks/update", {"taskId": made["taskId"], "inputResponses": answer})
        assert (await reached(client, made["taskId"]))["result"]["content"][0]["text"] == "wrote a"
        (record,) = await served.service.runs.find(tool="write")
        assert record.outcome["decision"]["by"] == "client agent"

    run(places, body)


@pytest.mark.parametrize("action", ["cancel", "decline"])
def test_a_client_that_shows_no_person_leaves_its_task_in_the_inbox(places, action):
    async def body(served, client):
        served.waiting.shortest_answer = 3600.0
        made = await client.call("write", {"text": "a"})
        (key,) = (await reached(client, made["taskId"], "input_required"))["inputRequests"]
        await client.request("tasks/update", {"taskId": made["taskId"], "inputResponses": {key: {"action": action}}})
        found = await client.request("tasks/get", {"taskId": made["taskId"]})
        assert found["status"] == "input_required" and found["inputRequests"] == {}
        (waiting,) = await served.inbox()
        await served.service.approve(waiting.id)
        assert (await reached(client, made["taskId"]))["result"]["content"][0]["text"] == "wrote a"

    run(places, body)


def test_a_call_that_waits_for_a_person_whom_the_client_cannot_ask_is_a_task(places):
    async def body(served, _client):
        client = await served.connect(MODERN, {"extensions": {TASKS: {}}})
        made = await client.call("plain", {"text": "a"})
        assert made["resultType"] == "task" and made["status"] == "input_required"
        found = await reached(client, made["taskId"], "input_required")
        assert found["inputRequests"] == {} and "inbox" in found["statusMessage"]
        (waiting,) = await served.inbox()
        await served.service.approve(waiting.id)
        assert (await reached(client, made["taskId"]))["result"]["content"][0]["text"] == "wrote a"

    run(places, body)


def test_a_tool_may_ask_before_its_call_becomes_a_task(places):
    async def body(served, client):
        served.waiting.required_task_seconds = 30.0  # The question comes first, however slow this machine is.
        found = await client.call("ask_first")
        assert found["resultType"] == "input_required" and "taskId" not in found
        served.waiting.required_task_seconds = 0.05
        answer = {"inputResponses": {"user_name": accepted(name="Alice")}, "requestState": found["requestState"]}
        made = await client.call("ask_first", **answer)
        assert made["resultType"] == "task" and not ENVELOPE & made.keys()
        found = await reached(client, made["taskId"])
        assert found["result"]["content"][0]["text"] == "Hello, Alice!"

    run(places, body)


def test_without_the_extension_nothing_becomes_a_task_and_its_methods_are_refused(places):
    async def body(served, client):
        made = await client.call("compute", {"seconds": 60})
        silent = await served.connect(MODERN, {})
        assert (await silent.call("compute", {"seconds": 0}))["resultType"] == "complete"
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(ProtocolError) as caught:
                await silent.request(method, {"taskId": made["taskId"], "inputResponses": {}})
            assert caught.value.code == -32021
            assert caught.value.data["requiredCapabilities"]["extensions"] == {TASKS: {}}
        with pytest.raises(ProtocolError) as caught:
            await silent.call("fail")
        assert caught.value.code == -32021
        older = await served.connect(LEGACY)
        assert (await older.call("fail"))["isError"] is True
        for method in ("tasks/result", "tasks/list"):
            with pytest.raises(ProtocolError) as caught:
                await client.request(method, {"taskId": made["taskId"]})
            assert caught.value.code == -32601

    run(places, body)


def test_a_task_of_another_client_is_unknown(places):
    async def body(served, client):
        made = await client.call("compute", {"seconds": 60})
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(ProtocolError) as caught:
                await client.request(method, {"taskId": "r_000000000000000000000000", "inputResponses": {}})
            assert caught.value.code == -32602
        served.server.tasks._caller_of = lambda _context: Principal("other", kind="agent")
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(ProtocolError) as caught:
                await client.request(method, {"taskId": made["taskId"], "inputResponses": {}})
            assert caught.value.code == -32602

    run(places, body)


def test_a_task_can_be_read_after_a_restart(places):
    async def first(_served, client):
        made = await client.call("compute", {"seconds": 0})
        await reached(client, made["taskId"])
        waiting = await client.call("compute", {"seconds": 60})
        return made["taskId"], waiting["taskId"]

    ended, stopped = run(places, first)

    async def body(_served, client):
        assert (await reached(client, ended))["result"]["content"][0]["text"] == "computed"
        assert (await reached(client, stopped))["status"] == "cancelled"

    run(places, body)


def test_a_header_that_names_another_task_is_refused():
    from haft.surfaces.mcp.dialogues.tasks import check_header

    class Request:
        def __init__(self, name):
            self.headers = {} if name is None else {"mcp-name": name}

    check_header(Request("r_1"), "r_1")
    check_header(None, "r_1")
    for name in ("r_2", None):
        with pytest.raises(Exception, match="mcp-name") as caught:
            check_header(Request(name), "r_1")
        assert caught.value.error.code == -32020


def test_a_task_of_this_client_in_another_workspace_is_unknown(places, tmp_path):
    async def first(_served, client):
        made = await client.call("compute", {"seconds": 0})
        await reached(client, made["taskId"])
        return made["taskId"]

    task = run(places, first)
    (tmp_path / "elsewhere").mkdir()

    async def body(_served, client):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(ProtocolError) as caught:
                await client.request(method, {"taskId": task, "inputResponses": {}})
            assert caught.value.code == -32602

    run({**places, "workspace": tmp_path / "elsewhere"}, body)
