"""Network by host in the real sandbox: the call reaches what was granted, every connection is reported, a person is
asked, and nothing of the machinery reaches the call."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import threading

import pytest

from haft.contracts import BadUsage, Command, Grants, Limits, NoNetworkByHost, StartFailed, host_grant
from haft.files import Root
from haft.sandbox import Abilities, Sandbox

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere"),
]

CONNECT = """
import socket, sys
host, port = sys.argv[1], int(sys.argv[2])
with socket.create_connection((host, port), 20) as end:
    end.sendall(b"hello")
    end.shutdown(socket.SHUT_WR)
    print(end.makefile("rb").read().decode())
"""


class Output:
    def __init__(self):
        self.text = ""

    def output(self, stream, data):
        self.text += data.decode(errors="replace")

    def processes_ended(self, children):
        pass


class Observer:
    """Notes what is reported, and answers as the test says."""

    def __init__(self, answer=None):
        self.opened_hosts = []
        self.connections = []
        self.missing = None
        self.asked = []
        self.withdrawn = asyncio.Event()
        self.answer = answer

    def opened(self, host, port, grant):
        self.opened_hosts.append((host, port, grant))

    def ended(self, connection):
        self.connections.append(connection)

    def incomplete(self, why):
        self.missing = why

    async def ask(self, held):
        self.asked.append(held)
        try:
            return await self.answer(held)
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise

    @property
    def refused(self):
        return [(each.host, each.port) for each in self.connections if not each.allowed]


@pytest.fixture
def server():
    """A server on the host's own loopback that sends back what it gets, in upper case."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listener.settimeout(60)

    def talk(end):
        with contextlib.suppress(OSError), end:
            while data := end.recv(65536):
                end.sendall(data.upper())

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listener:
        yield listener.getsockname()[1]


@pytest.fixture
def run(tmp_path):
    """Runs a scenario with a sandbox."""
    (tmp_path / "workspace").mkdir()

    def run(scenario, **options):
        async def go():
            find = Root(str(tmp_path / "workspace")).open_directory
            sandbox = Sandbox(
                str(tmp_path / "workspace"), str(tmp_path / "state"), os.environ, find, Limits(), **options
            )
            try:
                async with asyncio.timeout(50):
                    return await scenario(sandbox)
            finally:
                sandbox.close()

        return asyncio.run(go())

    return run


async def call(sandbox, argv, *hosts, observer=None, asks=False, unasked=False):
    """One command with granted hosts; its exit code and its output."""
    confinement = await sandbox.confine("workspace", Grants(network=hosts or False), asks=asks, unasked=unasked)

    async def confined():
        return confinement

    output = Output()
    end = await sandbox.launcher_within(confined, None, observer).run(Command(argv), output)
    return end.code, output.text


def connect(host, port):
    return [sys.executable, "-c", CONNECT, host, str(port)]


def test_a_granted_host_is_reached_and_the_connection_is_reported(run, server):
    async def scenario(sandbox):
        observer = Observer()
        code, text = await call(sandbox, connect("localhost", server), f"localhost:{server}", observer=observer)
        assert (code, text.strip()) == (0, "HELLO"), text
        assert observer.opened_hosts == [("localhost", server, f"localhost:{server}")]
        (connection,) = observer.connections
        assert (connection.host, connection.port, connection.allowed) == ("localhost", server, True)
        assert (connection.sent, connection.received, connection.reason) == (5, 5, None)
        assert connection.to_json()["grant"] == f"localhost:{server}"

    run(scenario)


def test_every_other_host_is_refused_at_once_and_reported_also_if_the_program_says_nothing(run, server):
    async def scenario(sandbox):
        observer = Observer()
        script = f"""
import socket
for host, port in (("evil.example", 443), ("20.0.0.66", 25), ("localhost", {server + 1}), ("evil.example", 443)):
    try:
        socket.create_connection((host, port), 20).recv(1)
        print("reached", host)
    except ConnectionRefusedError:
        pass
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.connect(("20.0.0.66", 443))
try:
    end.send(b"quic")
    end.recv(1)
except ConnectionRefusedError:
    pass
"""
        code, text = await call(sandbox, [sys.executable, "-c", script], f"localhost:{server}", observer=observer)
        assert (code, text) == (0, "")
        # The loopback is the call's own, so nothing is said about it.
        assert set(observer.refused) == {("evil.example", 443), ("20.0.0.66", 25), ("20.0.0.66", 443)}
        assert {each.protocol for each in observer.connections} == {"tcp", "udp"}
        assert sum(each.count for each in observer.connections if each.host == "evil.example") == 2

    run(scenario)


def test_a_call_may_use_its_own_servers(run, server):
    async def scenario(sandbox):
        script = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: listener.accept()[0].sendall(b"own"), daemon=True).start()
print(socket.create_connection(("localhost", listener.getsockname()[1]), 20).recv(10).decode())
"""
        assert await call(sandbox, [sys.executable, "-c", script], f"localhost:{server}") == (0, "own\n")

    run(scenario)


def test_a_connection_that_a_person_approves_goes_on_and_later_ones_are_not_asked_about(run, server):
    async def scenario(sandbox):
        async def yes(held):
            await asyncio.sleep(0.05)
            return host_grant(f"{held.host}:{held.port}=127.0.0.0/8")

        observer = Observer(yes)
        script = CONNECT.replace("\nwith", "\nfor _ in range(3):\n  with").replace("\n    ", "\n        ")
        argv = [sys.executable, "-c", script, "localtest.test", str(server)]
        code, text = await call(sandbox, argv, observer=observer, asks=True)
        return code, text, observer

    code, text, observer = run(scenario)
    # The name does not exist, so it cannot be reached: but it was asked about once, and let through to the look-up.
    assert [(held.host, held.port) for held in observer.asked] == [("localtest.test", server)]
    assert observer.asked[0].program is not None and "localtest.test" in observer.asked[0].program
    assert observer.connections[0].allowed
    assert observer.connections[0].reason.startswith("cannot be reached")
    assert code != 0, text


def test_a_connection_that_a_person_rejects_is_reset_and_not_asked_about_again(run):
    async def scenario(sandbox):
        async def no(_held):
            return None

        observer = Observer(no)
        script = """
import socket
for _ in range(2):
    try:
        print(socket.create_connection(("evil.example", 4711), 20).recv(1))
    except ConnectionResetError:
        print("reset")
"""
        code, text = await call(sandbox, [sys.executable, "-c", script], observer=observer, asks=True)
        assert (code, text) == (0, "reset\nreset\n")
        assert len(observer.asked) == 1
        assert observer.refused == [("evil.example", 4711)] * len(observer.refused)

    run(scenario)


def test_literal_addresses_are_asked_about_too(run):
    async def scenario(sandbox):
        async def no(_held):
            return None

        observer = Observer(no)
        code, text = await call(sandbox, connect("20.0.0.66", 4711), observer=observer, asks=True)
        assert code != 0 and "reset" in text.lower()
        assert [(held.host, held.port) for held in observer.asked] == [("20.0.0.66", 4711)]

    run(scenario)


def test_the_question_is_withdrawn_if_the_program_gives_up(run):
    async def scenario(sandbox):
        async def never(_held):
            await asyncio.Event().wait()

        script = """
import socket, sys
end = socket.create_connection(("slow.example", 443), 20)
sys.stdin.read(1)
end.close()
sys.stdin.read(1)
"""
        observer, sends = Observer(never), asyncio.get_running_loop().create_future()
        confinement = await sandbox.confine("workspace", asks=True)

        async def confined():
            return confinement

        command = Command([sys.executable, "-c", script], on_start=sends.set_result)
        running = asyncio.ensure_future(sandbox.launcher_within(confined, None, observer).run(command, Output()))
        send = await sends
        while not observer.asked:
            await asyncio.sleep(0.01)
        await send(b"x")
        await observer.withdrawn.wait()
        await send(b"x")
        assert (await running).code == 0

    run(scenario)


def test_cancelling_ends_a_held_connection_and_withdraws_the_question(run):
    async def scenario(sandbox):
        asked = asyncio.Event()

        async def never(_held):
            asked.set()
            await asyncio.Event().wait()

        observer = Observer(never)
        calling = asyncio.ensure_future(call(sandbox, connect("evil.example", 443), observer=observer, asks=True))
        await asked.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await asyncio.wait_for(observer.withdrawn.wait(), 20)

    run(scenario)


def test_a_killed_network_process_ends_connections_and_the_next_call_gets_another(run, server):
    async def scenario(sandbox):
        grant = f"localhost:{server}"
        assert (await call(sandbox, connect("localhost", server), grant))[0] == 0
        first = sandbox.hosts.egress_pid
        os.kill(first, signal.SIGKILL)
        assert await call(sandbox, connect("localhost", server), grant) == (0, "HELLO\n")
        assert sandbox.hosts.egress_pid != first

    run(scenario)


def test_the_network_process_ends_with_the_sandbox_and_is_confined(run, server):
    async def scenario(sandbox):
        await call(sandbox, connect("localhost", server), f"localhost:{server}")
        with open(f"/proc/{sandbox.hosts.egress_pid}/status") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        assert int(status["CapEff"], 16) & ~(1 << 10) == 0
        assert "0" not in status["Uid"].split()
        return sandbox.hosts.egress_pid

    pid = run(scenario)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_descriptor_of_the_machinery_reaches_the_command(run, server):
    async def scenario(sandbox):
        script = """
import json, os
own = "/proc/self/fd"
print(json.dumps([os.readlink(f"{own}/{name}") for name in os.listdir(own) if os.path.lexists(f"{own}/{name}")]))
"""
        _code, text = await call(sandbox, [sys.executable, "-c", script], f"localhost:{server}")
        return json.loads(text)

    assert not [path for path in run(scenario) if path.startswith("socket:")]


def test_two_calls_at_once_have_networks_of_their_own(run, server):
    async def scenario(sandbox):
        one, two = Observer(), Observer()
        results = await asyncio.gather(
            call(sandbox, connect("localhost", server), f"localhost:{server}", observer=one),
            call(sandbox, connect("localhost", server), "registry.example", observer=two),
        )
        assert results[0] == (0, "HELLO\n")
        assert results[1][0] != 0
        assert two.opened_hosts == []

    run(scenario)


def test_hosts_are_refused_and_never_widened_where_they_cannot_be_enforced(run, monkeypatch):
    async def scenario(sandbox):
        with pytest.raises(NoNetworkByHost, match="cannot restrict the network to the granted hosts"):
            await call(sandbox, ["true"], "registry.example")

    run(scenario, mode="off")

    async def without(_sandbox):
        return Abilities(namespaces=True, problem=None, network=False, proc=True, landlock=6, seccomp=True)

    monkeypatch.setattr(Sandbox, "_probe", without)
    run(scenario)


def test_never_beats_granted_hosts_and_questions(run):
    async def scenario(sandbox):
        confinement = await sandbox.confine("workspace", Grants(network=("registry.example",)), asks=True)
        assert (confinement.network, confinement.hosts, confinement.asks) == (False, (), False)

    run(scenario, never_network=True)


def test_a_host_that_cannot_be_granted_says_why(run):
    async def scenario(sandbox):
        with pytest.raises(BadUsage, match="many owners"):
            await sandbox.confine("workspace", Grants(network=("*.com",)))

    run(scenario)


def test_a_port_that_cannot_be_listened_on_fails_before_the_command_runs(run):
    async def scenario(sandbox):
        many = tuple(f"10.0.0.{number}:{port}" for number in range(1, 60) for port in (80, 443))
        with pytest.raises(StartFailed, match="too many ports"):
            await call(sandbox, ["true"], *many)

    run(scenario)


def test_a_call_that_tries_many_hosts_makes_haft_ask_about_few_of_them(run):
    async def scenario(sandbox):
        async def no(_held):
            return None

        observer = Observer(no)
        script = """
import socket
for number in range(60):
    try:
        socket.create_connection((f"h{number}.example", 443), 20).recv(1)
    except OSError:
        pass
"""
        code, _text = await call(sandbox, [sys.executable, "-c", script], observer=observer, asks=True)
        assert code == 0
        assert len(observer.asked) == 30
        assert len(observer.refused) == 60

    run(scenario)


@pytest.mark.parametrize("grant", ["localhost:{}", "127.0.0.1:{}"])
def test_a_service_of_this_machine_is_reached_by_its_name_and_by_its_address(run, server, grant):
    async def scenario(sandbox):
        for host in ("localhost", "127.0.0.1"):
            assert await call(sandbox, connect(host, server), grant.format(server)) == (0, "HELLO\n")

    run(scenario)


def test_every_host_is_on_record_after_any_number_of_connections(run, server):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        async def scenario(sandbox):
            observer = Observer()
            script = f"""
import socket
for _ in range(1100):
    with socket.create_connection(("127.0.0.1", {server}), 20) as end:
        end.sendall(b"x")
        end.recv(1)
with socket.create_connection(("127.0.0.1", {port}), 20) as end:
    end.sendall(b"y" * 5001)
"""
            grants = f"localhost:{server}", f"localhost:{port}"
            code, text = await call(sandbox, [sys.executable, "-c", script], *grants, observer=observer)
            assert (code, text) == (0, "")
            sums = {}
            for each in observer.connections:
                count, sent = sums.get(each.port, (0, 0))
                sums[each.port] = count + each.count, sent + each.sent
            assert sums == {server: (1100, 1100), port: (1, 5001)}
            assert observer.missing is None

        run(scenario)


def test_no_input_of_a_call_ends_the_network_process(run, server):
    async def scenario(sandbox):
        grant = f"127.0.0.1:{server}"
        await call(sandbox, connect("127.0.0.1", server), grant)
        pid = sandbox.hosts.egress_pid
        script = """
import socket
for number in range(400):
    for _ in range(2):
        name = f"{'n' * 60}.{'a' * 60}.{'b' * 60}.{number:03}.example"
        with socket.create_connection(("198.18.0.1", 3128), 20) as end:
            end.sendall(f"CONNECT {name}:443 HTTP/1.1\\r\\n\\r\\n".encode())
            end.recv(100)
"""
        observer = Observer()
        code, text = await call(sandbox, [sys.executable, "-c", script], grant, observer=observer)
        assert (code, text) == (0, "")
        assert sum(each.count for each in observer.connections if not each.allowed) == 800
        assert sandbox.hosts.egress_pid == pid and observer.missing is None

    run(scenario)


def test_a_killed_network_process_is_said_to_have_lost_records(run, server):
    async def scenario(sandbox):
        observer = Observer()
        confinement = await sandbox.confine("workspace", Grants(network=(f"localhost:{server}",)))

        async def confined():
            return confinement

        script = f"""
import socket, sys
end = socket.create_connection(("127.0.0.1", {server}), 20)
print("ready", flush=True)
sys.stdin.read(1)
"""
        sends, output = asyncio.get_running_loop().create_future(), Output()
        command = Command([sys.executable, "-c", script], on_start=sends.set_result)
        running = asyncio.ensure_future(sandbox.launcher_within(confined, None, observer).run(command, output))
        send = await sends
        while "ready" not in output.text:
            await asyncio.sleep(0.01)
        os.kill(sandbox.hosts.egress_pid, signal.SIGKILL)
        while observer.missing is None:
            await asyncio.sleep(0.01)
        await send(b"x")
        assert (await running).code == 0

    run(scenario)
