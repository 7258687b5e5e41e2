"""`haft serve mcp --http`: the real program on a real port, with clients of both eras and with callers that lie."""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from haft.contracts import BadUsage, Principal
from haft.service import CannotListen, Filter, StateHome, Tokens, clients_alive, open_history
from haft.surfaces.mcp.over_http import app as served_http

PERSON = Principal("ana")
PATIENCE = 60.0
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


def environment(place: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HAFT_")}
    return env | {"HAFT_HOME": str(place / "state"), "HOME": str(place), "XDG_CONFIG_HOME": str(place / "config")}


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "haft", *words, "-w", str(place / "workspace")]
    return subprocess.run(command, capture_output=True, text=True, env=environment(place), timeout=PATIENCE)


@dataclass
class Served:
    """A running server."""

    place: Path
    process: subprocess.Popen[str]
    url: str

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.place / "state")

    def runs(self, **wanted):
        history = open_history(StateHome(str(self.place / "state")))
        try:
            return list(history.runs(Filter(**wanted)))
        finally:
            history.close()

    def ask(self, method="POST", headers=(), body=b"", path="/mcp"):
        """The status and the headers of one answer. The headers are sent as they are, Host included."""
        where = urlsplit(self.url)
        with contextlib.closing(http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE)) as connection:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            with connection.getresponse() as answer:
                return answer.status, dict(answer.getheaders()), b"" if answer.status == 200 else answer.read()

    def headers(self, token, **more):
        where = urlsplit(self.url)
        given = {
            "Host": where.netloc,
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        return list((given | {name.replace("_", "-"): value for name, value in more.items()}).items())


@contextlib.contextmanager
def serving(place: Path, *words: str):
    """The server, until the end of the block."""
    command = [sys.executable, "-m", "haft", "serve", "mcp", "--http", "127.0.0.1:0", "-w", str(place / "workspace")]
    with subprocess.Popen(
        [*command, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(place)
    ) as process:
        try:
            line = process.stderr.readline()
            assert line.startswith("haft serves MCP at http://127.0.0.1:"), line
            yield Served(place, process, line.split()[-1])
        finally:
            process.kill()


def prepared(place: Path) -> Path:
    (place / "workspace").mkdir()
    (place / "workspace/a.txt").write_text("one\n")
    (place / "config/haft").mkdir(parents=True)
    (place / "config/haft/haft.toml").write_text('[[permissions]]\ntool = "shell"\naction = "allow"\n')
    return place


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    place = prepared(tmp_path_factory.mktemp("http"))
    Tokens(place / "state").add("first", PERSON)
    with serving(place) as server:
        yield server


@contextlib.asynccontextmanager
async def client(url, token, mode):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as carrier,
        Client(streamable_http_client(url, http_client=carrier), mode=mode) as connected,
    ):
        yield connected


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_of_either_era_calls_tools_under_the_name_of_its_token(served, mode):
    _, token = served.tokens.add(f"agent-{mode}", PERSON)

    async def go():
        async with client(served.url, token, mode) as connected:
            assert "read_file" in {tool.name for tool in (await connected.list_tools()).tools}
            return await connected.call_tool("read_file", {"path": "a.txt"}, meta={"threadId": "mine"})

    assert "one" in asyncio.run(go()).content[0].text
    (made,) = served.runs(who=f"agent-{mode}")
    assert made.tool == "read_file" and made.thread.startswith("T-") and "mine" not in made.thread


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_token_for_some_tools_lists_and_calls_only_these(served, mode):
    _, token = served.tokens.add(f"narrow-{mode}", PERSON, tools=["read_*"])

    async def go():
        async with client(served.url, token, mode) as connected:
            listed = {tool.name for tool in (await connected.list_tools()).tools}
            read = await connected.call_tool("read_file", {"path": "a.txt"})
            calls = [{"tool": "shell", "args": {"command": "true"}}]
            refused = await connected.call_tool("batch", {"calls": calls})
            with pytest.raises(MCPError, match="does not offer"):
                await connected.call_tool("shell", {"command": "true"})
            return listed, read, refused

    listed, read, refused = asyncio.run(go())
    assert "read_file" in listed and not {"shell", "write_file"} & listed
    assert "one" in read.content[0].text and refused.is_error
    made = {each.tool: each.status for each in served.runs(who=f"narrow-{mode}")}
    assert made.pop("read_file") == "done" and set(made.values()) <= {"error"}


@pytest.mark.parametrize("rights", [{"roles": ["reader"]}, {"workspaces": ["elsewhere"]}, {"seconds": 0.001}])
def test_a_token_that_may_not_call_tools_here_is_refused(served, rights):
    _, token = served.tokens.add(f"refused-{next(iter(rights))}", PERSON, **rights)
    status = served.ask(headers=served.headers(token), body=json.dumps(HELLO).encode())[0]
    assert status == (401 if "seconds" in rights else 403)


def test_a_client_on_this_machine_is_announced_before_its_first_call(served):
    _, token = served.tokens.add("near", PERSON)
    assert served.ask(headers=served.headers(token), body=json.dumps(HELLO).encode())[0] == 200
    living = clients_alive(StateHome(str(served.place / "state")))
    assert os.getpid() in {client.pid for client in living}
    said = run(served.place, "approve", "a_1")
    assert (said.returncode, "was refused" in said.stderr) == (3, True), said.stderr


def test_a_call_in_flight_ends_with_the_token_that_made_it(served):
    _, token = served.tokens.add("leaving", PERSON)

    async def go(mode, command):
        async with client(served.url, token, mode) as connected:
            await connected.call_tool("shell", {"command": command})

    async def both():
        calls = [asyncio.ensure_future(go(mode, f"sleep 1000 # {mode}")) for mode in ("legacy", "auto")]
        while len([each for each in served.runs(who="leaving") if each.status == "in-progress"]) < 2:
            await asyncio.sleep(0.05)
        served.tokens.revoke("leaving", PERSON)
        while {each.status for each in served.runs(who="leaving")} != {"cancelled"}:
            await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(asyncio.wait_for(both(), PATIENCE))
    assert served.ask(headers=served.headers(token), body=json.dumps(HELLO).encode())[0] == 401


def test_a_session_belongs_to_the_token_that_opened_it(served):
    (_, mine), (_, theirs) = served.tokens.add("owner", PERSON), served.tokens.add("thief", PERSON)
    status, headers, _ = served.ask(headers=served.headers(mine), body=json.dumps(HELLO).encode())
    session = headers["mcp-session-id"]
    assert status == 200
    ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
    stolen = served.headers(theirs, Mcp_Session_Id=session)
    for method, body in (("POST", ping), ("GET", b""), ("DELETE", b"")):
        assert served.ask(method, stolen, body)[0] == 404, method
    assert served.ask(headers=served.headers(mine, Mcp_Session_Id=session), body=ping)[0] == 200


def test_the_running_server_refuses_foreign_pages_and_unknown_callers(served):
    _, token = served.tokens.add("known", PERSON)
    hostile = [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer haft_0000000000000000_" + "A" * 43}, 401),
    ]
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        for change, status in hostile:
            given = list((dict(served.headers(token)) | change).items())
            answered, headers, body = served.ask(method, given, json.dumps(HELLO).encode())
            assert answered == status, (method, change)
            assert token not in body.decode()
            assert not any(name.lower().startswith("access-control") for name in headers)


def test_a_request_in_a_form_that_only_attackers_use_is_refused(served):
    _, token = served.tokens.add("raw", PERSON)
    where = urlsplit(served.url)
    for lines in (
        f"GET /mcp HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n",
        f"GET http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {token}\r\n\r\n",
        f"GET /mcp HTTP/1.1\r\nHost: {where.netloc}\r\nHost: evil.example\r\nAuthorization: Bearer {token}\r\n\r\n",
        f"GET /mcp?token={token} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n",
        f"GET /mcp HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ):
        with socket.create_connection((where.hostname, where.port), timeout=PATIENCE) as connection:
            connection.sendall(lines.encode())
            assert connection.recv(1000).split()[1] in (b"400", b"401", b"403"), lines


def test_a_request_that_is_too_long_is_refused_before_it_is_read(served):
    _, token = served.tokens.add("long", PERSON)
    where = urlsplit(served.url)
    with contextlib.closing(http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE)) as connection:
        connection.putrequest("POST", "/mcp", skip_host=True)
        for name, value in served.headers(token, Content_Length=str(served_http.MOST_BODY_BYTES + 1)):
            connection.putheader(name, value)
        connection.endheaders()
        with connection.getresponse() as answer:
            assert answer.status == 413


VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
REFUSED = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}


def answer_to(served, token, method, **params):
    """The result of one request of the protocol 2026-07-28, or its error."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "owner", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}, "extensions": {TASKS: {}}},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    named = params.get("name") or params.get("uri") or params.get("taskId")
    headers = dict(served.headers(token)) | {"MCP-Protocol-Version": VERSION, "Mcp-Method": method}
    headers |= {} if named is None else {"Mcp-Name": named}
    answer = httpx2.post(served.url, headers=headers, content=json.dumps(body), timeout=PATIENCE)
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = next(line[6:] for line in reversed(text.splitlines()) if line.startswith("data: "))
    message = json.loads(text)
    return message.get("result") or message["error"]


def test_nothing_of_one_client_opens_with_the_token_of_another(served):
    (_, mine), (_, theirs) = served.tokens.add("keeper", PERSON), served.tokens.add("prowler", PERSON)
    done = answer_to(served, mine, "tools/call", name="shell", arguments={"command": "echo hush"})
    (run,) = served.runs(who="keeper")
    assert "hush" in json.dumps(done)
    for tool in ("undo", "redo", "diff", "output", "wait", "cancel"):
        refused = answer_to(served, theirs, "tools/call", name=tool, arguments={"run": run.id})
        assert refused["isError"] and "hush" not in json.dumps(refused), tool
    assert run.id not in json.dumps(answer_to(served, theirs, "tools/call", name="runs", arguments={}))
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert answer_to(served, theirs, method, taskId=run.id, inputResponses={})["code"] == -32602, method
    uri = f"haft://runs/{run.id}/output"
    assert "hush" in json.dumps(answer_to(served, mine, "resources/read", uri=uri))
    assert "hush" not in json.dumps(answer_to(served, theirs, "resources/read", uri=uri))


def test_a_person_approves_through_the_state_of_their_own_call_once(served):
    (_, mine), (_, theirs) = served.tokens.add("asker", PERSON), served.tokens.add("snatcher", PERSON)
    call = {"name": "write_file", "arguments": {"path": "made.txt", "content": "x"}}
    asked = answer_to(served, mine, "tools/call", **call)
    (form,) = asked["inputRequests"].values()
    (choice,) = form["params"]["requestedSchema"]["required"]
    content = {choice: form["params"]["requestedSchema"]["properties"][choice]["enum"][0]}
    responses = {key: {"action": "accept", "content": content} for key in asked["inputRequests"]}
    state = asked["requestState"]

    def answered(token, state, arguments=call["arguments"]):
        return answer_to(
            served,
            token,
            "tools/call",
            name="write_file",
            arguments=arguments,
            requestState=state,
            inputResponses=responses,
        )

    half = len(state) // 2
    assert answered(theirs, state) == REFUSED, "another client's"
    assert answered(mine, state[:half] + ("A" if state[half] != "A" else "B") + state[half + 1 :]) == REFUSED
    assert answered(mine, state, {"path": "made.txt", "content": "evil"}) == REFUSED, "another call's"
    assert not (served.place / "workspace/made.txt").exists()
    done = answered(mine, state)
    assert (served.place / "workspace/made.txt").read_text() == "x", done
    (served.place / "workspace/made.txt").unlink()
    assert answered(mine, state) == REFUSED, "a replay"
    (made,) = served.runs(who="asker")
    assert made.status == "done" and not (served.place / "workspace/made.txt").exists()


@pytest.mark.parametrize(("number", "mode"), [(signal.SIGTERM, "legacy"), (signal.SIGINT, "auto")])
def test_a_signal_ends_the_server_with_everything_it_started(tmp_path, number, mode):
    place = prepared(tmp_path)
    _, token = Tokens(place / "state").add("agent", PERSON)

    naps = f"{100_000 + os.getpid()}.{time.monotonic_ns()}"

    async def go(server):
        async with client(server.url, token, mode) as connected:
            await connected.call_tool("shell", {"command": f"sleep {naps} & exec sleep {naps}"})

    async def ended(server):
        call = asyncio.ensure_future(go(server))
        while len([each for each in commands() if naps.encode() in each.split(b"\0")]) < 2:
            await asyncio.sleep(0.05)
        server.process.send_signal(number)
        code = await asyncio.to_thread(server.process.wait, PATIENCE)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return code

    with serving(place) as server:
        assert asyncio.run(asyncio.wait_for(ended(server), PATIENCE)) == 0
        assert "Traceback" not in server.process.stderr.read()
        (made,) = server.runs()
        assert made.status == "cancelled"
        assert not any(naps.encode() in command for command in commands()), "no process is left"


def commands():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                yield (entry / "cmdline").read_bytes()


def test_without_a_token_the_server_says_which_command_makes_one(tmp_path):
    refused = run(prepared(tmp_path), "serve", "mcp", "--http", "127.0.0.1:0")
    assert refused.returncode == 2 and "no MCP client has a token" in refused.stderr
    assert "`haft tokens add NAME`" in refused.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", ":8000", "example.com:80"])
def test_an_address_that_other_machines_reach_needs_a_name_for_it(address):
    with pytest.raises(BadUsage) as raised:
        served_http.parse_address(address)
    assert "--allow-host" in raised.value.hint
    assert served_http.parse_address(address, ["haft.example"])[1] == int(address.rpartition(":")[2])


@pytest.mark.parametrize("address", ["", "8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", "::1:80"])
def test_an_address_without_host_and_port_is_refused(address):
    with pytest.raises(BadUsage, match="is not an address"):
        served_http.parse_address(address, ["haft.example"])


@pytest.mark.parametrize(
    ("address", "host"),
    [("127.0.0.1:80", "127.0.0.1"), ("localhost:80", "127.0.0.1"), ("[::1]:80", "::1"), ("127.1.2.3:80", "127.1.2.3")],
)
def test_loopback_needs_no_name(address, host):
    assert served_http.parse_address(address) == (host, 80)


@pytest.mark.parametrize("name", ["", "a b", "haft.example:80", "http://haft.example", "*"])
def test_a_name_with_a_port_or_a_pattern_is_refused(name):
    with pytest.raises(BadUsage, match="is not a host name"):
        served_http.check_names([name])


def test_a_port_in_use_is_said_with_what_to_do():
    with served_http.listen("127.0.0.1", 0) as taken:
        with pytest.raises(CannotListen) as raised:
            served_http.listen("127.0.0.1", taken.getsockname()[1])
    assert "cannot listen on 127.0.0.1:" in str(raised.value) and "another port" in raised.value.hint
