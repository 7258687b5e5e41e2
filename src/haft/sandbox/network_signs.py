"""Finds out from the output and exit code of a program whether the program had no network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from haft.lazy import regex

NO_NETWORK: Final = regex(
    r"could not resolve (?:host|hostname|proxy)|temporary failure in name resolution|name or service not known"
    r"|unable to resolve host|failed to connect to (?!127\.|localhost\b|\[?::1)\S+ port \d"
    r"|network is unreachable|getaddrinfo[ (:]+(?:EAI_|failed)|\bgaierror\b|\bNameResolutionError\b"
    r"|\bENOTFOUND\b|\bEAI_AGAIN\b|\bENETUNREACH\b|failed to lookup address|could not translate host name"
    r"|nodename nor servname|dns error|\bdns failed\b|temporary failure resolving|dial tcp: lookup "
    r"|UnknownHostException|could not contact dns servers",
    re.IGNORECASE,
)
_VAGUE: Final = regex(r"\bfetch failed\b|unable to connect\. is the computer able to access the url", re.IGNORECASE)
"""The messages of Node and Bun for any failed request, also for one that a server on this machine refused."""
REFUSED: Final = regex(r"connection ?refused|\bECONNREFUSED\b|couldn't connect to server", re.IGNORECASE)
_LOCAL_PORT: Final = regex(
    r"(?:\blocalhost|\b127(?:\.\d{1,3}){3}|\[?::1\]?)['\"]?(?::|,? ?port[ =:]{1,2})(\d{1,5})\b", re.IGNORECASE
)
_LISTENING: Final = "0A"
CURL_UNRESOLVED: Final = 6
"""The exit code of curl if it could not resolve a host."""


def missed_network(lines: Sequence[str]) -> str | None:
    """The last line that shows that the program had no network; None if no line does. A refused connection counts only
    if its port is open outside the sandbox; vague messages count only if no connection was refused."""
    said = [line for line in lines if NO_NETWORK.search(line)]
    refused = [line for line in lines if REFUSED.search(line)]
    if said:
        return said[-1]
    if refused:
        return refused[-1] if _host_listens(refused[-1], lines) else None
    return next((line for line in reversed(lines) if _VAGUE.search(line)), None)


def sign_in(line: str) -> re.Pattern[str]:
    """The pattern by which `missed_network` found a line."""
    return next(sign for sign in (NO_NETWORK, REFUSED, _VAGUE) if sign.search(line))


def _host_listens(line: str, lines: Sequence[str]) -> bool:
    """Whether the local port that refused the connection is open outside the sandbox. The port is the one that `line`
    names. If `line` names no port, the ports in `lines` are checked. If the port is closed outside, too, the sandbox
    did not cause the failure."""
    named = _LOCAL_PORT.findall(line) or [port for each in lines for port in _LOCAL_PORT.findall(each)]
    ports = set(map(int, named))
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/self/net/{name}") as file:
                for entry in file.readlines()[1:]:
                    words = entry.split()
                    if words[3] == _LISTENING:
                        found.add(int(words[1].rsplit(":", 1)[1], 16))
        except (OSError, ValueError, IndexError):
            continue
    return bool(ports & found)
