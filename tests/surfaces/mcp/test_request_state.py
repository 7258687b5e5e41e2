"""The state that a client carries back is hostile: it is good for this client, this call, this workspace, and once."""

import asyncio
import contextlib
import json
import time

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server

from haft.contracts import Principal
from haft.service import Tokens
from haft.surfaces.mcp.callers import Callers
from haft.surfaces.mcp.dialogues import request_state
from haft.surfaces.mcp.dialogues.request_state import protect_request_states
from haft.surfaces.mcp.over_http.app import PATH, application
from haft.surfaces.mcp.over_http.guard import HttpGuard

from .asgi import ask

VERSION = "2026-07-28"
QUESTION = {
    "q": types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="?", requested_schema={"type": "object", "properties": {}})
    )
}
REFUSED = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}


@contextlib.asynccontextmanager
async def serving(home, *, workspace="/w", seconds=600.0):
    """A server whose only tool asks once, and then says which state it was given. So do its prompt and its resource."""

    def asked(params, name):
        return params.request_state is None and types.InputRequiredResult(
            input_requests=QUESTION, request_state=f"secret of {name}"
        )

    async def call(_context, params):
        text = types.TextContent(text=params.request_state or "")
        return asked(params, params.name) or types.CallToolResult(content=[text])

    async def prompt(_context, params):
        text = types.TextContent(text=params.request_state or "")
        message = types.PromptMessage(role="user", content=text)
        return asked(params, params.name) or types.GetPromptResult(messages=[message])

    async def read(_context, params):
        text = types.TextResourceContents(uri=params.uri, text=params.request_state or "")
        return asked(params, params.uri) or types.ReadResourceResult(contents=[text])

    server = Server("haft", on_call_tool=call, on_get_prompt=prompt, on_read_resource=read)
    protect_request_states(server, Callers("ana"), home, workspace=workspace, seconds=seconds)
    app = application(server)
    async with server.session_manager.run():
        yield HttpGuard(app, Tokens(home))


async def called(guard, token, *, state=None, name="t", arguments=None):
    """The answer to `tools/call`: a result, or an error."""
    params = {"name": name, "arguments": arguments or {"a": 1}}
    return await requested(guard, token, "tools/call", name, params, state)


async def requested(guard, token, method, name, params, state=None):
    """The answer to a request: a result, or an error."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    params = {**params, "_meta": meta}
    if state is not None:
        params |= {"requestState": state, "inputResponses": {"q": {"action": "accept", "content": {}}}}
    headers = [
        ("Host", "localhost:1"),
        ("Authorization", f"Bearer {token}"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", method),
        ("Mcp-Name", name),
    ]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    message = (await ask(guard, "POST", PATH, headers, json.dumps(body).encode())).json
    return message.get("result") or message["error"]


def text_of(result):
    return result["content"][0]["text"]


@pytest.fixture
def home(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def token(home):
    return Tokens(home).add("codex", Principal("ana"))[1]


@pytest.fixture
def other(home):
    return Tokens(home).add("gemini", Principal("ana"))[1]


def altered(state):
    """The state with one character changed, at several places."""
    for place in (3, len(state) // 2, len(state) - 2):
        yield state[:place] + ("A" if state[place] != "A" else "B") + state[place + 1 :]
    yield state[:-4]
    yield state + "AAAA"
    yield "secret of t"
    yield json.dumps(["0" * 32, "secret of t"])
    yield ""


def test_a_state_is_good_once_and_only_for_its_client_and_its_call(home, token, other):
    async def go():
        async with serving(home) as guard:
            state = (await called(guard, token))["requestState"]
            assert "secret" not in state
            for hostile in altered(state):
                assert await called(guard, token, state=hostile) == REFUSED, hostile
            assert await called(guard, other, state=state) == REFUSED, "another client's"
            assert await called(guard, token, state=state, name="u") == REFUSED, "another tool's"
            assert await called(guard, token, state=state, arguments={"a": 2}) == REFUSED, "another call's"
            assert text_of(await called(guard, token, state=state)) == "secret of t", "none of these used it up"
            assert await called(guard, token, state=state) == REFUSED, "a replay"

    asyncio.run(go())


@pytest.mark.parametrize(
    ("method", "name", "params", "others"),
    [
        (
            "prompts/get",
            "p",
            {"name": "p", "arguments": {"a": "1"}},
            [("q", {"name": "q", "arguments": {"a": "1"}}), ("p", {"name": "p", "arguments": {"a": "2"}})],
        ),
        ("resources/read", "x://a", {"uri": "x://a"}, [("x://b", {"uri": "x://b"})]),
    ],
)
def test_states_of_prompts_and_resources_are_as_good_as_those_of_calls(
    home, token, other, method, name, params, others
):
    async def go():
        async with serving(home) as guard:

            async def ask(state=None, *, to=(name, params), who=token, by=method):
                return await requested(guard, who, by, *to, state)

            state = (await ask())["requestState"]
            assert "secret" not in state
            for hostile in altered(state):
                assert await ask(hostile) == REFUSED, hostile
            assert await ask(state, who=other) == REFUSED, "another client's"
            for each in others:
                assert await ask(state, to=each) == REFUSED, each
            assert await called(guard, token, state=state) == REFUSED, "another method's"
            assert f"secret of {name}" in json.dumps(await ask(state)), "none of these used it up"
            assert await ask(state) == REFUSED, "a replay"

    asyncio.run(go())


def test_a_state_is_good_after_a_restart_and_a_used_one_is_not(home, token):
    async def go():
        async with serving(home) as guard:
            used, kept = [(await called(guard, token))["requestState"] for _ in range(2)]
            await called(guard, token, state=used)
        async with serving(home) as guard:
            assert await called(guard, token, state=used) == REFUSED
            assert text_of(await called(guard, token, state=kept)) == "secret of t"
            assert await called(guard, token, state=kept) == REFUSED

    asyncio.run(go())


def test_of_many_equal_answers_at_once_one_counts(home, token):
    async def go():
        async with serving(home) as guard, serving(home) as second:
            state = (await called(guard, token))["requestState"]
            answers = await asyncio.gather(*(called(each, token, state=state) for each in (guard, second) * 5))
            assert sum(answer == REFUSED for answer in answers) == 9

    asyncio.run(go())


def test_a_state_of_another_workspace_or_of_a_revoked_token_is_refused(home, token):
    async def go():
        async with serving(home) as guard, serving(home, workspace="/elsewhere") as elsewhere:
            state = (await called(guard, token))["requestState"]
            assert await called(elsewhere, token, state=state) == REFUSED
            Tokens(home).revoke("codex", Principal("ana"))
            again = Tokens(home).add("codex", Principal("ana"))[1]
            assert await called(guard, again, state=state) == REFUSED

    asyncio.run(go())


def test_a_state_expires(home, token, monkeypatch):
    async def go():
        async with serving(home, seconds=60) as guard:
            state = (await called(guard, token))["requestState"]
            now = time.time()
            monkeypatch.setattr("mcp.server.request_state.time.time", lambda: now + 61)
            assert await called(guard, token, state=state) == REFUSED

    asyncio.run(go())


def test_a_state_sealed_with_another_key_is_refused(home, token):
    async def go():
        async with serving(home) as guard:
            state = (await called(guard, token))["requestState"]
        (home / "request-states/key").unlink()
        async with serving(home) as guard:
            assert await called(guard, token, state=state) == REFUSED

    asyncio.run(go())


def test_no_middleware_answers_with_a_state_that_is_not_sealed(home, token):
    async def short_way(_context, _call_next):
        return {"resultType": "input_required", "inputRequests": {}, "requestState": "plain"}

    async def never(_context, _params):
        raise AssertionError

    async def go():
        server = Server("haft", on_call_tool=never)
        server.middleware.append(short_way)
        protect_request_states(server, Callers("ana"), home, workspace="/w", seconds=600)
        app = application(server)
        async with server.session_manager.run():
            answer = await called(HttpGuard(app, Tokens(home)), token)
        assert "plain" not in json.dumps(answer) and answer["requestState"].startswith("v1.")

    asyncio.run(go())


def test_a_refusal_says_no_more_than_the_packages_own(home, token):
    assert request_state._refused("tools/call", "used before").error.model_dump(exclude_none=True) == REFUSED
