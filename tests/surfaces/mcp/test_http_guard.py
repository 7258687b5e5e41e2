"""Every route refuses foreign pages and callers without a token. The routes are read from the application itself."""

import asyncio

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server
from starlette.routing import Route

from haft.contracts import Principal
from haft.service import Tokens
from haft.surfaces.mcp.callers import SCOPE_KEY
from haft.surfaces.mcp.over_http import guard as http_guard
from haft.surfaces.mcp.over_http.app import PATH, application
from haft.surfaces.mcp.over_http.guard import HttpGuard

from .asgi import ask

PERSON = Principal("ana")
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "TRACE")
HOST = ("Host", "127.0.0.1:8000")


async def _list_tools(_context, _params):
    return types.ListToolsResult(tools=[])


def routes():
    """Each path of the application with each method, and paths that it does not have."""
    app = application(Server("haft", on_list_tools=_list_tools))
    assert all(isinstance(route, Route) for route in app.routes), "a new kind of route: walk it here as well"
    paths = [route.path for route in app.routes]
    assert paths == [PATH]
    return [
        (method, path)
        for path in [*paths, f"{PATH}/", "/", "/.well-known/oauth-protected-resource"]
        for method in METHODS
    ]


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path / "state")


class Inner:
    """An application that must not be reached, or notes what reached it."""

    def __init__(self):
        self.scopes = []

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"fine"})


def statuses(guard, headers):
    async def all_of_them():
        return {(await ask(guard, method, path, headers)).status for method, path in routes()}

    return asyncio.run(all_of_them())


FOREIGN = {
    "no Host": [],
    "another name": [("Host", "evil.example:8000")],
    "a name that only begins like ours": [("Host", "localhost.evil.example:8000")],
    "a name that only ends like ours": [("Host", "evil-localhost:8000")],
    "a user before the name": [("Host", "localhost@evil.example")],
    "another address": [("Host", "192.168.0.1:8000")],
    "the unspecified address": [("Host", "0.0.0.0:8000")],
    "an address written as a number": [("Host", "2130706433:8000")],
    "two Hosts": [HOST, ("Host", "evil.example")],
    "two equal Hosts": [HOST, HOST],
    "an empty Host": [("Host", "")],
    "a dot at the end": [("Host", "localhost.:8000")],
    "a foreign Origin": [HOST, ("Origin", "https://evil.example")],
    "an Origin of nobody": [HOST, ("Origin", "null")],
    "an empty Origin": [HOST, ("Origin", "")],
    "a page on another port": [HOST, ("Origin", "http://127.0.0.1:3000")],
    "a page on the default port": [HOST, ("Origin", "http://127.0.0.1")],
    "a page under another loopback name": [HOST, ("Origin", "http://localhost:8000")],
    "a file": [HOST, ("Origin", "file://")],
    "an extension": [HOST, ("Origin", "chrome-extension://127.0.0.1:8000")],
    "an Origin with a path": [HOST, ("Origin", "http://127.0.0.1:8000/mcp")],
    "two Origins": [HOST, ("Origin", "http://127.0.0.1:8000"), ("Origin", "https://evil.example")],
    "a foreign site": [HOST, ("Sec-Fetch-Site", "cross-site")],
    "a page on another port that sends no Origin": [HOST, ("Sec-Fetch-Site", "same-site")],
    "a site in words of tomorrow": [HOST, ("Sec-Fetch-Site", "other")],
    "two sites": [HOST, ("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")],
}


@pytest.mark.parametrize("why", FOREIGN)
def test_a_foreign_request_is_refused_on_every_route_even_with_a_token(tokens, why):
    _, token = tokens.add("codex", PERSON)
    inner = Inner()
    assert statuses(HttpGuard(inner, tokens), [*FOREIGN[why], ("Authorization", f"Bearer {token}")]) == {403}
    assert inner.scopes == []


LOCKED_OUT = {
    "no token": [],
    "an empty token": [("Authorization", "Bearer ")],
    "a wrong token": [("Authorization", "Bearer haft_" + "0" * 16 + "_" + "A" * 43)],
    "a revoked token": [("Authorization", "Bearer REVOKED")],
    "another scheme": [("Authorization", "Basic TOKEN")],
    "the token alone": [("Authorization", "TOKEN")],
    "the token twice": [("Authorization", "Bearer TOKEN"), ("Authorization", "Bearer TOKEN")],
    "the token in a cookie": [("Cookie", "token=TOKEN; Authorization=Bearer TOKEN")],
    "the token in another header": [("X-Api-Key", "TOKEN"), ("Proxy-Authorization", "Bearer TOKEN")],
    "bytes": [("Authorization", "Bearer \xff\xfe")],
}


@pytest.mark.parametrize("why", LOCKED_OUT)
def test_without_a_valid_token_every_route_is_closed(tokens, why):
    _, revoked = tokens.add("old", PERSON)
    tokens.revoke("old", PERSON)
    _, token = tokens.add("codex", PERSON)
    headers = [(name, value.replace("TOKEN", token).replace("REVOKED", revoked)) for name, value in LOCKED_OUT[why]]
    inner = Inner()
    assert statuses(HttpGuard(inner, tokens), [HOST, *headers]) == {401}
    assert inner.scopes == []


def test_a_websocket_is_refused(tokens):
    _, token = tokens.add("codex", PERSON)
    said, inner = [], Inner()

    async def send(message):
        said.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    headers = [(b"host", b"127.0.0.1:8000"), (b"authorization", f"Bearer {token}".encode())]
    asyncio.run(HttpGuard(inner, tokens)({"type": "websocket", "path": PATH, "headers": headers}, receive, send))
    assert [message["type"] for message in said] == ["websocket.close"] and inner.scopes == []


OWN = {
    "a program": [HOST],
    "under another loopback name": [("Host", "localhost:9999")],
    "over IPv6": [("Host", "[::1]:8000")],
    "in capital letters": [("Host", "LOCALHOST:8000")],
    "a page of this server": [HOST, ("Origin", "http://127.0.0.1:8000"), ("Sec-Fetch-Site", "same-origin")],
    "a page of this server behind a forwarded port": [("Host", "localhost:9"), ("Origin", "http://localhost:9")],
    "the default port": [("Host", "localhost"), ("Origin", "http://localhost:80")],
    "an address that a person typed": [HOST, ("Sec-Fetch-Site", "none")],
}


@pytest.mark.parametrize("how", OWN)
def test_a_client_with_a_token_gets_in_and_its_token_goes_no_further(tokens, how):
    made, token = tokens.add("codex", PERSON)
    inner = Inner()
    headers = [*OWN[how], ("authorization", f"bearer {token}"), ("Cookie", "a=b"), ("X-Else", "kept")]
    assert statuses(HttpGuard(inner, tokens), headers) == {200}
    for scope in inner.scopes:
        assert scope[SCOPE_KEY] == made
        assert token not in repr(scope) and b"cookie" not in dict(scope["headers"])
        assert dict(scope["headers"])[b"x-else"] == b"kept"


def test_no_answer_opens_the_server_to_pages_of_others(tokens):
    tokens.add("codex", PERSON)

    async def headers_of_preflight():
        guard = HttpGuard(application(Server("haft", on_list_tools=_list_tools)), tokens)
        asked = [HOST, ("Origin", "http://127.0.0.1:8000"), ("Access-Control-Request-Method", "POST")]
        return (await ask(guard, "OPTIONS", PATH, asked)).headers

    assert not any(name.startswith("access-control") for name in asyncio.run(headers_of_preflight()))


def test_a_server_that_is_reached_from_elsewhere_answers_under_the_names_that_were_said(tokens):
    _, token = tokens.add("codex", PERSON)
    guard = HttpGuard(Inner(), tokens, names=["Haft.example"])
    right = ("Authorization", f"Bearer {token}")
    assert statuses(guard, [("Host", "haft.example"), ("Origin", "https://haft.example"), right]) == {200}
    assert statuses(guard, [("Host", "127.0.0.1:8000"), right]) == {403}


def test_a_revoked_client_loses_its_open_requests_and_sessions_and_nobody_else_does(tokens):
    _, token = tokens.add("codex", PERSON)
    _, other = tokens.add("gemini", PERSON)
    ended = []

    async def endless(scope, receive, send):
        """Opens a session, or streams without an end."""
        if scope["method"] == "DELETE":
            ended.append(dict(scope["headers"])[b"mcp-session-id"])
            return
        headers = [(b"mcp-session-id", scope[SCOPE_KEY].name.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] == "GET":
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            await asyncio.Event().wait()
        await send({"type": "http.response.body", "body": b"end"})

    async def go():
        guard = HttpGuard(endless, tokens)
        watching = asyncio.ensure_future(guard.watch())
        open_requests = [
            asyncio.ensure_future(ask(guard, "GET", PATH, [HOST, ("Authorization", f"Bearer {each}")]))
            for each in (token, other)
        ]
        await ask(guard, "POST", PATH, [HOST, ("Authorization", f"Bearer {token}")])
        tokens.revoke("codex", PERSON)
        assert (await open_requests[0]).body == b"one", "the stream ended well"
        while not ended:
            await asyncio.sleep(0)
        assert ended == [b"codex"] and not open_requests[1].done()
        assert (await ask(guard, "POST", PATH, [HOST, ("Authorization", f"Bearer {token}")])).status == 401
        watching.cancel()
        guard.end_all()
        assert (await open_requests[1]).body == b"one"

    asyncio.run(go())


def test_a_request_that_ends_before_its_answer_begins_says_why(tokens):
    _, token = tokens.add("codex", PERSON)

    async def silent(_scope, _receive, _send):
        await asyncio.Event().wait()

    async def go(end):
        guard = HttpGuard(silent, tokens)
        asked = asyncio.ensure_future(ask(guard, "POST", PATH, [HOST, ("Authorization", f"Bearer {token}")]))
        while not guard._open:
            await asyncio.sleep(0)
        await end(guard)
        return (await asked).status

    async def revoke(guard):
        await guard.end(tokens.find(token))

    async def end_all(guard):
        guard.end_all()

    assert asyncio.run(go(revoke)) == 401
    assert asyncio.run(go(end_all)) == 503


def test_a_client_has_a_limited_number_of_open_requests_and_leaves_room_for_others(tokens, monkeypatch):
    monkeypatch.setattr(http_guard, "MOST_OPEN", 2)
    (_, mine), (_, theirs) = tokens.add("one", PERSON), tokens.add("other", PERSON)

    async def main():
        go = asyncio.Event()

        async def slow(scope, receive, send):
            await go.wait()
            await Inner()(scope, receive, send)

        guard = HttpGuard(slow, tokens)

        def post(token):
            return asyncio.ensure_future(ask(guard, "POST", PATH, [HOST, ("Authorization", f"Bearer {token}")]))

        first = [post(mine), post(mine)]
        await asyncio.sleep(0)
        third, other = post(mine), post(theirs)
        assert (await third).status == 429
        go.set()
        assert [(await each).status for each in (*first, other)] == [200] * 3

    asyncio.run(main())


def test_a_client_cannot_make_the_guard_forget_the_session_of_another(tokens):
    (_, mine), (_, theirs) = tokens.add("owner", PERSON), tokens.add("thief", PERSON)

    async def app(scope, receive, send):
        found = scope["method"] == "POST"
        headers = [(b"mcp-session-id", b"s1")] if found else []
        await send({"type": "http.response.start", "status": 200 if found else 404, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        guard = HttpGuard(app, tokens)
        await ask(guard, "POST", PATH, [HOST, ("Authorization", f"Bearer {mine}")])
        await ask(guard, "DELETE", PATH, [HOST, ("Authorization", f"Bearer {theirs}"), ("mcp-session-id", "s1")])
        assert [*guard._sessions] == ["s1"]
        await ask(guard, "DELETE", PATH, [HOST, ("Authorization", f"Bearer {mine}"), ("mcp-session-id", "s1")])
        assert [*guard._sessions] == []

    asyncio.run(main())
