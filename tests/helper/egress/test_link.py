"""One connection of a call, between real sockets."""

import socket
import struct
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from haft.contracts.host_grants import host_grant
from haft.helper.egress.grants import Grant
from haft.helper.egress.link import Link
from haft.helper.egress.loop import Loop
from haft.helper.egress.upstream import Upstream

RESET = struct.pack("ii", 1, 0)


class CountingLoop(Loop):
    """Counts how often a socket was ready."""

    def __init__(self):
        super().__init__()
        self.times = 0

    def add(self, end, mask, handler):
        def counted(ready, events):
            self.times += 1
            handler(ready, events)

        super().add(end, mask, counted)


def unexpected(handler):
    raise AssertionError(handler)


@pytest.fixture
def connection():
    """A link to a server that reads nothing by itself: the loop, the program's socket, the server's, and the ends."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        program = stack.enter_context(socket.create_connection(listener.getsockname()))
        inner, _ = listener.accept()
        loop, ends = CountingLoop(), []
        call = SimpleNamespace(
            loop=loop, upstream=Upstream({}), is_granted=lambda _host, _port: True, opened=lambda _link: None,
            denied=lambda _link, reason, is_refused: ends.append(reason), ended=lambda _link, how: ends.append(how),
        )  # fmt: skip
        port = listener.getsockname()[1]
        link = Link(call, inner, "127.0.0.1", port, Grant(host_grant(f"127.0.0.1:{port}").to_json()))
        link.begin()
        server = stack.enter_context(listener.accept()[0])
        loop.step(1, unexpected)
        yield loop, program, server, ends
        link.finish("the test is over")


def fill(loop, end):
    """Send until nothing takes any more, so that the link keeps bytes."""
    end.setblocking(False)
    for _ in range(10):
        try:
            while True:
                end.send(bytes(1 << 18))
        except BlockingIOError:
            for _ in range(20):
                loop.step(0.01, unexpected)


@pytest.mark.parametrize("is_program", [True, False], ids=["program", "server"])
def test_a_reset_of_one_side_does_not_keep_the_loop_busy_while_the_other_side_reads_nothing(connection, is_program):
    loop, program, server, _ends = connection
    side = program if is_program else server
    fill(loop, side)
    side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    side.close()
    loop.times = 0
    for _ in range(100):
        loop.step(0, unexpected)
    assert loop.times < 10


def test_each_direction_ends_by_itself(connection):
    loop, program, server, ends = connection
    program.sendall(b"question")
    program.shutdown(socket.SHUT_WR)
    loop.step(1, unexpected)
    loop.step(0.1, unexpected)
    server.settimeout(10)
    with server.makefile("rb") as sent:
        assert sent.read() == b"question"
    server.sendall(b"answer")
    server.shutdown(socket.SHUT_WR)
    while not ends:
        loop.step(1, unexpected)
    program.settimeout(10)
    with program.makefile("rb") as sent:
        assert sent.read() == b"answer"
    assert ends == ["closed"]
