"""The sandbox of an MCP server on this machine: its network, its home directory, and its limits."""

import contextlib
import json
import socket
import sys
import threading

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere")

CONNECT = "import socket; print(socket.create_connection(('localhost', {}), 20).recv(100).decode())"
USE_HOME = """
import json, os
seen = {"names": sorted(os.listdir(os.path.expanduser("~")))}
for name in ("~/.ssh/id", "%(person)s/.ssh/id", "~/notes.txt"):
    try:
        with open(os.path.expanduser(name)) as file:
            seen[name] = file.read()
    except OSError as error:
        seen[name] = type(error).__name__
with open(os.path.expanduser("~/own.txt"), "w") as file:
    file.write("the server's")
print(json.dumps(seen))
"""
BREED = "import subprocess; [subprocess.Popen(['sleep', '60']) for _ in range(60)][-1].wait()"


@pytest.fixture
def port():
    """The port of a program on this machine that greets everyone."""
    listener = socket.create_server(("127.0.0.1", 0))

    def greet():
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as end:
                    end.sendall(b"welcome")

    threading.Thread(target=greet, daemon=True).start()
    with listener:
        yield listener.getsockname()[1]


def test_a_server_reaches_only_the_host_and_port_of_its_grant(place, port):
    place.add("closed", mode="runs-code")
    place.add("open", mode="runs-code", grant={"network": [f"localhost:{port}"]})
    with socket.create_server(("127.0.0.1", 0)) as other:
        elsewhere = CONNECT.format(other.getsockname()[1])

        async def work(service):
            return [
                await service.call("mcp__closed__echo", {"text": CONNECT.format(port)}),
                await service.call("mcp__open__echo", {"text": elsewhere}),
                await service.call("mcp__open__echo", {"text": CONNECT.format(port)}),
            ]

        closed, beside, granted = place.run(work)
    assert "ConnectionRefusedError" in closed.output
    assert "ConnectionRefusedError" in beside.output
    assert granted.output == "welcome\n"
    assert closed.connections == beside.connections == ()
    assert [(each.host, each.port, each.received) for each in granted.connections] == [("localhost", port, 7)]


def test_a_server_sees_nothing_of_the_home_directory_and_what_it_writes_there_stays_outside(
    place, tmp_path, monkeypatch
):
    person = tmp_path / "person"
    (person / ".ssh").mkdir(parents=True)
    (person / ".ssh" / "id").write_text("the key")
    (person / "notes.txt").write_text("the notes")
    monkeypatch.setenv("HOME", str(person))
    place.add(mode="runs-code")
    seen, again = (
        json.loads(each.output) for each in place.call(*[("echo", {"text": USE_HOME % {"person": person}})] * 2)
    )
    names = seen.pop("names")
    assert set(seen.values()) == {"FileNotFoundError"} and len(seen) == 3
    assert again["names"] == sorted([*names, "own.txt"]), "the server has a home directory of its own"
    assert sorted(path.name for path in person.iterdir()) == [".ssh", "notes.txt"]


def test_a_server_with_more_processes_than_the_limit_is_ended_and_the_next_call_starts_it_again(place):
    place.text("[limits]\nmax_processes = 20\n")
    place.add(mode="runs-code")
    many, after = place.call(("echo", {"text": BREED}), ("add", {"a": 1}))
    assert many.error.code == "limit-exceeded" and many.limits.hit == "max_processes"
    assert "the limit is 20" in many.error.message and "limits.max_processes" in many.error.hint
    assert after.result == {"sum": 1}
    assert place.log().count("started:") == 2
