"""The proxy that this machine itself must use, from the host's own proxy variables."""

from __future__ import annotations

import base64
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

CONNECT_ANSWER_BYTES = 1 << 14


class Proxy(NamedTuple):
    """An HTTP proxy that tunnels connections (CONNECT)."""

    host: str
    port: int
    authorization: str | None

    def request(self, name: str, port: int) -> bytes:
        """The request to open a tunnel."""
        where = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        extra = "" if self.authorization is None else f"Proxy-Authorization: Basic {self.authorization}\r\n"
        return f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{extra}\r\n".encode()


class Upstream:
    """Chooses the proxy for a connection."""

    def __init__(self, variables: dict[str, str]) -> None:
        """`variables`: the host's proxy variables, by their names in lower case."""
        self._variables = variables
        none = variables.get("no_proxy", "")
        self._direct = [each.strip().lower().lstrip("*").lstrip(".") for each in none.split(",") if each.strip()]
        self._never = "*" in [each.strip() for each in none.split(",")]

    def proxy_for(self, name: str, port: int) -> Proxy | None:
        """The proxy for a name and port; None for a direct connection. Raises `ValueError` if the variable names a kind
        of proxy that is not supported."""
        kind = "http_proxy" if port == 80 else "https_proxy"
        text = self._variables.get(kind) or self._variables.get("all_proxy")
        if not text or self._never or any(_is_below(name, port, each) for each in self._direct):
            return None
        try:
            found = urlsplit(text if "://" in text else f"http://{text}")
            port_of_proxy = found.port or 80
        except ValueError:  # Its text would show the password.
            raise ValueError("the address of this machine's proxy is not valid") from None
        if found.scheme != "http" or not found.hostname:
            raise ValueError("this machine's proxy is of a kind that haft cannot use: only http:// works")
        user = None
        if found.username is not None:
            secret = f"{unquote(found.username)}:{unquote(found.password or '')}"
            user = base64.b64encode(secret.encode()).decode()
        return Proxy(found.hostname, port_of_proxy, user)


def _is_below(name: str, port: int, entry: str) -> bool:
    host, colon, number = entry.rpartition(":")
    if colon and number.isdigit() and ":" not in host:
        if int(number) != port:
            return False
        entry = host
    return bool(entry) and (name == entry or name.endswith(f".{entry}"))
