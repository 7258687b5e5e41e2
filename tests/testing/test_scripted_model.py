"""The scripted model, asked by the real clients of OpenAI and Anthropic through pydantic-ai."""

import asyncio
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import exceptions
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from haft.testing.scripted_model import (
    ScriptedModel,
    attempts,
    broken_call,
    call,
    context_overflow,
    invalid_request,
    overloaded,
    rate_limited,
    say,
    server_error,
    unauthorized,
    unknown_model,
)

LONG = "one two three four five six seven eight nine ten"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}, "content": {"type": "string"}}}
TOOLS = ModelRequestParameters(
    function_tools=[ToolDefinition(name=name, parameters_json_schema=SCHEMA) for name in ("shell", "write_file")]
)


def openai_chat(model):
    from pydantic_ai.models.openai import OpenAIChatModel

    client, provider = openai_provider(model)
    return client, OpenAIChatModel("gpt-5.2", provider=provider)


def openai_responses(model):
    from pydantic_ai.models.openai import OpenAIResponsesModel

    client, provider = openai_provider(model)
    return client, OpenAIResponsesModel("gpt-5.2", provider=provider)


def openai_provider(model):
    from openai import AsyncOpenAI
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=model.openai_url, api_key="none", max_retries=0)
    return client, OpenAIProvider(openai_client=client)


def anthropic(model):
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=model.url, api_key="none", max_retries=0)
    return client, AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(anthropic_client=client))


CLIENTS = {"openai-chat": openai_chat, "openai-responses": openai_responses, "anthropic": anthropic}
every_client = pytest.mark.parametrize("dialect", CLIENTS)
streamed_or_not = pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def model():
    with ScriptedModel() as made:
        yield made


class Client:
    """A client with one conversation. `pieces` are the events of its last stream."""

    def __init__(self, model, dialect, *, streams=False, **settings):
        self.messages = []
        self.pieces = []
        self._connect = lambda: CLIENTS[dialect](model)
        self._streams = streams
        self._settings = ModelSettings(**settings)

    async def ask(self, prompt=None, *, results=()):
        parts = [UserPromptPart(prompt)] if prompt else []
        returned = [ToolReturnPart(one.tool_name, text, one.tool_call_id) for one, text in results]
        request = ModelRequest([*returned, *parts], instructions="You are careful.")
        asked = [*self.messages, request]
        given = {"model_settings": self._settings, "model_request_parameters": TOOLS}
        client, real = self._connect()
        async with client:
            response = await (
                self._stream(real, asked, given) if self._streams else model_request(real, asked, **given)
            )
        self.messages = [*asked, response]
        return response

    async def _stream(self, real, asked, given):
        self.pieces = []
        async with model_request_stream(real, asked, **given) as stream:
            async for event in stream:
                self.pieces.append(event)
            return stream.get()


def ask(model, dialect, prompt, *, streams=False):
    """What the client gets for a prompt."""
    return asyncio.run(Client(model, dialect, streams=streams).ask(prompt))


def deltas(client, kind):
    return [event for event in client.pieces if type(getattr(event, "delta", None)).__name__ == kind]


@every_client
@streamed_or_not
def test_a_script_goes_on_with_the_conversation(model, dialect, streams):
    prompt = model.task(
        (say("I look.") + call("shell", command="ls") + call("shell", command="pwd")).used(100, 20, cached=40),
        lambda request: say(f"{len(request.results)} results, {{{{result}}}} last").used(300, 7),
        say("what else?"),
    )

    async def talk():
        client = Client(model, dialect, streams=streams, temperature=0.2, max_tokens=4000)
        first = await client.ask(prompt)
        assert first.text == "I look."
        assert [(one.tool_name, one.args_as_dict()) for one in first.tool_calls] == [
            ("shell", {"command": "ls"}),
            ("shell", {"command": "pwd"}),
        ]
        assert first.finish_reason == "tool_call"
        if streams:
            assert len(deltas(client, "TextPartDelta")) > 1
            assert len(deltas(client, "ToolCallPartDelta")) > 3
        second = await client.ask(results=[*zip(first.tool_calls, ("a.txt", "/work"), strict=True)])
        assert (second.text, second.finish_reason) == ("2 results, /work last", "stop")
        third = await client.ask("go on")
        assert third.text == "what else?"
        return first.usage, second.usage

    used, later = asyncio.run(talk())
    assert (used.input_tokens, used.output_tokens, used.cache_read_tokens) == (100, 20, 40)
    assert (later.input_tokens, later.output_tokens) == (300, 7)
    first, second, third = model.of(prompt)
    assert (first.dialect, first.streams, first.step, second.step, third.step) == (dialect, streams, 0, 1, 2)
    assert (first.output_tokens, first.tools, first.system) == (4000, ["shell", "write_file"], "You are careful.")
    assert second.results == ["a.txt", "/work"] == model.results(prompt)
    assert third.said == [prompt, "go on"]
    assert second.headers["content-type"] == "application/json"
    assert second.answer.words == "2 results, /work last"
    assert first.at <= second.at


@every_client
def test_a_client_that_lost_its_answer_gets_the_same_step_again(model, dialect):
    prompt = model.task(say("first"), say("second"))
    assert [ask(model, dialect, prompt).text for _ in range(2)] == ["first", "first"]
    assert [request.attempt for request in model.of(prompt)] == [1, 2]


@every_client
@streamed_or_not
@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        (rate_limited(2), 429, exceptions.ModelRateLimitError),
        (server_error(), 500, exceptions.ModelServerError),
        (server_error(503), 503, exceptions.ModelUnavailableError),
        (overloaded(), None, exceptions.ModelOverloadedError),
        (unauthorized(), 401, exceptions.ModelAuthenticationError),
        (context_overflow(), 400, exceptions.ModelContextWindowExceededError),
        (invalid_request(), 400, exceptions.ModelRequestRejectedError),
        (unknown_model(), 404, exceptions.ModelNotFoundError),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_a_fault_is_the_error_that_the_provider_sends(model, dialect, streams, fault, status, error):
    prompt = model.task(attempts(fault, say("at last")))
    with pytest.raises(error) as caught:
        ask(model, dialect, prompt, streams=streams)
    assert caught.value.status_code == (status or {"anthropic": 529}.get(dialect, 503))
    assert caught.value.retry_after == (2 if status == 429 else None)
    assert ask(model, dialect, prompt, streams=streams).text == "at last"


def test_a_rate_limit_can_name_a_date():
    fault = rate_limited(datetime(2026, 11, 19, 8, 30, tzinfo=UTC))
    assert fault.headers == {"retry-after": "Thu, 19 Nov 2026 08:30:00 GMT"}
    assert not rate_limited().headers


@every_client
@streamed_or_not
@pytest.mark.parametrize("turn", [say(LONG), call("write_file", content=LONG)], ids=["words", "call"])
def test_a_connection_is_reset_in_the_middle(model, dialect, streams, turn):
    prompt = model.task(attempts(turn.breaking(), turn))
    client = Client(model, dialect, streams=streams)
    with pytest.raises(exceptions.ModelConnectionError):
        asyncio.run(client.ask(prompt))
    assert bool(client.pieces) == streams
    assert LONG in str(ask(model, dialect, prompt, streams=streams).parts)


@every_client
def test_a_stream_breaks_off_where_the_script_says(model, dialect):
    prompt = model.task(say(LONG).breaking(after=1))
    client = Client(model, dialect, streams=True)
    with pytest.raises(exceptions.ModelConnectionError):
        asyncio.run(client.ask(prompt))
    assert LONG[:12] in str(client.pieces) and LONG[12:24] not in str(client.pieces)
    client = Client(model, dialect, streams=True)
    with pytest.raises(exceptions.ModelConnectionError):
        asyncio.run(client.ask(model.task(say(LONG).breaking(after=99))))
    assert LONG[36:] in str(client.pieces), "after all pieces"


@every_client
@streamed_or_not
def test_an_error_comes_in_a_stream_that_has_begun(model, dialect, streams):
    prompt = model.task(say(LONG).breaking(after=2, error=overloaded()))
    client = Client(model, dialect, streams=streams)
    with pytest.raises(exceptions.ModelOverloadedError) as caught:
        asyncio.run(client.ask(prompt))
    assert caught.value.in_stream == streams == bool(client.pieces)


@every_client
@streamed_or_not
def test_an_answer_is_cut_off_by_the_limit_of_output_tokens(model, dialect, streams):
    cut = call("write_file", command="a", content=LONG).cut_off()
    prompt = model.task(lambda request: cut if request.output_tokens < 8000 else say("all of it"))

    async def talk(limit):
        return await Client(model, dialect, streams=streams, max_tokens=limit).ask(prompt)

    response = asyncio.run(talk(4000))
    assert response.finish_reason == "length"
    (one,) = response.tool_calls
    assert LONG not in str(one.args)
    if streams or dialect != "anthropic":
        with pytest.raises(ValueError, match="EOF|parsing|JSON"):
            one.args_as_dict(raise_if_invalid=True)
    else:
        assert one.args_as_dict() == {"command": "a"}, "a whole answer of Anthropic holds an object"
    assert asyncio.run(talk(8000)).text == "all of it"
    assert ask(model, dialect, model.task(say("half").cut_off()), streams=streams).finish_reason == "length"


@every_client
@streamed_or_not
def test_calls_can_be_malformed_or_of_no_offered_tool(model, dialect, streams):
    (one,) = ask(model, dialect, model.task(broken_call("shell", '{"command": "ls')), streams=streams).tool_calls
    assert one.args in ('{"command": "ls', {}) and (one.args != {} or (dialect == "anthropic" and not streams))
    (one,) = ask(model, dialect, model.task(call("!nothing", a=1)), streams=streams).tool_calls
    assert (one.tool_name, one.args_as_dict()) == ("nothing", {"a": 1})
    assert "TOOL NOT OFFERED: nothing" in ask(model, dialect, model.task(call("nothing"))).text


@every_client
@streamed_or_not
@pytest.mark.parametrize("after", [0, 2])
def test_an_answer_waits_for_an_event_and_notices_a_client_that_goes(model, dialect, streams, after):
    event = threading.Event()
    prompt = model.task(say(LONG).until(event, after=after))
    request = {}

    async def talk():
        client = Client(model, dialect, streams=streams)
        asked = asyncio.ensure_future(client.ask(prompt))
        request[1] = await asyncio.to_thread(model.wait_for, 1, prompt)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await asyncio.to_thread(request[1].gone.wait, 30)
        again = asyncio.ensure_future(client.ask(prompt))
        request[2] = await asyncio.to_thread(model.wait_for, 2, prompt)
        event.set()
        assert (await again).text == LONG

    asyncio.run(talk())
    assert request[1].finished.is_set() and request[2].finished.wait(30)
    assert not request[2].gone.is_set()
    assert [one.answer.words for one in model.of(prompt)] == [LONG, LONG]


def test_a_prompt_of_its_own_can_hold_the_word_of_a_script(model):
    model.task(say("counted"), word="count-the-lines")
    assert ask(model, "openai-chat", "Please count-the-lines of a.txt.").text == "counted"
    assert ask(model, "openai-chat", "Please count-the-lines-again.").text == "ok", "a word is whole"
    assert ask(model, "openai-chat", "Something else.").text == "ok"


def test_whoever_waits_for_a_request_that_does_not_come_is_told(model):
    with pytest.raises(TimeoutError, match="only 0 of 1 requests"):
        model.wait_for(1, model.task(say("never")), seconds=0.01)


def test_the_end_of_the_model_ends_what_waits_and_tells_of_a_step_that_failed():
    def fails(request):
        raise LookupError("the step is wrong")

    waiting = {}
    with pytest.raises(LookupError, match="the step is wrong"), ScriptedModel() as model:
        with pytest.raises(exceptions.ModelRequestRejectedError):
            ask(model, "openai-chat", model.task(fails))
        prompt = model.task(say("never").until(threading.Event()))

        def wait():
            with pytest.raises(exceptions.ModelConnectionError):
                ask(model, "openai-chat", prompt)

        waiting = threading.Thread(target=wait)
        waiting.start()
        request = model.wait_for(1, prompt)
    assert request.finished.wait(30)
    waiting.join(30)
    assert not waiting.is_alive()


def test_it_needs_no_pytest_and_no_service():
    words = "import sys, haft.testing.scripted_model; print([name for name in sys.modules if name in ('pytest', 'haft.service')])"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
