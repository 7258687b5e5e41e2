"""Receives a descriptor of the workspace as a command sees it; the helper sends this descriptor before the command
starts."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def view_socket(view: Callable[[int], None], loop: asyncio.AbstractEventLoop) -> Iterator[int]:
    """A context manager that yields one end of a socket. Send this end to the helper. `view` is called with the
    descriptor that the helper sends back."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours.setblocking(False)

    def receive() -> None:
        try:
            _words, descriptors, _flags, _address = socket.recv_fds(ours, 1, 1)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            descriptors = []
        loop.remove_reader(ours)
        ours.close()
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # `recv_fds` drops MSG_CMSG_CLOEXEC in some Pythons.
            view(descriptor)

    loop.add_reader(ours, receive)
    try:
        yield theirs.fileno()
    finally:
        theirs.close()
