"""The egress process itself: takes the calls of the host, one message each, and serves them until the host is gone.

The host sends JSON over one socket: about a new call with a descriptor of the channel to the call's init, or a person's
answer about a held connection. The process answers with JSON about each connection (`call`).
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import socket
import time
from collections import deque
from typing import Any

from haft.helper.egress.call import CallNetwork
from haft.helper.egress.confine import confine
from haft.helper.egress.link import READ, WRITE, Link
from haft.helper.egress.loop import Handler, Loop
from haft.helper.egress.proxy_request import ProxyRequest
from haft.helper.egress.upstream import Upstream

MAX_MESSAGE = 1 << 17
MAX_WAITING = 50_000


class Egress:
    """Serves the calls of one host process."""

    def __init__(self, control: socket.socket, upstream: Upstream) -> None:
        self._loop = Loop()
        self._upstream = upstream
        self._control = control
        self._calls: dict[int, CallNetwork] = {}
        self._waiting: deque[bytes] = deque()
        """Messages that the host has not taken yet."""
        self._to_report: list[int] = []
        """The calls whose open connections the host wants to know."""
        control.setblocking(False)
        self._loop.add(control, READ, self._from_host)

    def serve(self) -> None:
        self._loop.begin()
        is_timed = False
        while True:
            for call in self._calls.values():
                call.checked = 0
            self._loop.step(1.0 if is_timed else None, self._failed)
            now = time.monotonic()
            is_timed = sum(self._expire(each, now) for each in list(self._calls.values())) > 0
            for number in [number for number, call in self._calls.items() if call.is_over]:
                del self._calls[number]
            if self._to_report:
                self._report()

    @staticmethod
    def _expire(call: CallNetwork, now: float) -> bool:
        try:
            return call.expire(now)
        except Exception:  # One call must not end the network of others.
            call.end()
            return False

    def _report(self) -> None:
        """Report the open connections of the calls that the host asked about, after all events until now."""
        numbers, self._to_report = self._to_report, []
        self._loop.step(0, self._failed)
        for number in numbers:
            if (call := self._calls.get(number)) is not None:
                call.report_open()

    def _failed(self, handler: Handler) -> None:
        """End the call whose input made a handler fail. If that was not the input of a call, end the process."""
        owner = getattr(handler, "__self__", None)
        call = owner._call if isinstance(owner, (Link, ProxyRequest)) else owner
        if not isinstance(call, CallNetwork):
            os._exit(1)
        call.end()

    def _from_host(self, control: socket.socket, events: int) -> None:
        if events & WRITE:
            self._send_waiting()
        if not events & ~WRITE:
            return
        try:
            message, descriptors, _, _ = socket.recv_fds(control, MAX_MESSAGE, 1)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = b"", []
        if not message:
            os._exit(0)
        words = json.loads(message)
        if "report" in words:
            self._to_report.append(words["call"])
            return
        if "answer" in words:
            call = self._calls.get(words["call"])
            if call is not None:
                call.answer((words["host"], words["port"]), words["answer"])
            return
        if not descriptors:  # There are no descriptors left.
            self._send({"call": words["call"], "event": "over", "omitted": 0})
            return
        channel = socket.socket(fileno=descriptors[0])
        channel.set_inheritable(False)
        self._calls[words["call"]] = CallNetwork(self._loop, self._upstream, channel, words, self._send)

    def _send(self, words: dict[str, Any]) -> None:
        if len(self._waiting) < MAX_WAITING or words["event"] == "over":
            self._waiting.append(json.dumps(words).encode())
        self._send_waiting()

    def _send_waiting(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._waiting:
                try:
                    self._control.send(self._waiting[0])
                except BlockingIOError:
                    self._loop.change(self._control, READ | WRITE)
                    raise
                except OSError as error:
                    if error.errno != errno.EMSGSIZE:
                        os._exit(0)  # The host is gone.
                self._waiting.popleft()
            self._loop.change(self._control, READ)


def main(descriptor: int) -> None:
    """Confine this process, say so to the host, and serve."""
    control = socket.socket(fileno=descriptor)
    site = json.loads(control.recv(1 << 20))
    problem = confine({descriptor})
    control.send(json.dumps({"problem": problem}).encode())
    egress = Egress(control, Upstream(site["proxies"]))
    gc.freeze()
    egress.serve()
