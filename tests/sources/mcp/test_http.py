import socket
import subprocess
import sys
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from haft.contracts import BadConfig
from haft.sources.mcp.remote.http import MOST_BYTES, open_http

sys.path.insert(0, str(Path(__file__).parent))
from remote_servers import Answers, provider_at, real_server


@pytest.fixture(scope="module")
def calculator():
    with real_server() as url:
        yield url


def failure_of(provider, home):
    """How a connection to a provider fails: the failure, and the error for a person."""

    async def connect():
        transport = open_http(provider, str(home))
        try:
            async with Client(transport, read_timeout_seconds=20):
                pytest.fail("connected")
        except BaseException as error:
            return transport.failure_of(error), transport.explained(error)

    return anyio.run(connect)


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
def test_tools_of_a_server_are_called_in_every_era(calculator, mode, tmp_path):
    async def call():
        async with Client(open_http(provider_at(calculator), str(tmp_path)), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text

    assert anyio.run(call) == (["add"], "5")


def test_a_server_of_the_older_transport_is_called(tmp_path):
    async def call(url):
        async with Client(open_http(provider_at(url, transport="sse"), str(tmp_path)), mode="legacy") as client:
            return (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text

    with real_server("sse") as url:
        assert anyio.run(call, url) == "5"


def test_configured_headers_are_sent(tmp_path):
    async def call(url):
        provider = provider_at(url, headers={"Authorization": "Bearer abc"})
        async with Client(open_http(provider, str(tmp_path))) as client:
            return (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text

    with real_server(token="abc") as url:
        assert anyio.run(call, url) == "5"


def test_a_server_that_is_not_there_is_unreachable(tmp_path):
    with socket.socket() as held:  # It has a port, and does not listen.
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        failure, error = failure_of(provider_at(f"http://127.0.0.1:{port}/mcp"), tmp_path)
    assert failure.kind == "unreachable"
    assert not failure.may_have_arrived
    assert f"the MCP server `remote` cannot be reached at `127.0.0.1:{port}`" in error.message
    assert "haft providers restart remote" in error.hint


def test_a_name_without_an_address_is_unreachable(tmp_path):
    failure, _error = failure_of(provider_at("http://no-such-host.invalid/mcp"), tmp_path)
    assert failure.kind == "unreachable"
    assert "no-such-host.invalid" in failure.message


def test_a_server_that_wants_a_login_names_the_command(tmp_path):
    with Answers(lambda request: request.reply(401, b"no")) as server:
        failure, error = failure_of(provider_at(server.url), tmp_path)
    assert failure.kind == "login"
    assert error.hint == "`haft providers login remote`"


@pytest.mark.parametrize(
    ("address", "headers"), [("http://me:secret@", {}), ("http://", {"authorization": "Basic bWU6c2VjcmV0"})]
)
def test_configured_credentials_that_are_refused_are_named(address, headers, tmp_path):
    with Answers(lambda request: request.reply(401)) as server:
        provider = provider_at(server.url.replace("http://", address), headers=headers)
        failure, error = failure_of(provider, tmp_path)
        assert server.requests[0].headers["authorization"] == "Basic bWU6c2VjcmV0"
    assert failure.kind == "forbidden"
    assert "refuses the credentials in its configuration" in error.message
    assert "secret" not in error.message + error.hint


def test_a_server_that_refuses_says_why(tmp_path):
    with Answers(lambda request: request.reply(403, b"your plan ended\x1b[2J")) as server:
        failure, _error = failure_of(provider_at(server.url), tmp_path)
    assert failure.kind == "forbidden"
    assert "HTTP 403): your plan ended\\x1b[2J" in failure.message


@pytest.mark.parametrize("status", [200, 404, 503])
def test_a_web_page_is_no_server(status, tmp_path):
    page = b"<html><body>Welcome</body></html>"
    with Answers(lambda request: request.reply(status, page, "text/html; charset=utf-8")) as server:
        failure, _error = failure_of(provider_at(server.url), tmp_path)
    assert failure.kind == ("status" if status == 503 else "not-mcp")
    assert "Welcome" not in failure.message


def test_another_host_is_not_followed_and_gets_nothing(tmp_path):
    with (
        Answers(lambda request: request.reply(200, b"{}")) as other,
        Answers(lambda request: request.reply(307, location=f"{other.url}/mcp?code=hidden")) as server,
    ):
        failure, _error = failure_of(provider_at(server.url, headers={"X-Key": "mine"}), tmp_path)
        assert failure.kind == "redirect"
        assert f"{other.url}/mcp" in failure.message
        assert "hidden" not in failure.message
        assert other.requests == []


def test_an_endless_answer_is_cut_off(tmp_path):
    def endless(request):
        request.send_response(200)
        request.send_header("content-type", "application/json")
        request.end_headers()
        try:
            while True:
                request.wfile.write(b" " * 1_000_000)
        except OSError:
            return

    with Answers(endless) as server:
        failure, _error = failure_of(provider_at(server.url), tmp_path)
    assert failure.kind == "too-large"
    assert failure.may_have_arrived
    assert f"{MOST_BYTES:_}" in failure.message


def test_a_small_answer_that_unpacks_to_a_large_one_is_cut_off(tmp_path):
    import gzip

    packed = gzip.compress(b" " * (3 * MOST_BYTES))
    assert len(packed) < 100_000
    with Answers(lambda request: request.reply(200, packed, content_encoding="gzip")) as server:
        failure, _error = failure_of(provider_at(server.url), tmp_path)
    assert failure.kind == "too-large"


def test_a_server_that_hangs_up_may_have_got_the_request(tmp_path):
    with Answers(lambda request: request.connection.close()) as server:
        failure, _error = failure_of(provider_at(server.url), tmp_path)
    assert failure.kind == "unreachable"
    assert failure.may_have_arrived


def test_a_failed_call_leaves_others_alone(calculator, tmp_path):
    """One request that fails must not end the connection of all others."""

    async def call():
        transport = open_http(provider_at(calculator), str(tmp_path))
        async with Client(transport) as client:
            await client.list_tools()
            real, transport_of_test = client.session, transport
            sent = []

            async def broken(request):
                sent.append(request)
                raise httpx2.ReadError("the cable was cut")

            http = transport_of_test.client
            checked = http.checked.handle_async_request
            http.checked.handle_async_request = broken
            with pytest.raises(MCPError) as caught:
                await client.call_tool("add", {"a": 1, "b": 1})
            http.checked.handle_async_request = checked
            assert sent
            assert real is client.session
            assert transport.failure_of(caught.value).may_have_arrived
            return (await client.call_tool("add", {"a": 1, "b": 1})).content[0].text

    assert anyio.run(call) == "2"


def test_a_server_cannot_imitate_a_failure_of_haft(tmp_path):
    forged = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"log in","data":{"haftFailure":"00"}}}'
    with Answers(lambda request: request.reply(400, forged)) as server:
        failure, error = failure_of(provider_at(server.url), tmp_path)
    assert failure is None
    assert error is None


@pytest.mark.parametrize("url", ["ftp://example.org/mcp", "https://", "mcp", "", "http://[::1/mcp"])
def test_an_address_that_is_none_is_reported(url, tmp_path):
    with pytest.raises(BadConfig, match="`url` of the provider `remote`"):
        open_http(provider_at(url), str(tmp_path))


def test_the_older_transport_wants_messages_at_the_same_server(tmp_path):
    def stream(request):
        request.send_response(200)
        request.send_header("content-type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b"event: endpoint\ndata: http://127.0.0.2:1/messages\n\n")
        request.wfile.flush()
        request.rfile.read(1)

    with Answers(stream) as server:
        failure, _error = failure_of(provider_at(server.url, transport="sse"), tmp_path)
    assert failure.kind == "redirect"


@pytest.mark.parametrize("status", [401, 404])
def test_the_older_transport_explains_why_it_does_not_open(status, tmp_path):
    with Answers(lambda request: request.reply(status)) as server:
        failure, _error = failure_of(provider_at(server.url, transport="sse"), tmp_path)
    assert failure.kind == ("login" if status == 401 else "not-mcp")


def test_a_message_that_the_older_transport_cannot_send_fails_alone(tmp_path):
    """The stream of events stays open, and the server refuses every message."""

    def answer(request):
        if request.command == "POST":
            request.reply(503, b"too busy", "text/plain")
            return
        request.send_response(200)
        request.send_header("content-type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b"event: endpoint\ndata: /messages\n\n")
        request.wfile.flush()
        request.connection.recv(1)

    with Answers(answer) as server:
        failure, _error = failure_of(provider_at(server.url, transport="sse"), tmp_path)
    assert failure.kind == "status"
    assert "HTTP 503: too busy" in failure.message


@pytest.fixture
def encrypted(tmp_path):
    """A server with a certificate for `localhost` that nobody knows, and the file with that certificate."""
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += [
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
    ]
    subprocess.run(words, check=True, capture_output=True, cwd=tmp_path)
    with Answers(lambda request: request.reply(418, b"a teapot", "text/plain"), certificate=tmp_path) as server:
        yield server, tmp_path / "cert.pem"


def test_a_certificate_that_nobody_knows_is_refused_unless_the_person_names_it(encrypted, tmp_path, monkeypatch):
    server, certificate = encrypted
    provider = provider_at(f"https://localhost:{server.port}/mcp")
    failure, error = failure_of(provider, tmp_path)
    assert failure.kind == "tls"
    assert not failure.may_have_arrived
    assert "has no valid certificate for `localhost`" in error.message
    assert "SSL_CERT_FILE" in error.hint
    assert server.requests == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert "HTTP 418: a teapot" in failure_of(provider, tmp_path)[0].message


def test_a_certificate_of_another_host_is_refused(encrypted, tmp_path, monkeypatch):
    server, certificate = encrypted
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    failure, _error = failure_of(provider_at(f"https://127.0.0.1:{server.port}/mcp"), tmp_path)
    assert failure.kind == "tls"


def test_a_server_that_speaks_no_tls_is_named(tmp_path):
    with Answers(lambda request: request.reply(200)) as server:
        failure, _error = failure_of(provider_at(server.url.replace("http:", "https:")), tmp_path)
    assert "the MCP server `remote` does not speak TLS at `127.0.0.1`" in failure.message
