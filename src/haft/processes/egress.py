"""The host's side of the egress process, which makes the network connections of calls whose network is decided by host.

The process is started on first need, and again if it died. It ends when its socket closes. For each command there is an
`EgressCall`: it gives the helper a channel to the process, and passes on to an observer what the process reports.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from haft.contracts import (
    GIVEN_UP,
    NOT_GRANTED,
    Connection,
    ConnectionObserver,
    HaftError,
    HeldConnection,
    HostGrant,
    StartFailed,
)
from haft.processes.helper import GONE, HelperProcess

REPORT_SECONDS = 5.0
"""How long to wait for the last reports about a call that has ended."""
MAX_MESSAGE = 1 << 18
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

_log = logging.getLogger("haft")

Host = tuple[str, int]
FindProgram = Callable[[str, int], Awaitable[str | None]]
"""Returns the command line of the process that has a TCP socket with this address and port."""


class Egress:
    """Starts the egress process, and opens the network of calls in it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """`env`: the host's environment. If it names a proxy, the egress process uses this proxy."""
        found = {name: env.get(name) or env.get(name.upper()) for name in PROXY_VARIABLES}
        self._site = {"proxies": {name: value for name, value in found.items() if value}}
        self._process: HelperProcess | None = None
        self._calls: dict[int, EgressCall] = {}
        self._numbers = itertools.count(1)

    @property
    def pid(self) -> int | None:
        """The process id; None if the process does not run."""
        return None if self._process is None else self._process.pid

    async def open(self, grants: Sequence[HostGrant], observer: ConnectionObserver | None, *, asks: bool) -> EgressCall:
        """Open the network of one command. With `asks`, connections to other hosts wait for the observer's answer.
        Without grants, the process learns about the command only when the command uses the network."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        call = EgressCall(next(self._numbers), theirs, self, observer)
        order = {"call": call.number, "grants": [each.to_json() for each in grants], "asks": asks}
        if not grants:
            call.wait_for_use(ours, order)
            return call
        try:
            await self.order(order, ours)
        except BaseException:
            theirs.close()
            raise
        self.expect(call)
        return call

    async def order(self, order: Mapping[str, Any], channel: socket.socket) -> None:
        """Tell the process about a command, and give it the channel. Raises `StartFailed`."""
        try:
            for attempt in (1, 2):
                try:
                    return await self._send(order, [channel.fileno()])
                except OSError as error:
                    self.close()
                    if attempt == 2 or error.errno not in GONE:
                        raise StartFailed(f"the network process cannot be reached: {error}") from error
        finally:
            channel.close()
        raise AssertionError

    def expect(self, call: EgressCall) -> None:
        """Pass the reports about a command on to `call`."""
        self._calls[call.number] = call

    async def answer(self, call: int, host: Host, grant: HostGrant | None) -> None:
        """Say whether the held connections of a call to a host may go on."""
        words = {"call": call, "host": host[0], "port": host[1], "answer": None if grant is None else grant.to_json()}
        with contextlib.suppress(OSError):
            await self._send(words, [])

    async def ask_for_reports(self, call: int) -> None:
        """Have the process report the open connections of a call."""
        with contextlib.suppress(OSError):
            await self._send({"call": call, "report": True}, [])

    def forget(self, call: int) -> None:
        self._calls.pop(call, None)

    async def _send(self, words: Mapping[str, Any], descriptors: list[int]) -> None:
        message = json.dumps(words).encode()
        if self._process is not None and self._process.is_over:
            self.close()
        if self._process is None:
            process = HelperProcess("egress", self._site)
            asyncio.get_running_loop().add_reader(process.socket, self._read, process)
            self._process = process
        server = self._process.socket
        while True:
            try:
                socket.send_fds(server, [message], descriptors)
                return
            except BlockingIOError:
                await asyncio.sleep(0.002)

    def _read(self, process: HelperProcess) -> None:
        for _ in range(100):
            try:
                message = process.socket.recv(MAX_MESSAGE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                message = b""
            if not message:
                if process is self._process:
                    self.close()
                return
            words = json.loads(message)
            if (call := self._calls.get(words.get("call"))) is not None:
                call.handle_event(words)

    def close(self) -> None:
        """End the process, and with it all connections."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed.
                process.loop.remove_reader(process.socket)
            process.close()
        for call in list(self._calls.values()):
            call.process_ended()
        self._calls.clear()


class EgressCall:
    """The network of one command in the egress process."""

    def __init__(
        self, number: int, channel: socket.socket, egress: Egress, observer: ConnectionObserver | None
    ) -> None:
        self.number = number
        self._channel = channel
        self._egress = egress
        self._observer = observer
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unused: socket.socket | None = None
        """The process's end of the channel, as long as the command has not used the network."""
        self._ordering: asyncio.Future[None] | None = None
        self._reported: asyncio.Future[None] | None = None
        self._asking: dict[Host, asyncio.Task[None]] = {}
        self._withdrawn: set[asyncio.Task[None]] = set()
        self.find_program: FindProgram | None = None

    @property
    def channel(self) -> int:
        """The descriptor for the helper."""
        return self._channel.fileno()

    def release_channel(self) -> None:
        """Close the host's copy of the channel: then the process notices when the helper's copy closes."""
        self._channel.close()

    def wait_for_use(self, channel: socket.socket, order: Mapping[str, Any]) -> None:
        """Tell the process about the command when the helper says, over the channel, that the command uses the
        network."""
        self._unused = channel
        loop = asyncio.get_running_loop()
        loop.add_reader(channel, self._first_use, loop, order)

    def _first_use(self, loop: asyncio.AbstractEventLoop, order: Mapping[str, Any]) -> None:
        channel, self._unused = self._unused, None
        assert channel is not None
        loop.remove_reader(channel)
        self._egress.expect(self)
        self._ordering = asyncio.ensure_future(self._order(order, channel))

    async def _order(self, order: Mapping[str, Any], channel: socket.socket) -> None:
        try:
            await self._egress.order(order, channel)
        except HaftError as error:
            _log.warning("%s", error.message)
            self.process_ended()

    async def wait_for_reports(self) -> None:
        """Wait until the process has reported all connections of the command, which has ended."""
        if self._unused is not None:
            asyncio.get_running_loop().remove_reader(self._unused)
            self._unused.close()
            self._unused = None
            return
        try:
            # Not `asyncio.timeout`, which would look like a cancellation of the call.
            await asyncio.wait((self._over,), timeout=REPORT_SECONDS)
            if not self._over.done():
                self._records_are_lost("the process that connects calls did not answer")
        finally:
            self._stop_asking()
            self._egress.forget(self.number)
            if self._withdrawn:  # A question that nobody needs to answer must be gone when the call has ended.
                await asyncio.wait(self._withdrawn)

    async def report_open_connections(self) -> None:
        """Have the process report the connections that are open now, and wait until it has reported all until now."""
        if self._over.done():
            return
        self._reported = asyncio.get_running_loop().create_future()
        await self._egress.ask_for_reports(self.number)
        both = (self._reported, self._over)
        done, _waiting = await asyncio.wait(both, timeout=REPORT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            self._records_are_lost("the process that connects calls did not answer")

    def process_ended(self) -> None:
        """Note that the process has ended, and with it all connections of the command."""
        if not self._over.done():
            self._records_are_lost("the process that connects calls has ended")
        self._is_over()

    def _records_are_lost(self, why: str) -> None:
        if self._observer is not None:
            self._observer.incomplete(why)

    def _is_over(self) -> None:
        self._stop_asking()
        if not self._over.done():
            self._over.set_result(None)

    def _stop_asking(self) -> None:
        for host in list(self._asking):
            self._withdraw(host)

    def _withdraw(self, host: Host) -> None:
        """Withdraw the question about a held connection that has ended, and report the connection."""
        task = self._asking.pop(host, None)
        if task is None or task.done():
            return
        task.cancel()
        self._withdrawn.add(task)
        task.add_done_callback(self._withdrawn.discard)
        if self._observer is not None:
            self._observer.ended(_refused(*host, "tcp", GIVEN_UP, 1))

    def handle_event(self, words: Mapping[str, Any]) -> None:
        """Pass on a report of the process."""
        event, observer = words["event"], self._observer
        if event == "over":
            if words["omitted"]:
                self._records_are_lost(f"{words['omitted']:_} connections were too many")
            self._is_over()
            return
        if event == "repeated":
            for host, port, protocol, count in words["refused"] if observer is not None else ():
                observer.ended(_refused(host, port, protocol, NOT_GRANTED, count - 1))  # type: ignore[union-attr]
            return
        if event == "reported":
            if self._reported is not None and not self._reported.done():
                self._reported.set_result(None)
            return
        host = words["host"], words["port"]
        if event == "held":
            self._asking[host] = asyncio.ensure_future(self._ask(host, words["client"]))
        elif event == "given-up":
            self._withdraw(host)
        elif observer is None:
            return
        elif event == "opened":
            observer.opened(*host, words["grant"])
        elif event == "refused" and "grant" not in words:
            observer.ended(_refused(*host, words["protocol"], words["reason"], 1))
        else:
            how = words["how"] if event == "closed" else words["reason"]
            observer.ended(
                Connection(
                    *host,
                    allowed=event != "refused",
                    address=words["address"],
                    sent=words["sent"],
                    received=words["received"],
                    seconds=words["seconds"],
                    grant=words["grant"],
                    reason=None if how == "closed" else how,
                    count=words.get("count", 1),
                    encrypted_name=words["encrypted"],
                )
            )

    async def _ask(self, host: Host, client: Sequence[Any]) -> None:
        """Ask about a held connection, and pass the answer on."""
        grant: HostGrant | None = None
        try:
            program = None
            if self.find_program is not None:
                with contextlib.suppress(OSError):
                    program = await self.find_program(client[0], client[1])
            if self._observer is not None:
                grant = await self._observer.ask(HeldConnection(*host, program))
        finally:
            self._asking.pop(host, None)
            if not self._over.done():
                await asyncio.shield(self._egress.answer(self.number, host, grant))


def _refused(host: str, port: int, protocol: Any, reason: str, count: int) -> Connection:
    return Connection(host, port, allowed=False, protocol=protocol, reason=reason, count=count)
