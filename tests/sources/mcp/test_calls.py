"""Calls of tools of MCP servers, in both eras of the protocol."""

import asyncio
import json

import pytest

import sampling
from haft.contracts import ApprovalAnswer

OLD, NEW = "2025-11-25", "2026-07-28"


def eras(test):
    """In `make test`, one of the two eras is drawn for each test."""
    both = [OLD, NEW]
    return pytest.mark.parametrize("era", sampling.some(both, 1, test.__name__) if sampling.IS_DAILY else both)(test)


@eras
def test_texts_are_the_output_structured_content_the_result_and_other_blocks_the_content(place, era):
    place.add(era=era)
    total, picture = place.call(("add", {"a": 1, "b": 2}), ("picture", {}))
    assert (total.status, total.output, total.result) == ("done", "3", {"sum": 3})
    assert picture.output == "see"
    assert [block["type"] for block in picture.content] == ["image", "resource_link"]
    assert picture.content[0] == {"type": "image", "data": "aGFmdA==", "mimeType": "image/png"}


@eras
def test_a_result_that_is_an_error_fails_and_keeps_its_text(place, era):
    place.add(era=era)
    (failed,) = place.call(("fail", {}))
    assert (failed.status, failed.error.code, failed.output) == ("error", "tool-failed", "it cannot: no luck")
    assert "no luck" in failed.error.message and "`s`" in failed.error.message


def test_a_result_that_does_not_fit_the_tools_own_output_schema_fails(place):
    place.add(mode="wrong-output")
    (failed,) = place.call(("add", {"a": 1}))
    assert failed.error.code == "tool-failed" and "not valid" in failed.error.message and "sum" in failed.error.message


def test_an_output_schema_that_is_no_schema_does_no_harm(place):
    place.add(mode="bad-output-schema")
    (total,) = place.call(("add", {"a": 1, "b": 1}))
    assert total.result == {"sum": 2}


@eras
def test_progress_of_the_server_is_progress_of_the_run(place, era):
    place.add(era=era)

    async def work(service):
        run = service.call("mcp__s__slow", {"text": "3"})
        events = [event async for event in run]
        return [event.facts for event in events if event.type == "progress"], await run

    events, outcome = place.run(work)
    assert outcome.output == "slept"
    assert ("step 2", 0.2) in [(each["message"], each["fraction"]) for each in events]


@eras
def test_a_cancelled_call_is_cancelled_at_the_server_which_goes_on(place, era):
    place.add(era=era)

    async def work(service):
        run = service.call("mcp__s__slow", {})
        async for event in run:
            if event.type == "progress" and event.facts["fraction"]:
                break
        run.cancel()
        ended = await run
        return (
            ended,
            json.loads((await service.call("mcp__s__pid", {})).output),
            await service.call("mcp__s__cancelled"),
        )

    ended, pid, cancelled = place.run(work)
    assert ended.status == "cancelled"
    assert pid["calls"] == 2, "the same process answers"
    assert len(json.loads(cancelled.output)) == 1


@eras
def test_a_server_asks_the_person_and_the_answer_goes_back(place, era):
    place.add(era=era)
    asked = []

    def approve(request):
        asked.append(request.question)
        return True if request.question is None else ApprovalAnswer(True, arguments={"name": "Ada"})

    (outcome,) = place.call(("ask", {}), approver=approve, answers_questions=True)
    given = json.loads(outcome.output)
    assert given["result"] == {"action": "accept", "content": {"name": "Ada"}}
    question = asked[-1]
    assert question.by == "the MCP server `s`" and question.message == "Who are you?"
    if era == NEW:
        assert given["state"] == "s1"


@eras
def test_a_person_who_declines_declines_at_the_server(place, era):
    place.add(era=era)
    (outcome,) = place.call(("ask", {}), approver=lambda request: request.question is None, answers_questions=True)
    assert json.loads(outcome.output)["result"]["action"] == "decline"


def test_a_page_to_visit_is_shown_and_the_call_goes_on_after_that(place):
    place.add()
    urls = []

    def approve(request):
        if request.question is not None:
            urls.append(request.question.url)
        return True

    (outcome,) = place.call(("page", {}), approver=approve, answers_questions=True)
    assert (urls, outcome.output) == (["https://login.example/x"], "thank you")


@eras
def test_sampling_and_roots_are_not_declared_but_questions_and_tasks_are(place, era):
    place.add(era=era)
    (outcome,) = place.call(("caps", {}))
    capabilities = json.loads(outcome.output)
    assert "sampling" not in capabilities and "roots" not in capabilities
    assert "elicitation" in capabilities
    assert ("io.modelcontextprotocol/tasks" in capabilities.get("extensions", {})) == (era == NEW)


@eras
def test_a_server_that_asks_for_a_model_is_refused(place, era):
    place.add(mode="asks-model", era=era)
    echo, total = place.call(("echo", {}), ("add", {"a": 1}))
    if era == OLD:
        assert json.loads(echo.output)["error"]["message"] == "Sampling not supported"
    else:
        assert echo.error.code == "tool-failed" and "an answer of a model" in echo.error.message
    assert total.result == {"sum": 1}


def test_a_server_that_asks_for_input_for_ever_is_ended(place):
    place.add(mode="asks-forever", era=NEW)
    (echo,) = place.call(("echo", {}))
    assert "20 times" in echo.error.message


@eras
def test_a_task_is_followed_to_its_result(place, era):
    place.add(era=era)

    async def work(service):
        run = service.call("mcp__s__task", {})
        events = [event async for event in run]
        return [event.facts["message"] for event in events if event.type == "progress"], await run

    def approve(request):
        return True if request.question is None else ApprovalAnswer(True, arguments={"name": "Ada"})

    messages, outcome = place.run(work, approver=approve, answers_questions=True)
    assert outcome.output == "the task is done"
    assert "poll 1" in messages


def test_resources_and_prompts_are_read_through_tools(place):
    place.add()

    async def work(service):
        return [
            await service.call("read_resource", {"server": "s", "uri": "memo://1"}),
            await service.call("read_resource", {"server": "s", "uri": "memo://2"}),
            await service.call("get_prompt", {"server": "s", "name": "greet", "arguments": {"who": "Ada"}}),
            await service.call("read_resource", {"server": "t", "uri": "memo://1"}),
        ]

    found, missing, prompt, unknown = place.run(work)
    assert found.result["contents"][0]["text"] == "remember\\u202e this"
    assert missing.error.code == "tool-failed" and "Resource not found" in missing.error.message
    assert prompt.result["messages"][0]["content"]["text"] == "Greet Ada."
    assert unknown.error.code == "invalid-arguments" and "`s`" in unknown.error.message


def test_what_servers_offer_besides_tools_is_listed_with_their_names(place):
    place.add()

    async def work(service):
        await service.call("mcp__s__pid", {})
        source = service._host.discovery.source("mcp")
        kinds = [await source.listed_by(kind) for kind in ("resources", "templates", "prompts")]
        ref = {"type": "ref/prompt", "name": "greet"}
        wanted = {"ref": ref, "argument": {"name": "who", "value": "A"}}
        return kinds, await source.servers["s"].complete(source.completion("s", wanted)[0].request)

    (resources, templates, prompts), completed = place.run(work)
    assert (resources[0]["server"], resources[0]["uri"]) == ("s", "memo://1")
    assert templates[0]["uriTemplate"] == "memo://{n}" and prompts[0]["name"] == "greet"
    assert completed["values"] == ["A1"]


def test_a_server_gets_its_own_variables_and_those_that_were_granted_by_name(place, monkeypatch):
    monkeypatch.setenv("GIVEN", "yes")
    monkeypatch.setenv("OTHER_TOKEN", "no")
    place.add(env={"OWN": "mine"}, grant={"env": ["GIVEN"]})
    (outcome,) = place.call(("env", {}))
    seen = json.loads(outcome.output)
    assert (seen["OWN"], seen["GIVEN"]) == ("mine", "yes") and "OTHER_TOKEN" not in seen


def test_calls_of_a_server_that_only_reads_run_at_the_same_time(place):
    place.add()

    async def work(service):
        await service.call("mcp__s__pid", {})
        slow = service.call("mcp__s__slow", {})
        async for event in slow:
            if event.type == "progress" and event.facts["fraction"]:
                break
        quick = await service.call("mcp__s__echo", {"text": "meanwhile"})
        is_over = slow.outcome is not None
        slow.cancel()
        await slow
        return quick, is_over

    quick, is_over = place.run(work)
    assert quick.output == "meanwhile" and not is_over


def test_a_deadline_of_the_server_or_of_a_tool_holds(place):
    place.add(timeout=30, timeouts={"slow": 0.5})

    async def work(service):
        await service.call("mcp__s__pid", {})
        specs = {each.spec.name: each.spec.timeout for each in service.tools()}
        return specs, await service.call("mcp__s__slow", {})

    specs, outcome = place.run(work)
    assert (specs["mcp__s__echo"], specs["mcp__s__slow"]) == (30, 0.5)
    assert outcome.error.code == "timed-out"


def test_annotations_count_only_if_the_server_is_believed(place):
    place.add("s")
    place.add("believed", trust_annotations=True)

    async def work(service):
        for name in ("s", "believed"):
            await service.call(f"mcp__{name}__pid", {})
        return {each.spec.name: each.spec.effects for each in service.tools()}

    effects = place.run(work)
    assert not effects["mcp__s__add"].readonly
    assert effects["mcp__believed__add"].readonly and effects["mcp__believed__add"].idempotent
    assert not effects["mcp__believed__echo"].readonly


def test_a_question_with_calls_of_two_callers_in_progress_is_refused(place):
    place.add()

    async def work(service):
        await service.call("mcp__s__pid", {})
        slow = service.call("mcp__s__slow", {}, thread="T-one")
        async for event in slow:
            if event.type == "progress" and event.facts["fraction"]:
                break
        asked = await service.call("mcp__s__ask", {}, thread="T-two")
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        return asked

    asked = place.run(work, answers_questions=True)
    assert "several callers" in json.loads(asked.output)["error"]["message"]


def test_five_calls_of_a_batch_reach_their_server_in_order_although_they_are_approved_in_another(place):
    place.add(mode="creates")
    answered = [asyncio.Event() for _ in range(6)]
    answered[5].set()

    async def last_first(request):
        if "text" in request.arguments:  # Otherwise the question is about the server.
            at = int(request.arguments["text"])
            await answered[at + 1].wait()
            answered[at].set()
        return True

    async def work(service):
        return await service.batch([("mcp__s__create", {"text": str(number)}) for number in range(5)])

    outcomes = place.run(work, approver=last_first)
    assert [outcome.output for outcome in outcomes] == [f"{number + 1}: {number}" for number in range(5)]
