"""Calls that wait: returning before the client gives up, joining, and going on after a restart."""

import asyncio

import pytest
from tests.surfaces.mcp.raw_client import LEGACY, MODERN, ProtocolError, approve, serving

from haft import Context, Principal, Question, tool
from haft.surfaces.mcp import calls
from haft.surfaces.mcp.callers import Callers
from haft.surfaces.mcp.dialogues.request_state import protect_request_states

NAME = Question.form("What is your name?", {"name": {"type": "string"}}, key="user_name")
CALLS = []


@tool
def write(text: str) -> str:
    """Write something."""
    CALLS.append(text)
    return f"wrote {text}"


@tool(readonly=True)
async def slow(seconds: float) -> str:
    """Take long."""
    await asyncio.sleep(seconds)
    return "slept"


@tool(readonly=True)
async def greet(context: Context):
    """Greet a person."""
    (answer,) = await context.ask(NAME)
    return answer.to_json()


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def run(places, body, **options):
    async def main():
        async with serving(places, tools=[write, slow, greet], **options) as served:
            return await asyncio.wait_for(body(served), 90)

    return asyncio.run(main())


def returning_at_once(served):
    served.waiting.limit = lambda _client: 0.0


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize(
    ("meta", "claim"), [({"haft/claim": "it is\ntime"}, "it is time"), ({"haft/claim": [1]}, None)]
)
def test_a_client_says_in_meta_why_it_makes_a_call(places, era, meta, claim):
    async def body(served):
        returning_at_once(served)
        client = await served.connect(era, {})
        await client.call("write", {"text": "a"}, meta=meta)
        (waiting,) = await served.inbox()
        assert waiting.shown["claim"] == claim
        assert claim is None or claim not in waiting.shown["reason"]

    run(places, body)


def is_waiting(result):
    return result["structuredContent"]["status"] == "blocked-on-user"


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_a_call_returns_before_its_client_gives_up_and_wait_goes_on(places, era):
    async def body(served):
        returning_at_once(served)
        client = await served.connect(era, {})
        early = await client.call("write", {"text": "a"})
        assert early["isError"] is False and is_waiting(early)
        name = early["structuredContent"]["run"]
        for said in (str(early["content"]), str(early["structuredContent"])):
            assert name in said and "waiting for approval" in said and "`wait`" in said
        assert is_waiting(await client.call("wait", {"run": name}))
        served.waiting.limit = lambda _client: None
        _, answer = client.send("tools/call", {"name": "wait", "arguments": {"run": name}})
        (waiting,) = await served.inbox()
        await served.service.approve(waiting.id)
        assert (await answer)["result"]["content"][0]["text"] == "wrote a"

    run(places, body)


def test_a_question_is_asked_through_wait_as_well(places):
    async def body(served):
        returning_at_once(served)
        silent = await served.connect(MODERN, {})
        name = (await silent.call("write", {"text": "a"}))["structuredContent"]["run"]
        client = await served.connect(MODERN)
        found = await client.call("wait", {"run": name})
        assert found["resultType"] == "input_required"
        served.waiting.limit = lambda _client: None
        ended = await client.call("wait", {"run": name}, inputResponses=approve(), requestState=found["requestState"])
        assert ended["content"][0]["text"] == "wrote a"

    run(places, body)


def test_the_same_call_joins_the_run_that_was_said_to_wait(places):
    async def body(served):
        returning_at_once(served)
        client = await served.connect(MODERN, {})
        first = await client.call("write", {"text": "a"})
        second = await client.call("write", {"text": "a"})
        other = await client.call("write", {"text": "b"})
        assert first["structuredContent"]["run"] == second["structuredContent"]["run"]
        assert other["structuredContent"]["run"] != first["structuredContent"]["run"]
        served.waiting.limit = lambda _client: None
        _, answer = client.send("tools/call", {"name": "write", "arguments": {"text": "a"}})
        for waiting in await served.inbox(2):
            await served.service.approve(waiting.id)
        assert (await answer)["result"]["content"][0]["text"] == "wrote a"
        assert (await client.call("write", {"text": "b"}))["content"][0]["text"] == "wrote b"  # It has ended meanwhile.
        assert sorted(CALLS) == ["a", "b"]
        returning_at_once(served)
        assert is_waiting(await client.call("write", {"text": "a"}))  # Its outcome was given: this is a new call.

    run(places, body)


def test_another_client_never_joins(places):
    async def body(served):
        returning_at_once(served)
        client = await served.connect(MODERN, {})
        first = await client.call("write", {"text": "a"})
        served.server.calls.caller_of = lambda _context: Principal("other", thread="T-test", kind="agent")
        second = await client.call("write", {"text": "a"})
        assert first["structuredContent"]["run"] != second["structuredContent"]["run"]

    run(places, body)


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}])
def test_equal_calls_in_flight_at_once_stay_separate(places, capabilities):
    async def body(served):
        client = await served.connect(MODERN, capabilities)
        call = {"name": "write", "arguments": {"text": "a"}}
        answers = [client.send("tools/call", call)[1] for _ in range(2)]
        waiting = await served.inbox(2)
        assert len({each.run for each in waiting}) == 2
        found = [(await answer)["result"] for answer in answers] if capabilities else []
        for each in waiting:
            await served.service.approve(each.id)
        while any(served.dialogue.open(each.run) for each in waiting):
            await asyncio.sleep(0.01)
        if capabilities:
            for each in found:
                ended = await client.call("write", {"text": "a"}, inputResponses={}, requestState=each["requestState"])
                assert ended["content"][0]["text"] == "wrote a"
        else:
            assert [(await answer)["result"]["content"][0]["text"] for answer in answers] == ["wrote a"] * 2
        assert CALLS == ["a", "a"]

    run(places, body)


def test_a_tool_that_works_is_cut_off_only_for_clients_whose_limit_is_known(places):
    async def body(served):
        returning_at_once(served)
        unknown = await served.connect(MODERN, {}, name="somebody")
        assert (await unknown.call("slow", {"seconds": 0.2}))["content"][0]["text"] == "slept"
        known = await served.connect(MODERN, {}, name="codex-mcp-client")
        early = await known.call("slow", {"seconds": 30})
        assert early["structuredContent"]["status"] in ("queued", "in-progress")
        await known.call("cancel", {"run": early["structuredContent"]["run"]})

    run(places, body)


def test_a_client_gets_progress_while_its_call_waits(places):
    async def body(served):
        served.waiting.progress_seconds = 0.02
        client = await served.connect(MODERN, {})
        _, answer = client.send("tools/call", {"name": "write", "arguments": {"text": "a"}})
        while len([one for one in client.notifications if "waiting for approval" in str(one)]) < 3:
            await asyncio.sleep(0.01)
        values = [one["params"]["progress"] for one in client.notifications]
        assert values == sorted(set(values))
        (waiting,) = await served.inbox()
        await served.service.reject(waiting.id)
        await answer

    run(places, body)


def test_cancelling_a_waiting_call_takes_it_out_of_the_inbox(places):
    async def body(served):
        client = await served.connect(LEGACY)
        client.on_request = lambda _request: None
        number, _ = client.send("tools/call", {"name": "write", "arguments": {"text": "a"}})
        await served.inbox()
        await client.cancel(number)
        while await served.service.approvals.waiting():
            await asyncio.sleep(0.01)
        (record,) = await served.service.runs.find(tool="write")
        assert record.status in ("cancelled", "cancellation-requested")

    run(places, body)


def test_a_tool_that_waits_for_an_answer_says_so(places):
    async def body(served):
        returning_at_once(served)
        client = await served.connect(MODERN, {})
        early = await client.call("greet")
        assert "a person's answer" in str(early["content"])
        (waiting,) = await served.inbox()
        await served.service.approve(waiting.id, arguments={"name": "Alice"})
        served.waiting.limit = lambda _client: None
        ended = await client.call("wait", {"run": early["structuredContent"]["run"]})
        assert ended["structuredContent"]["result"]["content"] == {"name": "Alice"}

    run(places, body, settings={"approval.expires_seconds": 60})


# After a restart.


def sealed(server, service):
    callers = Callers("person")
    protect_request_states(server, callers, service.home, workspace=service.workspace, seconds=600)


async def _ask(served, text="a"):
    client = await served.connect()
    found = await client.call("write", {"text": text})
    assert found["resultType"] == "input_required"
    return found["requestState"]


def test_an_approval_counts_after_a_restart_for_the_same_call_once(places):
    state = run(places, _ask, protect=sealed)

    async def body(served):
        client = await served.connect()
        ended = await client.call("write", {"text": "a"}, inputResponses=approve(), requestState=state)
        assert ended["content"][0]["text"] == "wrote a"
        newest, oldest = await served.service.runs.find(tool="write")
        assert newest.outcome["decision"]["by"] == "client agent"
        assert oldest.status == "cancelled"
        with pytest.raises(ProtocolError):
            await client.call("write", {"text": "a"}, inputResponses=approve(), requestState=state)
        assert (await client.call("write", {"text": "a"}))["resultType"] == "input_required"
        assert CALLS == ["a"]

    run(places, body, protect=sealed)


def test_an_approval_does_not_count_for_another_call(places):
    state = run(places, _ask, protect=sealed)

    async def body(served):
        client = await served.connect()
        with pytest.raises(ProtocolError):
            await client.call("write", {"text": "b"}, inputResponses=approve(), requestState=state)
        assert CALLS == []

    run(places, body, protect=sealed)


def test_a_run_that_ended_before_the_restart_is_not_repeated(places):
    async def first(served):
        state = await _ask(served)
        (waiting,) = await served.inbox()
        await served.service.approve(waiting.id)
        while not CALLS or served.service.runs.live(waiting.run) is not None:
            await asyncio.sleep(0.01)
        return state

    state = run(places, first, protect=sealed)

    async def body(served):
        client = await served.connect()
        ended = await client.call("write", {"text": "a"}, inputResponses=approve(), requestState=state)
        assert ended["content"][0]["text"] == "wrote a"
        assert CALLS == ["a"]

    run(places, body, protect=sealed)


def test_a_tool_that_had_begun_before_the_restart_is_not_repeated(places):
    async def first(served):
        client = await served.connect()
        return (await client.call("greet"))["requestState"]

    state = run(places, first, protect=sealed)

    async def body(served):
        client = await served.connect()
        answer = {"user_name": {"action": "accept", "content": {"name": "Alice"}}}
        ended = await client.call("greet", inputResponses=answer, requestState=state)
        assert ended["isError"] is True and ended["structuredContent"]["status"] == "cancelled"
        assert len(await served.service.runs.find(tool="greet")) == 1

    run(places, body, protect=sealed)


def test_an_approval_does_not_count_if_the_question_is_another_one_now(places):
    state = run(places, _ask, protect=sealed)

    @tool(name="write")
    def other(text: str) -> str:
        """Write something else."""
        return "other"

    async def body(served):
        served.service.remove("write")
        served.service.add(other)
        client = await served.connect()
        found = await client.call("write", {"text": "a"}, inputResponses=approve(), requestState=state)
        assert found.get("resultType") == "input_required"
        assert CALLS == []

    run(places, body, protect=sealed)


def test_a_client_cannot_bury_the_inbox(places, monkeypatch):
    monkeypatch.setattr(calls, "MOST_UNFINISHED", 3)

    async def main():
        async with serving(places, tools=[write, slow]) as served:
            client = await served.connect(MODERN)
            for number in range(3):
                assert (await client.call("write", {"text": f"{number}"}))["resultType"] == "input_required"
            refused = await client.call("write", {"text": "one more"})
            assert refused["isError"] is True and "have not ended" in refused["content"][0]["text"]
            assert len(await served.inbox(3)) == 3
            first = (await client.call("runs"))["structuredContent"]["runs"][0]["run"]
            await client.call("cancel", {"run": first})
            await client.call("wait", {"run": first})
            assert (await client.call("slow", {"seconds": 0}))["isError"] is False

    asyncio.run(main())
