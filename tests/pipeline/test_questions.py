"""A tool asks while it runs: who answers, what an answer may be, and what is on record afterwards."""

import asyncio
import textwrap

import pytest

from haft import ApprovalAnswer, Context, Question, ToolResult, ToolService, tool
from haft.contracts import BadUsage, InvalidArguments
from haft.pipeline.questions import MAX_AT_ONCE

INBOX = {"approval.expires_seconds": 60}
FORM = Question.form("Which branch?", {"branch": {"type": "string", "enum": ["main", "next"]}})


@tool(readonly=True)
async def ask_one(context: Context):
    (answer,) = await context.ask(FORM)
    return answer.to_json()


@tool(readonly=True)
def ask_in_thread(context: Context):
    (answer,) = context.ask(FORM)
    return answer.to_json()


def serve(tmp_path, body, **options):
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    options.setdefault("tools", [ask_one, ask_in_thread])

    async def main():
        async with ToolService.open(workspace, home=tmp_path / "home", **options) as service:
            return await asyncio.wait_for(body(service), 60)

    return asyncio.run(main())


def answering(answer, seen=None):
    async def approver(request):
        if seen is not None:
            seen.append(request)
        return answer

    return {"approver": approver, "answers_questions": True}


async def waiting_in(service):
    for _ in range(3000):
        if found := service.inbox():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("nothing waits")


@pytest.mark.parametrize("name", ["ask_one", "ask_in_thread"])
def test_the_approver_answers_the_form(tmp_path, name):
    seen = []

    async def body(service):
        outcome = await service.call(name)
        assert outcome.result == {"action": "accept", "content": {"branch": "next"}}

    serve(tmp_path, body, **answering(ApprovalAnswer(approved=True, arguments={"branch": "next"}), seen))
    assert seen[0].question == FORM
    assert seen[0].together[1] == 1


def test_an_approver_that_knows_no_questions_is_not_asked(tmp_path):
    async def body(service):
        run = service.call("ask_one")
        (waiting,) = await waiting_in(service)
        assert waiting.shown["question"]["params"]["message"] == "Which branch?"
        await service.approve(waiting.id, arguments={"branch": "main"})
        assert (await run).result == {"action": "accept", "content": {"branch": "main"}}

    async def approver(_request):
        raise AssertionError("it was asked")

    serve(tmp_path, body, approver=approver, settings=INBOX)


def test_a_rejection_in_the_inbox_declines(tmp_path):
    async def body(service):
        run = service.call("ask_one")
        (waiting,) = await waiting_in(service)
        await service.reject(waiting.id)
        assert (await run).result == {"action": "decline", "content": None}

    serve(tmp_path, body, settings=INBOX)


def test_values_that_do_not_fit_the_form_are_refused_in_the_inbox(tmp_path):
    async def body(service):
        run = service.call("ask_one")
        (waiting,) = await waiting_in(service)
        with pytest.raises(InvalidArguments, match="branch"):
            await service.approve(waiting.id, arguments={"branch": "other"})
        with pytest.raises(BadUsage, match="takes no grants"):
            await service.approve(waiting.id, arguments={"branch": "main"}, grants={"network": True})
        await service.approve(waiting.id, arguments={"branch": "main"})
        assert (await run).result["action"] == "accept"

    serve(tmp_path, body, settings=INBOX)


def test_values_of_an_approver_that_do_not_fit_count_as_no_answer(tmp_path):
    async def body(service):
        outcome = await service.call("ask_one")
        assert outcome.result == {"action": "cancel", "content": None}
        assert any("does not fit the form" in note for note in outcome.notes)

    serve(tmp_path, body, **answering(ApprovalAnswer(approved=True, arguments={"branch": 3})))


def test_where_nobody_can_answer_the_question_is_cancelled(tmp_path):
    async def body(service):
        outcome = await service.call("ask_one")
        assert outcome.result == {"action": "cancel", "content": None}

    serve(tmp_path, body, settings={"approval.expires_seconds": 0})


def test_questions_asked_at_once_have_the_same_group(tmp_path):
    seen = []

    @tool(readonly=True)
    async def both(context: Context):
        return [answer.action for answer in await context.ask(FORM, FORM)]

    async def body(service):
        assert (await service.call("both")).result == ["accept", "accept"]

    options = answering(ApprovalAnswer(approved=True, arguments={"branch": "main"}), seen)
    serve(tmp_path, body, tools=[both], **options)
    assert {request.together for request in seen} == {(seen[0].together[0], 2)}


def test_a_call_asks_a_bounded_number_of_questions(tmp_path):
    @tool(readonly=True)
    async def many(context: Context):
        await context.ask(*[FORM] * (MAX_AT_ONCE + 1))

    async def body(service):
        outcome = await service.call("many")
        assert outcome.status == "error"
        assert "questions" in outcome.error.message

    serve(tmp_path, body, tools=[many], **answering(False))


def test_only_what_the_program_can_answer_is_asked(tmp_path):
    sampling = Question("sampling/createMessage", {"messages": [], "maxTokens": 10})

    @tool(readonly=True)
    async def sample(context: Context):
        return [context.can_ask("sampling/createMessage"), (await context.ask(sampling))[0].action]

    async def body(service):
        assert (await service.call("sample")).result == expected

    answer = answering(ApprovalAnswer(approved=True, arguments={"model": "m"}))
    expected = [False, "cancel"]
    serve(tmp_path, body, tools=[sample], answerable=lambda _run: ["elicitation/create"], **answer)
    expected = [True, "accept"]
    serve(tmp_path, body, tools=[sample], answerable=lambda _run: ["sampling/createMessage"], **answer)


PLUGIN = textwrap.dedent("""
    from haft import Context, Question, ToolResult, tool

    FORM = Question.form("Which branch?", {"branch": {"type": "string"}})

    @tool
    async def asks(context: Context):
        (answer,) = await context.ask(FORM)
        return [context.can_ask(), answer.content]

    @tool
    def pictures():
        return ToolResult("a picture", {"n": 1}, [{"type": "image", "data": "aGk=", "mimeType": "image/png"}])

    @tool
    def fails():
        return ToolResult("no luck", is_error=True)
""")


def with_plugin(tmp_path, body, **options):
    file = tmp_path / "tools.py"
    file.write_text(PLUGIN)
    rules = [{"tool": "*", "action": "allow"}]
    settings = {"plugins": [f"python:{file}"], "permissions": rules}
    serve(tmp_path, body, tools=(), settings=settings, **options)


def test_a_function_in_a_worker_process_asks_too(tmp_path):
    async def body(service):
        outcome = await service.call("asks")
        assert outcome.result == [True, {"branch": "main"}], outcome

    with_plugin(tmp_path, body, **answering(ApprovalAnswer(approved=True, arguments={"branch": "main"})))


def test_content_blocks_come_from_the_host_and_from_a_worker(tmp_path):
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

    @tool(readonly=True)
    def picture():
        return ToolResult("a picture", {"n": 1}, [image])

    async def in_host(service):
        outcome = await service.call("picture")
        assert (outcome.output, outcome.result, outcome.content) == ("a picture", {"n": 1}, (image,))
        assert outcome.to_json()["content"] == [image]

    async def in_worker(service):
        outcome = await service.call("pictures")
        assert (outcome.output, outcome.result, outcome.content) == ("a picture", {"n": 1}, (image,)), outcome
        outcome = await service.call("fails")
        assert (outcome.status, outcome.error.message) == ("error", "no luck")

    serve(tmp_path, in_host, tools=[picture])
    with_plugin(tmp_path, in_worker)


@tool
def writes():
    return "done"


def test_an_answer_through_a_client_holds_once_and_names_the_client(tmp_path):
    asked = []

    async def body(service):
        outcome = await service.call("writes")
        assert (outcome.status, outcome.decision.by) == ("done", "client Ada's agent")
        await service.call("writes")
        assert len(asked) == 2

    answer = ApprovalAnswer(approved=True, scope="always", grants={"network": True}, via="Ada's agent")
    serve(tmp_path, body, tools=[writes], **answering(answer, asked))


def test_a_dangerous_call_is_not_approved_through_a_client_unless_the_client_is_trusted(tmp_path):
    async def refused(service):
        run = service.call("shell", {"command": "rm -rf build"})
        (waiting,) = await waiting_in(service)
        assert run.outcome is None
        await service.approve(waiting.id)
        assert (await run).decision.by == "person"

    async def passed(service):
        assert (await service.call("shell", {"command": "rm -rf build"})).decision.by == "client agent"

    answer = answering(ApprovalAnswer(approved=True, via="agent"))
    serve(tmp_path, refused, settings=INBOX, **answer)
    serve(tmp_path, passed, settings={**INBOX, "approval.trusted_clients": ["agent"]}, **answer)
