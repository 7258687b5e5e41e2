import ipaddress
import socket
import sys
from pathlib import Path

import anyio
import httpx2
import pytest

from haft.helper.egress import grants
from haft.sources.mcp.remote import addresses
from haft.sources.mcp.remote.addresses import AddressRefused, CheckedTransport, ServerAddresses, is_metadata, is_public

sys.path.insert(0, str(Path(__file__).parent))
from remote_servers import Answers

PUBLIC, PRIVATE, LOOPBACK, METADATA = "93.184.216.34", "10.1.2.3", "127.0.0.1", "169.254.169.254"


class Names:
    """A name server, and a network in which nobody answers."""

    def __init__(self, monkeypatch, **answers):
        self.answers = {name.replace("_", "."): [*found] for name, found in answers.items()}
        self.asked = []
        self.connected = []
        monkeypatch.setattr(addresses.anyio, "getaddrinfo", self._look_up)
        monkeypatch.setattr(addresses.AnyIOBackend, "connect_tcp", self._connect)

    async def _look_up(self, host, port, **_):
        self.asked.append(host)
        found = self.answers[host]
        address = found.pop(0) if len(found) > 1 else found[0]
        each = address if isinstance(address, tuple) else (address,)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in each]

    async def _connect(self, host, port, *_, **__):
        self.connected.append((host, port))
        return f"a connection to {host}"


def connect(server, *hosts):
    async def each():
        for host in hosts:
            await server.connect_tcp(host, 443)

    anyio.run(each)


@pytest.mark.parametrize(
    "text",
    [
        *(PUBLIC, PRIVATE, LOOPBACK, METADATA, "0.0.0.0", "100.64.0.1", "192.168.0.1", "224.0.0.1", "255.255.255.255"),
        *("100.100.100.200", "168.63.129.16", "192.0.0.192", "::", "::1", "fe80::1", "fd00::1", "fd00:ec2::254"),
        *("2001:4860:4860::8888", "::ffff:127.0.0.1", "::ffff:93.184.216.34", "64:ff9b::7f00:1", "2002:7f00:1::"),
        *("64:ff9b:1::1", "fec0::1", "::127.0.0.1", "2001:0:5ef5:79fd::1"),
    ],
)
def test_an_address_is_public_if_the_sandbox_says_so(text):
    """Two programs decide about addresses, and neither can import the other."""
    address = ipaddress.ip_address(text)
    inner = [*grants.inner_addresses(address)]
    assert is_public(address) == all(grants.is_public(each) for each in inner)
    assert is_metadata(address) == any(
        "metadata" in grants.kind_of(each) for each in inner if not grants.is_public(each)
    )


def test_another_host_with_a_private_address_is_refused(monkeypatch):
    names = Names(monkeypatch, mcp_example=[PUBLIC], auth_example=[PRIVATE], mixed_example=[(PUBLIC, LOOPBACK)])
    server = ServerAddresses("mcp.example", 443)
    for host in ("auth.example", "mixed.example", LOOPBACK, "::1", "[fd00::1]"):
        with pytest.raises(AddressRefused, match="private address"):
            connect(server, "mcp.example", host)
    assert {host for host, _port in names.connected} == {PUBLIC}


def test_another_host_may_be_private_if_the_server_is(monkeypatch):
    names = Names(monkeypatch, mcp_example=[PRIVATE], auth_example=["10.9.9.9"])
    connect(ServerAddresses("mcp.example", 443), "auth.example", "mcp.example")
    assert [host for host, _port in names.connected] == ["10.9.9.9", PRIVATE]


def test_a_server_with_public_and_private_addresses_is_a_public_one(monkeypatch):
    names = Names(monkeypatch, mcp_example=[(LOOPBACK, PUBLIC)], auth_example=[PRIVATE])
    with pytest.raises(AddressRefused, match="private address"):
        connect(ServerAddresses("mcp.example", 443), "mcp.example", "auth.example")
    assert names.connected == [(PUBLIC, 443)]


@pytest.mark.parametrize("address", [METADATA, "fe80::1", "fd00:ec2::254", "::ffff:169.254.169.254"])
def test_the_credentials_of_a_machine_are_never_reached(monkeypatch, address):
    names = Names(monkeypatch, mcp_example=[address], auth_example=[address], private_example=[PRIVATE])
    with pytest.raises(AddressRefused, match="keep credentials"):
        connect(ServerAddresses("mcp.example", 443), "mcp.example")
    with pytest.raises(AddressRefused, match="keep credentials"):
        connect(ServerAddresses("private.example", 443), "private.example", "auth.example")
    assert [host for host, _port in names.connected] == [PRIVATE]


def test_a_name_is_resolved_once_for_a_connection(monkeypatch):
    """A second answer with another address comes too late."""
    names = Names(monkeypatch, mcp_example=[PUBLIC], auth_example=[PUBLIC, LOOPBACK])
    connect(ServerAddresses("mcp.example", 443), "auth.example")
    assert names.asked == ["auth.example"]
    assert names.connected == [(PUBLIC, 443)]


def test_a_server_that_moves_from_a_public_address_to_a_private_one_is_refused(monkeypatch):
    names = Names(monkeypatch, mcp_example=[PUBLIC, LOOPBACK])
    server = ServerAddresses("mcp.example", 443)
    with pytest.raises(AddressRefused, match="changed from a public one to a private one"):
        connect(server, "mcp.example", "mcp.example")
    assert names.connected == [(PUBLIC, 443)]


def sent(server, url, **headers):
    async def send():
        transport = CheckedTransport(httpx2.URL(server), 1000, 5.0)
        async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            # Requests of a login have no timeouts of their own.
            return await transport.handle_async_request(httpx2.Request("GET", url, headers=headers)), client

    return anyio.run(send)[0]


def test_a_token_goes_to_the_server_alone():
    with Answers(lambda request: request.reply(200)) as server, Answers(lambda request: request.reply(200)) as other:
        assert sent(server.url, server.url, authorization="Bearer x").status_code == 200
        assert sent(server.url, other.url, authorization="Basic x").status_code == 200
        with pytest.raises(AddressRefused, match=r"a token of .* is not sent"):
            sent(server.url, other.url, authorization="bearer x")
        assert len(other.requests) == 1


@pytest.mark.parametrize(
    ("server", "other"), [("https://a.example", "http://127.0.0.1"), ("http://127.0.0.1", "http://b.example")]
)
def test_another_host_is_reached_encrypted(server, other):
    with pytest.raises(AddressRefused, match="would not be encrypted"):
        sent(server, other)


def test_an_answer_in_a_login_is_bounded():
    with (
        Answers(lambda request: request.reply(200, b" " * 2000)) as server,
        pytest.raises(httpx2.ReadError, match="more than 1_000 bytes"),
    ):
        sent(server.url, server.url)


class TestProxy:
    """This machine reaches the internet only through a proxy."""

    @pytest.fixture
    def proxy(self, monkeypatch):
        """A proxy that answers for every host with the name of that host."""

        def answer(request):
            assert request.command == "CONNECT"
            request.send_response_only(200)
            request.end_headers()
            host = request.path.partition(":")[0]
            request.rfile.readline()
            request.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(host)}\r\n\r\n{host}".encode())

        with Answers(answer) as proxy:
            monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{proxy.port}")
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
            yield proxy

    def test_names_are_reached_through_it(self, proxy):
        assert sent("http://mcp.example", "http://mcp.example/mcp").text == "mcp.example"
        assert proxy.requests[0].path == "mcp.example:80"
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"

    @pytest.mark.parametrize("exception", ["mcp.example", "*", ".example", "other.example, mcp.example:80"])
    def test_exceptions_are_reached_directly(self, proxy, monkeypatch, exception):
        monkeypatch.setenv("NO_PROXY", exception)
        Names(monkeypatch, mcp_example=[PUBLIC])
        with pytest.raises(AttributeError):  # The connection of this test is only a text.
            sent("http://mcp.example", "http://mcp.example/mcp")
        assert proxy.requests == []

    def test_addresses_and_this_machine_are_reached_directly(self, proxy):
        with Answers(lambda request: request.reply(200, b"direct")) as server:
            assert sent(server.url, server.url).text == "direct"
            named = server.url.replace("127.0.0.1", "localhost")
            assert sent(named, named).text == "direct"
        assert proxy.requests == []

    def test_a_proxy_that_refuses_is_named(self, monkeypatch):
        with Answers(lambda request: request.reply(407)) as proxy:
            monkeypatch.setenv("ALL_PROXY", f"127.0.0.1:{proxy.port}")
            with pytest.raises(httpx2.ConnectError, match=r"the proxy .* refused: 407"):
                sent("http://mcp.example", "http://mcp.example/mcp")

    @pytest.mark.parametrize("address", ["socks5://127.0.0.1:1", "http://[::1", "http://me:secret@:99999"])
    def test_a_proxy_that_cannot_be_used_is_reported_without_its_password(self, monkeypatch, address):
        monkeypatch.setenv("ALL_PROXY", address)
        with pytest.raises(httpx2.ConnectError, match="this machine's proxy") as caught:
            sent("http://mcp.example", "http://mcp.example/mcp")
        assert "secret" not in str(caught.value)
