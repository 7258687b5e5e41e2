import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client import Client

from haft.contracts import BadConfig, BadUsage, ToolFailed
from haft.sources.mcp.remote.http import open_http
from haft.sources.mcp.remote.login import log_in
from haft.sources.mcp.remote.login_callback import LoginCallback
from haft.sources.mcp.remote.logins import Logins, login_secrets
from haft.values import replace

sys.path.insert(0, str(Path(__file__).parent))
from remote_servers import Answers, Issuer, browse, provider_at, real_server


@pytest.fixture
def issuer():
    with Issuer() as issuer:
        yield issuer


@pytest.fixture
def server(issuer):
    with real_server(token=lambda: issuer.good, issuer=issuer.url) as url:
        yield url


async def _browsed(page):
    """The wait for the browser goes on while the browser works."""
    task = asyncio.ensure_future(browse(page))
    _browsed.tasks.add(task)
    task.add_done_callback(_browsed.tasks.discard)


_browsed.tasks = set()


def logged_in(provider, home, show=_browsed):
    return asyncio.run(log_in(provider, str(home), show))


def added(provider, home):
    """What the server's tool answers; the error for a person if it does not."""

    async def call():
        transport = open_http(provider, str(home))
        try:
            async with Client(transport, read_timeout_seconds=20) as client:
                return (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text
        except BaseException as error:
            return transport.explained(error)

    return asyncio.run(call())


def test_a_login_is_used_by_later_calls(server, issuer, tmp_path):
    provider = provider_at(server)
    assert added(provider, tmp_path).hint == "`haft providers login remote`"
    result = logged_in(provider, tmp_path)
    assert (result.needed, result.issuer, result.scope) == (True, issuer.url, "tools")
    assert added(provider, tmp_path) == "5"


def test_a_login_at_a_server_of_the_older_transport(issuer, tmp_path):
    with real_server("sse", token=lambda: issuer.good, issuer=issuer.url) as url:
        provider = provider_at(url, transport="sse")
        assert added(provider, tmp_path).hint == "`haft providers login remote`"
        assert logged_in(provider, tmp_path).needed
        assert added(provider, tmp_path) == "5"


def test_tokens_are_stored_for_their_owner_only_and_are_masked(server, issuer, tmp_path):
    os.umask(0o022)
    logged_in(provider_at(server), tmp_path)
    path = Path(Logins(str(tmp_path), "remote", server).path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [*path.parent.iterdir()] == [path]
    secrets = login_secrets(str(tmp_path))
    assert secrets.values == {"access-token-1", "refresh-token-1", "registered-secret-1"}
    assert "access-token-1" not in repr(Logins(str(tmp_path), "remote", server).current)


def test_a_login_belongs_to_one_address(server, issuer, tmp_path):
    """The same name at another address gets no token."""
    logged_in(provider_at(server), tmp_path)
    with Answers(lambda request: request.reply(401)) as other:
        assert added(provider_at(f"{other.url}/mcp"), tmp_path).hint == "`haft providers login remote`"
        assert all("authorization" not in request.headers for request in other.requests)


def test_a_redirect_gets_no_token(server, issuer, tmp_path):
    with (
        Answers(lambda request: request.reply(200, b"{}")) as thief,
        Answers(lambda request: request.reply(307, location=thief.url)) as server,
    ):
        provider = provider_at(server.url)
        logins = Logins(str(tmp_path), "remote", server.url)
        logins.keep(_login(issuer))
        assert "another server" in added(provider, tmp_path).message
        assert server.requests[0].headers["authorization"] == "Bearer access-token-0"
        assert thief.requests == []


def _login(issuer, **fields):
    from haft.sources.mcp.remote.logins import Login

    issuer.good.add("access-token-0")
    issuer.refresh_tokens.add("refresh-token-0")
    given = {"access_token": "access-token-0", "refresh_token": "refresh-token-0", **fields}
    client = {
        "client_id": "c",
        "client_secret": "registered-secret-0",
        "token_endpoint_auth_method": "client_secret_post",
    }
    return Login(issuer.url, token_endpoint=f"{issuer.url}/token", client=client, **given)


def test_an_expired_token_is_renewed_where_it_was_issued(server, issuer, tmp_path):
    logins = Logins(str(tmp_path), "remote", server)
    logins.keep(_login(issuer, expires_at=1.0, resource=server))
    issuer.good.clear()
    assert added(provider_at(server), tmp_path) == "5"
    assert [grant["grant_type"] for grant in issuer.grants] == ["refresh_token"]
    assert issuer.grants[0] | {"resource": server, "client_secret": "registered-secret-0"} == issuer.grants[0]
    assert logins.current.refresh_token == "refresh-token-1"


def test_a_token_that_is_refused_is_renewed_once(server, issuer, tmp_path):
    Logins(str(tmp_path), "remote", server).keep(_login(issuer))
    issuer.good.clear()
    assert added(provider_at(server), tmp_path) == "5"
    assert len(issuer.grants) == 1


def test_a_token_that_another_process_renewed_is_not_renewed_again(server, issuer, tmp_path):
    logins = Logins(str(tmp_path), "remote", server)
    logins.keep(_login(issuer, expires_at=1.0))

    async def call_twice():
        async def one():
            async with Client(open_http(provider_at(server), str(tmp_path)), mode="2026-07-28") as client:
                return (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text

        return await asyncio.gather(one(), one(), one())

    assert asyncio.run(call_twice()) == ["5"] * 3
    assert len(issuer.grants) == 1


def test_a_login_that_cannot_be_renewed_is_forgotten(server, issuer, tmp_path):
    logins = Logins(str(tmp_path), "remote", server)
    logins.keep(_login(issuer, expires_at=1.0))
    issuer.good.clear()
    issuer.refresh_tokens.clear()
    assert added(provider_at(server), tmp_path).hint == "`haft providers login remote`"
    assert logins.current is None
    added(provider_at(server), tmp_path)
    assert len(issuer.grants) == 1


def test_a_damaged_file_of_tokens_asks_for_a_login(server, tmp_path):
    path = Path(Logins(str(tmp_path), "remote", server).path)
    path.parent.mkdir()
    for damaged in ("", "[]", '{"issuer": "x", "issuers": {"x": {"access_token": 1}}}', '{"issuers": 3}'):
        path.write_text(damaged)
        assert added(provider_at(server), tmp_path).hint == "`haft providers login remote`"


def test_a_server_that_wants_further_rights_gets_them_at_the_next_login(issuer, tmp_path):
    challenge = 'Bearer error="insufficient_scope", scope="files:write"'
    with Answers(lambda request: request.reply(403, www_authenticate=challenge)) as server:
        provider = provider_at(server.url)
        logins = Logins(str(tmp_path), "remote", server.url)
        logins.keep(_login(issuer, scope="files:read"))
        error = added(provider, tmp_path)
    assert "requires further rights for this: files:write" in error.message
    assert "haft providers login remote" in error.hint
    assert logins.wanted_scope == "files:read files:write"


def test_rights_that_were_wanted_are_asked_for(server, issuer, tmp_path):
    logins = Logins(str(tmp_path), "remote", server)
    logins.want("files:write")
    logged_in(provider_at(server), tmp_path)
    assert issuer.authorizations[0]["scope"] == "tools files:write"
    assert logins.wanted_scope is None


def test_a_server_without_a_login_needs_none(tmp_path):
    with real_server() as url:
        assert not logged_in(provider_at(url), tmp_path).needed


def test_a_login_that_is_refused_says_so_and_asks_once(server, issuer, tmp_path):
    issuer.refuses = True
    with pytest.raises(ToolFailed, match="the login was refused: access_denied"):
        logged_in(provider_at(server), tmp_path)
    assert len(issuer.authorizations) == 1


def test_a_configured_client_is_used_without_registration(server, issuer, tmp_path):
    oauth = {"client_id": "mine", "client_secret": "configured-secret", "scope": "few"}
    logged_in(provider_at(server, oauth=oauth), tmp_path)
    assert not any(request.path == "/register" for request in issuer.requests)
    assert issuer.authorizations[0]["client_id"] == "mine"
    assert issuer.authorizations[0]["scope"] == "few"
    token = next(request for request in issuer.requests if request.path == "/token")
    assert token.headers["authorization"].startswith("Basic ")


def test_the_secret_of_a_configured_client_goes_to_its_issuer_alone(server, issuer, tmp_path):
    """The server says who issues tokens, and a hostile server would name a thief."""
    oauth = {"client_id": "mine", "client_secret": "configured-secret"}
    with pytest.raises(ToolFailed, match="the client in the configuration is for `https"):
        logged_in(provider_at(server, oauth={**oauth, "issuer": "https://login.example"}), tmp_path)
    logged_in(provider_at(server, oauth={**oauth, "issuer": issuer.url}), tmp_path)
    logins = Logins(str(tmp_path), "remote", server)
    logins.keep(replace(logins.current, issuer="https://login.example"))
    for _ in range(2):
        with pytest.raises(ToolFailed, match="the client in the configuration is for `https"):
            logged_in(provider_at(server, oauth=oauth), tmp_path)
        logins.drop_tokens(logins.current or _login(issuer))
    assert len(issuer.grants) == 1


def test_a_program_with_rights_of_its_own_logs_in_without_a_person(server, issuer, tmp_path):
    async def nobody(page):
        pytest.fail("a page was shown")

    oauth = {"grant": "client_credentials", "client_id": "mine", "client_secret": "configured-secret"}
    provider = provider_at(server, oauth=oauth)
    issuer.gives_refresh_tokens = False
    logged_in(provider, tmp_path, nobody)
    assert added(provider, tmp_path) == "5"
    issuer.good.clear()
    assert added(provider, tmp_path) == "5"
    assert [grant["grant_type"] for grant in issuer.grants] == ["client_credentials"] * 2
    assert [grant["scope"] for grant in issuer.grants] == ["tools"] * 2
    assert issuer.authorizations == []


@pytest.mark.parametrize("oauth", [{"grant": "password"}, {"grant": "client_credentials", "client_id": "x"}])
def test_a_grant_that_cannot_work_is_reported(oauth, tmp_path):
    with pytest.raises(BadConfig, match="grant"):
        logged_in(provider_at("https://example.org/mcp", oauth=oauth), tmp_path)


def test_a_configured_secret_and_tokens_stay_out_of_messages(server, issuer, tmp_path):
    provider = provider_at(server)
    logged_in(provider, tmp_path)
    echo = b"bad token access-token-1, use another"
    with Answers(lambda request: request.reply(500, echo, "text/plain")) as loud:
        Logins(str(tmp_path), "remote", loud.url).keep(Logins(str(tmp_path), "remote", server).current)
        message = added(provider_at(loud.url), tmp_path).message
    assert "access-token-1" not in message
    assert "use another" in message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"transport": "stdio", "url": None, "command": "x"}, "runs on this machine"),
        ({"headers": {"authorization": "Basic x"}}, "`Authorization` header"),
        ({"url": "http://example.org/mcp"}, "not encrypted"),
        ({"problem": "no such type"}, "no such type"),
    ],
)
def test_a_login_that_cannot_be_is_refused(fields, words, tmp_path):
    with pytest.raises(BadUsage, match=words):
        logged_in(provider_at(**{"url": "https://example.org/mcp", **fields}), tmp_path)


def test_a_login_page_without_encryption_is_not_shown(tmp_path):
    shown = []

    async def show(page):
        shown.append(page)

    with Issuer() as issuer:
        issuer._metadata = lambda: {
            **Issuer._metadata(issuer),
            "authorization_endpoint": "http://login.example.org/authorize",
        }
        with real_server(token="never", issuer=issuer.url) as url, pytest.raises(ToolFailed, match="not encrypted"):
            logged_in(provider_at(url), tmp_path, show)
    assert shown == []


class TestCallback:
    def test_the_path_is_another_one_each_time(self):
        async def paths():
            async with LoginCallback("x") as one, LoginCallback("x") as two:
                return urlsplit(one.uri), urlsplit(two.uri)

        one, two = asyncio.run(paths())
        assert one.hostname == two.hostname == "127.0.0.1"
        assert one.path != two.path
        assert len(one.path) > 40

    @pytest.mark.parametrize(
        ("change", "headers"),
        [
            (lambda url: url.replace("/callback/", "/callback/x"), {}),
            (lambda url: url.replace("state=right", "state=wrong"), {}),
            (lambda url: url.replace("code=", "codes="), {}),
            (lambda url: url, {"Host": "evil.example"}),
        ],
        ids=["path", "state", "code", "host"],
    )
    def test_a_wrong_answer_does_not_end_the_wait(self, change, headers):
        async def answers():
            async with LoginCallback("x") as callback, httpx2.AsyncClient(trust_env=False) as browser:
                callback.expect("right")
                good = f"{callback.uri}?code=abc&state=right&iss=me"
                wrong = await browser.get(change(good), headers=headers)
                right = await browser.get(good)
                again = await browser.get(good)
                return wrong, right, again, await callback.result(5)

        wrong, right, again, result = asyncio.run(answers())
        assert (wrong.status_code, right.status_code, again.status_code) == (404, 200, 404)
        assert (result.code, result.state, result.iss) == ("abc", "right", "me")
        assert "abc" not in right.text

    def test_nothing_but_a_request_is_ignored(self):
        async def knock():
            async with LoginCallback("x") as callback:
                place = urlsplit(callback.uri)
                for noise in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 100_000):
                    _reader, writer = await asyncio.open_connection(place.hostname, place.port)
                    writer.write(noise)
                    writer.close()
                callback.expect("s")
                return callback.take(f"{callback.uri}?code=1&state=s")

        assert asyncio.run(knock())

    def test_an_address_can_be_pasted(self, server, issuer, tmp_path):
        addresses = asyncio.Queue()

        async def show(page):
            async with httpx2.AsyncClient(trust_env=False) as browser:
                answer = await browser.get(page.address)
            await addresses.put("something else\n")
            await addresses.put(answer.headers["location"] + "\n")

        async def pasted():
            while True:
                yield await addresses.get()

        async def login():
            return await log_in(provider_at(server), str(tmp_path), show, pasted())

        assert asyncio.run(login()).needed

    def test_a_registered_address_is_used_as_it_is_written(self):
        async def uri():
            async with LoginCallback("x") as free:
                port = urlsplit(free.uri).port
            async with LoginCallback("x", f"http://localhost:{port}/callback") as callback:
                return port, callback.uri

        port, uri = asyncio.run(uri())
        assert uri == f"http://localhost:{port}/callback"

    @pytest.mark.parametrize("uri", ["https://127.0.0.1:1/x", "http://example.org:80/x", "http://127.0.0.1/x", "x"])
    def test_a_registered_address_must_be_on_this_machine(self, uri):
        with pytest.raises(BadConfig, match="redirect_uri"):
            LoginCallback("x", uri)


def test_the_login_page_is_shown_with_its_host(server, issuer, tmp_path):
    pages = []

    async def show(page):
        pages.append(page)
        await _browsed(page)

    logged_in(provider_at(server), tmp_path, show)
    assert pages[0].host == pages[0].server_host == "127.0.0.1"
    query = parse_qs(urlsplit(pages[0].address).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["resource"] == [server]
    assert json.loads(Path(Logins(str(tmp_path), "remote", server).path).read_text())["issuer"] == issuer.url
