"""Where a server listens: addresses, host names and sockets. Both servers of haft use this."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import Final

from haft.contracts import BadUsage, MachineError
from haft.lazy import regex

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ADDRESS: Final = regex(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]*):(?P<port>[0-9]{1,5})")
_NAME: Final = regex(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)")
_WAITING: Final = 1024
"""How many connections can wait until they are accepted."""


class CannotListen(MachineError):
    """The server cannot listen on its address."""

    def __init__(self, address: str, cause: OSError) -> None:
        super().__init__(
            f"haft cannot listen on {address}: {cause.strerror or cause}",
            hint="choose another port; port 0 lets the system choose one",
        )


def split_address(text: str, option: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT. Raises `BadUsage` if the text, the value of `option`, is nothing like it."""
    parsed = _ADDRESS.fullmatch(text)
    if parsed is None or int(parsed["port"]) > 65535:
        raise BadUsage(
            f"`{text}` is not an address to listen on", hint=f"write HOST:PORT, for example `{option} 127.0.0.1:8000`"
        )
    host = parsed["host"].strip("[]")
    return ("127.0.0.1" if host == "localhost" else host), int(parsed["port"])


def is_loopback(host: str) -> bool:
    """Whether an address is reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_names(names: Sequence[str]) -> frozenset[str]:
    """The names under which the server is reached. Raises `BadUsage` if one of them is not a host name."""
    for name in names:
        if _NAME.fullmatch(name) is None:
            raise BadUsage(
                f"`{name}` is not a host name", hint="`--allow-host` takes a name without a port, such as haft.example"
            )
    return LOOPBACK_NAMES | {name.lower() for name in names}


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address."""
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(shown, error) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        raise CannotListen(shown, error) from error
    return listening


def place_of(listening: socket.socket) -> str:
    """The HOST:PORT of a socket that listens, as addresses on the web write it."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
