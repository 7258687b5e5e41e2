"""What host and helper say to each other about one call: the request, and the last word.

The host sends four bytes of length and then JSON, later perhaps `T` (end it: TERM, then KILL after a grace) or `K` (at
once). About a program that outlives its calls it says `R`, a length and JSON, and is answered by a line with `told`.
The last word is one line of JSON when nothing of the call is left. When the host dies, the socket closes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any


def read_exactly(control: socket.socket, size: int) -> bytes:
    """So many bytes, or `EOFError` when the host is gone."""
    data = b""
    while len(data) < size:
        part = control.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return data


def read_request(control: socket.socket) -> dict[str, Any]:
    """What to run. `EOFError` where the host changed its mind before it said so."""
    try:
        found: dict[str, Any] = json.loads(read_exactly(control, int.from_bytes(read_exactly(control, 4), "big")))
    except OSError as error:
        raise EOFError from error
    return found


def tell(control: socket.socket, report: dict[str, Any]) -> None:
    """The last word. A host that is gone misses it."""
    with contextlib.suppress(OSError):
        control.setblocking(True)
        control.sendall(json.dumps(report).encode() + b"\n")


def failure(error: BaseException) -> list[Any]:
    """Why a command could not be started."""
    return [error.errno if isinstance(error, OSError) else None, f"{error}"]


def never_started(why: list[Any]) -> dict[str, Any]:
    """The last word about a command that was not run."""
    return {"failed": why, "status": 127, "ended": [], "left": [], "hit": None}


def bytes_of(text: str) -> bytes:
    """Text from the host as the bytes it stands for."""
    return text.encode("utf-8", "surrogateescape")


def argv_and_env(request: dict[str, Any]) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The command as the kernel wants it."""
    return (
        [bytes_of(str(word)) for word in request["argv"]],
        {bytes_of(key): bytes_of(value) for key, value in request["env"].items()},
    )


def programs(name: bytes, env: dict[bytes, bytes]) -> list[bytes]:
    """The files that a command may mean: itself where it is a path, else that name in each directory of PATH."""
    if b"/" in name:
        return [name]
    return [os.path.join(entry, name) for entry in env.get(b"PATH", b"/usr/bin:/bin").split(b":") if entry]
