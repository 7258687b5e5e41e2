"""The messages between `surfaces/hook/start.py` and the process that answers it, over the socket in the state home.

A message is one byte that says its kind, and a netstring (`LENGTH:BYTES,`) whose bytes are again netstrings: the
fields. `start.py` writes and reads the same form without importing this module.

| kind | sent by | fields |
|---|---|---|
| `h` hook | start.py | format number, agent, directory, stdin of the hook, `NAME=VALUE` variables separated by NUL |
| `s` shell | start.py | format number, ticket, command, directory, `NAME=VALUE` variables separated by NUL; with the \
descriptors of stdin, stdout and stderr |
| `k` signal | start.py, after `s` | the number of a signal that the command shall get |
| `w` where | `haft serve mcp` | format number |
| `a` answer | the answering process | for `h`: exit code, stdout, stderr. For `s`: exit code, directory at the end, \
text for stderr. For `w`: `resident` or `run`, and the id of that run |
| `.` | the answering process | none, and no netstring: the answer takes a while, and the process lives |

The answering process is the resident of `surfaces/hook`. Inside `haft run` it is the run, which binds a socket of its
own at the same path, and answers with `answer_inside_run`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Final

from haft.values import dataclass

FORMAT: Final = b"1"


class HookKind:
    """The first bytes of messages."""

    HOOK: Final = b"h"
    SHELL: Final = b"s"
    SIGNAL: Final = b"k"
    WHERE: Final = b"w"
    ANSWER: Final = b"a"
    ALIVE: Final = b"."


LONGEST: Final = 64_000_000
"""The longest message. A sender of a longer one is cut off."""
MOST_DESCRIPTORS: Final = 3
MOST_FIELDS: Final = 16
"""A sender of a message with more fields is cut off: reading very many would take long."""
READ_AT_ONCE: Final = 1 << 18
_KINDS: Final = (HookKind.HOOK, HookKind.SHELL, HookKind.SIGNAL, HookKind.WHERE, HookKind.ANSWER)


class BadHookMessage(ValueError):
    """The bytes on the socket are no message."""


@dataclass(frozen=True, slots=True)
class HookMessage:
    """One message, with the descriptors that came with it. The receiver closes these."""

    kind: bytes
    fields: tuple[bytes, ...] = ()
    descriptors: tuple[int, ...] = ()

    def close(self) -> None:
        """Close the descriptors."""
        for each in self.descriptors:
            os.close(each)


def hook_socket_path(home: str | os.PathLike[str]) -> str:
    """Where the socket is: in the state home, also inside `haft run`."""
    return os.path.join(os.fspath(home), "hook", "socket")


def netstring(data: bytes) -> bytes:
    """The bytes with their length before them."""
    return b"%d:%s," % (len(data), data)


def encode_hook_message(kind: bytes, *fields: bytes) -> bytes:
    """A message as bytes."""
    return kind if kind == HookKind.ALIVE else kind + netstring(b"".join(map(netstring, fields)))


def decode_fields(body: bytes) -> tuple[bytes, ...]:
    """The fields in the body of a message. Raises `BadHookMessage`."""
    fields = []
    while body:
        length, colon, rest = body.partition(b":")
        if not colon or not length.isdigit() or len(length) > 9:
            raise BadHookMessage("a field has no length")
        size = int(length)
        if rest[size : size + 1] != b",":
            raise BadHookMessage("a field is shorter than it says")
        fields.append(rest[:size])
        if len(fields) > MOST_FIELDS:
            raise BadHookMessage("it has too many fields")
        body = rest[size + 1 :]
    return tuple(fields)


class HookMessageReader:
    """Puts messages together from the bytes that come."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Take bytes."""
        self._data += data

    def next(self) -> HookMessage | None:
        """The next message; None if it has not come whole yet. Raises `BadHookMessage`."""
        if not self._data:
            return None
        kind = bytes(self._data[:1])
        if kind == HookKind.ALIVE:
            del self._data[:1]
            return HookMessage(HookKind.ALIVE)
        if kind not in _KINDS:
            raise BadHookMessage(f"no message begins with {kind!r}")
        end = self._data.find(b":", 1, 12)
        if end == -1:
            if len(self._data) > 11:
                raise BadHookMessage("it has no length")
            return None
        length = bytes(self._data[1:end])
        if not length.isdigit() or int(length) > LONGEST:
            raise BadHookMessage("its length is no number, or too large")
        whole = end + 1 + int(length) + 1
        if len(self._data) < whole:
            return None
        body = bytes(self._data[end + 1 : whole - 1])
        if self._data[whole - 1 : whole] != b",":
            raise BadHookMessage("it is shorter than it says")
        del self._data[:whole]
        return HookMessage(kind, decode_fields(body))


class HookConnection:
    """One end of a connection, for the event loop: it does not block."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._reader = HookMessageReader()
        self._descriptors: list[int] = []

    async def receive(self) -> HookMessage | None:
        """The next message; None if the other end has closed the connection. Raises `BadHookMessage`."""
        while True:
            message = self._reader.next()
            if message is not None:
                descriptors, self._descriptors = tuple(self._descriptors), []
                return HookMessage(message.kind, message.fields, descriptors)
            await self._readable()
            try:
                data, descriptors_now, _flags, _address = socket.recv_fds(self._sock, READ_AT_ONCE, MOST_DESCRIPTORS)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError:
                return None
            self._descriptors += descriptors_now
            if len(self._descriptors) > MOST_DESCRIPTORS:
                raise BadHookMessage("it comes with too many descriptors")
            if not data:
                return None
            self._reader.feed(data)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._sock, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self._sock)

    async def send(self, kind: bytes, *fields: bytes) -> None:
        """Send a message. Raises `OSError` if the other end is gone."""
        await asyncio.get_running_loop().sock_sendall(self._sock, encode_hook_message(kind, *fields))

    def close(self) -> None:
        """Close the connection, and the descriptors that nobody took."""
        for each in self._descriptors:
            os.close(each)
        self._descriptors = []
        self._sock.close()

    @property
    def peer(self) -> int | None:
        """The id of the process at the other end; None if this platform does not say it. Raises `BadHookMessage` if
        another user started the process. The directory of the socket is closed to others anyway."""
        if not hasattr(socket, "SO_PEERCRED"):
            return None
        told = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process, user, _group = struct.unpack("3i", told)
        if user not in (os.getuid(), 0):
            raise BadHookMessage(f"it comes from another user, {user}")
        return int(process)


def no_decision() -> tuple[bytes, ...]:
    """The fields of the answer to `h` that leaves the call to the agent: exit code 0 and no text, for every agent."""
    return b"0", b"", b""


INSIDE_RUN: Final = (
    "this command is inside `haft run`, which confines and records everything: run it without haft-shell"
)


async def answer_inside_run(sock: socket.socket, run: str) -> None:
    """Answer one connection as the run with this id does: a hook gets no decision, because the run already confines and
    records. Closes the connection."""
    connection = HookConnection(sock)
    try:
        message = await connection.receive()
        if message is None:
            return
        message.close()
        if message.kind == HookKind.HOOK:
            await connection.send(HookKind.ANSWER, *no_decision())
        elif message.kind == HookKind.WHERE:
            await connection.send(HookKind.ANSWER, b"run", run.encode())
        elif message.kind == HookKind.SHELL:
            await connection.send(HookKind.ANSWER, b"126", b"", INSIDE_RUN.encode())
    except (BadHookMessage, OSError):
        return
    finally:
        connection.close()


def _connect(asked: socket.socket, path: str) -> None:
    """Connect to a socket. Its path is at most 107 bytes long, so a longer one is named by the descriptor of
    its directory."""
    if len(os.fsencode(path)) < 100:
        asked.connect(path)
        return
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        asked.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    finally:
        os.close(directory)


def ask_where(home: str | os.PathLike[str], seconds: float = 5.0) -> tuple[str, str] | None:
    """Who answers at the socket: `("run", ID)` inside `haft run`, `("resident", "")` where the hook's resident lives,
    None where nobody answers. Blocks."""
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    reader = HookMessageReader()
    try:
        asked.settimeout(seconds)
        _connect(asked, hook_socket_path(home))
        asked.sendall(encode_hook_message(HookKind.WHERE, FORMAT))
        while (message := reader.next()) is None or message.kind == HookKind.ALIVE:
            data = asked.recv(READ_AT_ONCE)
            if not data:
                return None
            reader.feed(data)
    except (OSError, BadHookMessage):
        return None
    finally:
        asked.close()
    role, run = (*message.fields, b"", b"")[:2]
    return role.decode("utf-8", "replace"), run.decode("utf-8", "replace")
