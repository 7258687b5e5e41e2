"""The protocol between host and helper about one call: the request, and the final report.

The host sends four bytes of length and then JSON, later perhaps `T` (end the call: TERM, then KILL after a grace
period) or `K` (KILL at once). Before each call of a program that outlives its calls, the host sends `C`. To give an
order about such a program, the host sends `R`, a length and JSON, and gets a line with `told` as the answer. The final
report is one line of JSON, sent when all processes of the call have ended. When the host dies, the socket closes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any


def read_exactly(control: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes. Raises `EOFError` if the host is gone."""
    data = b""
    while len(data) < size:
        part = control.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return data


def read_request(control: socket.socket) -> dict[str, Any]:
    """Read a request. Raises `EOFError` if the host closed the socket before it sent one."""
    try:
        found: dict[str, Any] = json.loads(read_exactly(control, int.from_bytes(read_exactly(control, 4), "big")))
    except OSError as error:
        raise EOFError from error
    return found


def send_report(control: socket.socket, report: dict[str, Any]) -> None:
    """Send a report, if the host still exists."""
    with contextlib.suppress(OSError):
        control.setblocking(True)
        control.sendall(json.dumps(report).encode() + b"\n")


def failure(error: BaseException) -> list[Any]:
    """The errno and the message that say why a command could not be started."""
    return [error.errno if isinstance(error, OSError) else None, f"{error}"]


def never_started(why: list[Any]) -> dict[str, Any]:
    """The report about a command that was not run."""
    return {"failed": why, "status": 127, "ended": [], "left": [], "hit": None}


def bytes_of(text: str) -> bytes:
    """The bytes of a text from the host, in which surrogates stand for bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def argv_and_env(request: dict[str, Any]) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The command's arguments and environment as bytes."""
    return (
        [bytes_of(str(word)) for word in request["argv"]],
        {bytes_of(key): bytes_of(value) for key, value in request["env"].items()},
    )


def programs(name: bytes, env: dict[bytes, bytes]) -> list[bytes]:
    """The files that a command name may mean: if the name has a slash, that path; if not, the name in each directory of
    PATH."""
    if b"/" in name:
        return [name]
    return [os.path.join(entry, name) for entry in env.get(b"PATH", b"/usr/bin:/bin").split(b":") if entry]
