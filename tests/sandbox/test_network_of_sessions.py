"""Network by host of processes that outlive their calls: what was granted holds for the process, and each connection is
recorded in the run that it was made for."""

import asyncio
import contextlib
import socket
import sys
import threading

import pytest

from haft import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere"),
]

PLUGIN = """
import socket

class Plugin:
    def init(self, config):
        return {}

    def get_tool_schemas(self, state):
        parameters = {"type": "object", "properties": {"host": {"type": "string"}, "port": {"type": "integer"}}}
        return [{"name": "reach", "description": "Connect.", "parameters": parameters}]

    def execute_tool(self, name, arguments, state):
        try:
            with socket.create_connection((arguments["host"], arguments["port"]), 20) as end:
                return end.recv(100).decode()
        except OSError as error:
            return type(error).__name__
"""


@pytest.fixture
def port():
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as end:
                    end.sendall(b"here")

    threading.Thread(target=accept, daemon=True).start()
    with listener:
        yield listener.getsockname()[1]


def test_the_connections_of_a_plugins_process_are_in_the_run_that_it_worked_for(tmp_path, port, monkeypatch):
    monkeypatch.setattr("haft.sources.brief_run.DESCRIBE_SECONDS", 60.0)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "plugin.py").write_text(PLUGIN)
    entry = {"plugin": f"path:{tmp_path.resolve()}/plugin.py", "grant": {"network": [f"localhost:{port}"]}}

    async def yes(_request):
        return True

    async def go():
        service = ToolService.open(
            tmp_path / "workspace",
            home=tmp_path / "state",
            approver=yes,
            installed=False,
            settings={"plugins": [entry]},
        )
        async with service:
            one = await service.call("reach", {"host": "localhost", "port": port})
            two = await service.call("reach", {"host": "evil.example", "port": 443})
            three = await service.call("reach", {"host": "127.0.0.1", "port": port})
            return one, two, three

    one, two, three = asyncio.run(go())
    assert (one.output, two.output, three.output) == ("here", "ConnectionRefusedError", "here")
    assert [(each.host, each.port, each.allowed, each.received) for each in one.connections] == [
        ("localhost", port, True, 4)
    ]
    assert one.connections[0].by == "the tool's configuration"
    assert [(each.host, each.port, each.allowed) for each in two.connections] == [("evil.example", 443, False)]
    assert any("evil.example:443" in note for note in two.notes)
    assert len(three.connections) == 1
