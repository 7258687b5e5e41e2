"""Calls of tools of remote servers, through the whole service."""

import asyncio
import contextlib
import json
import sys
import threading
from pathlib import Path

import pytest

from haft.sources.mcp.remote.logins import Login, Logins
from haft.values import replace

sys.path.insert(0, str(Path(__file__).parent))
from remote_servers import Answers, Issuer, real_server


class Forgetful(Answers):
    """A server of 2025 with sessions, which it forgets when a test says so."""

    def __init__(self, refusal):
        super().__init__(self._answer)
        self._refusal = refusal
        self.session = 1
        self.calls = []

    def _answer(self, request):
        message = json.loads(request.body or b"{}")
        method, ident = message.get("method"), message.get("id")
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            self._result(request, ident, {**result, "serverInfo": {"name": "forgetful", "version": "1"}})
        elif request.headers.get("mcp-session-id") == f"session-{self.session}":
            if method == "tools/list":
                self._result(request, ident, {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]})
            elif method == "tools/call":
                self.calls.append(message)
                self._result(request, ident, {"content": [{"type": "text", "text": str(len(self.calls))}]})
            else:
                request.reply(202 if request.command == "POST" else 405)
        elif method == "server/discover":
            request.reply(404)
        else:
            request.reply(*self._refusal)

    def _result(self, request, ident, result):
        body = json.dumps({"jsonrpc": "2.0", "id": ident, "result": result})
        request.reply(200, body, mcp_session_id=f"session-{self.session}")


@pytest.mark.parametrize(
    "refusal",
    [
        (404,),
        (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session not found"}}'),
        (400, b"Bad Request: No valid session ID provided", "text/plain"),
    ],
    ids=["404", "400", "400 as text"],
)
def test_a_server_that_forgot_the_session_is_connected_again_and_called_once(place, refusal):
    with Forgetful(refusal) as server:
        place.add_table("s", {"url": f"{server.url}/mcp"})

        async def work(service):
            first = await service.call("mcp__s__count", {})
            server.session += 1
            return first, await service.call("mcp__s__count", {})

        first, second = place.run(work)
        assert (first.output, second.output) == ("1", "2")
        assert len(server.calls) == 2


class Unlucky(Forgetful):
    """Its tool may do something twice, and its answer to a call is what a test wants."""

    def __init__(self, answer, **tool):
        super().__init__((404,))
        self._answer_call = answer
        self._tool = tool

    def _result(self, request, ident, result):
        if "tools" in result:
            result["tools"][0].update(self._tool)
        if "content" in result:
            self._answer_call(request, ident)
        else:
            super()._result(request, ident, result)


def refusing(body, content_type="application/json"):
    """Answers a call with HTTP 400. `ID` in the body is the id of the call."""

    def answer(request, ident):
        request.reply(400, body.replace("ID", json.dumps(ident)), content_type)

    return answer


WORDS = '"error":{"code":-32000,"message":"payment session of the user expired"}'


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusing('{"jsonrpc":"2.0","id":ID,' + WORDS + "}"), "payment session of the user expired"),
        (refusing('{"jsonrpc":"2.0","id":"ID",' + WORDS + "}"), "payment session of the user expired"),
        (refusing('[{"jsonrpc":"2.0","id":ID,' + WORDS + "}]"), "returned an error response"),
        (refusing("payment session of the user expired", "text/plain"), "payment session of the user expired"),
    ],
    ids=["its id", "its id as a text", "a batch", "a text"],
)
def test_an_error_of_the_server_that_speaks_of_another_session_is_no_reason_to_call_again(place, answer, words):
    with Unlucky(answer) as server:
        place.add_table("s", {"url": f"{server.url}/mcp"})
        (outcome,) = place.call(("count", {}))
    assert len(server.calls) == 1
    assert outcome.error.code == "tool-failed"
    assert words in outcome.error.message
    assert "ended the session" not in outcome.error.message


def hang_up(request, _ident):
    request.connection.close()


def fail(request, _ident):
    request.reply(502, "the server behind me is gone", "text/plain")


def end_the_stream(request, _ident):
    request.reply(200, b": no answer\n\n", "text/event-stream")


@pytest.mark.parametrize("answer", [hang_up, fail, end_the_stream])
def test_a_call_that_may_have_reached_the_server_is_not_repeated_and_says_so(place, answer):
    """Not even an idempotent call of a server that the person believes: it may still work on the first one."""
    with Unlucky(answer, annotations={"idempotentHint": True}) as server:
        place.add_table("s", {"url": f"{server.url}/mcp", "trust_annotations": True})
        (outcome,) = place.call(("count", {}))
    assert len(server.calls) == 1
    assert outcome.error.code == "tool-failed"
    assert "the call may have had effects, so it was not repeated" in outcome.error.hint


def test_a_call_that_did_not_reach_the_server_says_nothing_of_effects(place):
    with Forgetful((404,)) as server:
        place.add_table("s", {"url": f"{server.url}/mcp"})

        async def work(service):
            await service.call("mcp__s__count", {})
            server.__exit__()
            return await service.call("mcp__s__count", {})

        outcome = place.run(work)
    assert "cannot be reached" in outcome.error.message
    assert "effects" not in outcome.error.hint


def test_a_task_whose_session_is_lost_before_its_result_is_not_begun_again(place):
    def begin(request, ident):
        now = "2026-01-01T00:00:00Z"
        task = {"taskId": "t", "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": 1000}
        Forgetful._result(server, request, ident, {"task": {**task, "pollInterval": 50}})
        server.session += 1

    with Unlucky(begin, execution={"taskSupport": "required"}) as server:
        place.add_table("s", {"url": f"{server.url}/mcp"})
        (outcome,) = place.call(("count", {}))
    assert len(server.calls) == 1
    assert "the MCP server `s` ended the session before it answered" in outcome.error.message
    assert "the call may have had effects, so it was not repeated" in outcome.error.hint


def test_a_server_that_never_keeps_a_session_fails_clearly(place):
    with Forgetful((404,)) as server:
        place.add_table("s", {"url": f"{server.url}/mcp"})

        async def work(service):
            await service.call("mcp__s__count", {})
            server._refusal = (404,)
            server.session += 1
            server._result = lambda request, ident, result: Forgetful._result(_Later(server), request, ident, result)
            return await service.call("mcp__s__count", {})

        outcome = place.run(work)
        assert outcome.status == "error"
        assert "the MCP server `s` ended the session" in outcome.error.message


class _Later:
    """Names a session that is already forgotten."""

    def __init__(self, server):
        self.session = server.session - 1


def test_the_older_transport_is_a_type_of_its_own(place):
    with real_server("sse") as url:
        place.add_table("s", {"type": "sse", "url": url})
        (outcome,) = place.call(("add", {"a": 2, "b": 3}))
    assert outcome.output == "5"
    assert outcome.result == {"result": 5}


def test_a_server_that_wants_a_login_is_listed_with_the_command(place):
    with real_server(token="never") as url:
        place.add_table("s", {"url": url})
        (outcome,) = place.call(("add", {"a": 2, "b": 3}))
    assert outcome.status == "error"
    assert "the MCP server `s` requires a login; `haft providers login s`" in outcome.error.message


def test_a_server_that_wants_a_login_only_for_its_tools_is_listed_with_the_command(place):
    with Forgetful((401,)) as server:
        place.add_table("s", {"url": f"{server.url}/mcp"})
        server._result = lambda request, ident, result: Forgetful._result(_Later(server), request, ident, result)
        (outcome,) = place.call(("count", {}))
    assert "the MCP server `s` requires a login; `haft providers login s`" in outcome.error.message


def test_a_token_is_masked_in_the_answer_of_a_tool(place):
    """A server that repeats the token does not bring it to the model, not even if haft got the token in this call."""

    def answer(request):
        message = json.loads(request.body or b"{}")
        if message.get("method") == "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
            result |= {"serverInfo": {"name": "echo", "version": "1"}, "ttlMs": 0, "cacheScope": "private"}
        elif message.get("method") == "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}], "resultType": "complete"}
            result |= {"ttlMs": 0, "cacheScope": "private"}
        else:
            text = f"you sent {request.headers['authorization']}"
            result = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
        request.reply(200, json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}))

    with Answers(answer) as server, Issuer() as issuer:
        url = f"{server.url}/mcp"
        place.add_table("s", {"url": url})
        issuer.refresh_tokens.add("refresh-token-0")
        login = Login(issuer.url, "a-secret-token", f"{issuer.url}/token", {"client_id": "c"}, "refresh-token-0")
        logins = Logins(str(place.home), "s", url)
        logins.keep(login)
        outcome = place.call(("echo", {}))[0]
        assert [request.headers["authorization"] for request in server.requests] == ["Bearer a-secret-token"] * 3
        logins.keep(replace(login, expires_at=1.0))
        renewed = place.call(("echo", {}))[0]
        assert server.requests[-1].headers["authorization"] == "Bearer access-token-1"
    for each in (outcome, renewed):
        assert each.status == "done"
        assert each.output == "you sent Bearer [secret removed by haft]"


def test_the_token_of_a_remote_server_is_in_the_environment_of_no_other_server(place):
    """The environment is printed backwards, because haft removes tokens from all output."""
    place.add(mode="runs-code")
    with real_server(token="a-secret-token") as url:
        place.add_table("remote", {"url": url})
        login = Login("https://login.example", "a-secret-token", "https://login.example/token", {"client_id": "c"})
        Logins(str(place.home), "remote", url).keep(login)
        code = "import os; print(repr(sorted(os.environ.items()))[::-1])"

        async def work(service):
            return await service.call("mcp__remote__add", {"a": 2, "b": 3}), await service.call(
                "mcp__s__echo", {"text": code}
            )

        total, printed = place.run(work)
    assert total.output == "5", "haft has the token"
    assert "'ERA'"[::-1] in printed.output
    assert "a-secret-token"[::-1] not in printed.output


class Flood(Forgetful):
    """Its tool answers with a stream: of events without end, of one event without end, or of nothing."""

    def __init__(self, kind):
        super().__init__((404,))
        self._kind = kind
        self.is_hung_up = threading.Event()

    def _result(self, request, ident, result):
        if "content" not in result or len(self.calls) > 1:
            super()._result(request, ident, result)
            return
        request.send_response(200)
        request.send_header("content-type", "text/event-stream")
        request.end_headers()
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}}
        event = b"event: message\ndata: " + json.dumps(note).encode() + b"\n\n"
        with contextlib.suppress(OSError):
            request.wfile.write(b"event: message\ndata: " if self._kind == "one event" else b": begins\n\n")
            while self._kind != "nothing":
                request.wfile.write(b"x" * 1_000_000 if self._kind == "one event" else event * 100)
            request.connection.recv(1)
        self.is_hung_up.set()


@pytest.mark.parametrize("kind", ["events", "one event", "nothing"])
def test_an_answer_without_end_ends_with_the_deadline_or_the_limit_and_others_go_on(place, monkeypatch, kind):
    # On a fast machine, the limit for floods would end the events before the deadline does.
    monkeypatch.setattr("haft.sources.mcp.remote.addresses.FLOOD_EVENTS", 10**9)
    monkeypatch.setattr("haft.sources.mcp.remote.addresses.FLOOD_BYTES", 10**12)
    with Flood(kind) as server:
        place.add_table("s", {"url": f"{server.url}/mcp"})
        place.text("[limits]\nmax_seconds = 2\n")
        first, second = place.call(("count", {}), ("count", {}))
    assert first.status == "error"
    if kind == "one event":
        assert "20000000 byte limit" in first.error.message
    else:
        assert first.error.code == "timed-out"
    assert second.output == "2"


def test_events_of_a_call_that_was_cancelled_are_not_read_any_more(place):
    with Flood("events") as server:
        place.add_table("s", {"url": f"{server.url}/mcp", "timeout": 1})

        async def work(service):
            outcome = await service.call("mcp__s__count", {})
            return outcome, await asyncio.to_thread(server.is_hung_up.wait, 20)

        outcome, is_hung_up = place.run(work)
    assert outcome.error.code == "timed-out"
    assert is_hung_up


def test_a_server_that_floods_haft_with_events_is_not_heard_any_more(place, monkeypatch):
    monkeypatch.setattr("haft.sources.mcp.remote.addresses.FLOOD_EVENTS", 1_000)
    with Flood("events") as server:
        place.add_table("s", {"url": f"{server.url}/mcp", "timeout": 20})
        first, second = place.call(("count", {}), ("count", {}))
    assert first.error.code == "tool-failed"
    assert second.output == "2"
