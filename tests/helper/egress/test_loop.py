"""The loop of the egress process."""

import os
import socket
from contextlib import ExitStack

import pytest

from haft.helper.egress.link import READ
from haft.helper.egress.loop import Loop


def unexpected(handler):
    raise AssertionError(handler)


@pytest.fixture
def pair():
    """Makes pairs of connected sockets."""
    with ExitStack() as stack:

        def pair():
            return [stack.enter_context(end) for end in socket.socketpair()]

        yield pair


def test_an_event_of_a_closed_socket_is_not_taken_for_one_of_a_new_socket_with_its_number(pair):
    loop, seen = Loop(), []
    (one, its), (two, others), (fresh, _) = pair(), pair(), pair()
    its.send(b"x")
    others.send(b"x")

    def replace(mine, _events):
        """Close the other socket that is ready, and open one that is not ready, with the same number."""
        old = two if mine is one else one
        number = old.fileno()
        loop.remove(old)
        old.close()
        assert os.dup2(fresh.fileno(), number) == number
        loop.add(again := socket.socket(fileno=number), READ, lambda end, events: seen.append((end, events)))
        kept.append(again)

    kept = []
    loop.add(one, READ, replace)
    loop.add(two, READ, replace)
    loop.step(1, unexpected)
    kept[0].close()
    assert (len(kept), seen) == (1, [])


def test_a_handler_that_fails_is_named_and_the_others_go_on(pair):
    loop, failed, seen = Loop(), [], []
    (one, its), (two, others) = pair(), pair()

    def fail(_end, _events):
        raise RuntimeError

    loop.add(one, READ, fail)
    loop.add(two, READ, lambda end, _events: seen.append(end))
    its.send(b"x")
    others.send(b"x")
    loop.step(1, failed.append)
    assert (failed, seen) == ([fail], [two])


def test_work_in_a_thread_ends_on_the_loop():
    loop, seen = Loop(), []
    loop.begin()
    loop.run_in_thread(lambda: lambda: seen.append("done"))
    while not seen:
        loop.step(None, unexpected)
