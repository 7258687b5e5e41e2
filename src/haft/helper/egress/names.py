"""Answers the look-ups of a call: every name gets one made-up address, for as long as the call lasts.

Nothing is looked up outside, so no data can leave through look-ups. A name that was not granted gets an address too:
then the program itself reports which host and port it could not reach.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable

NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
NUMBER = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)")
"""Names that a resolver would take for an address."""
A, PTR, AAAA, INTERNET = 1, 12, 28, 1
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME, NOT_IMPLEMENTED = 0, 2, 3, 4
SECONDS_VALID = 60


def answer_query(
    query: bytes, address_of: Callable[[str], str | None], name_at: Callable[[str], str | None]
) -> bytes | None:
    """The answer to a DNS query; None if the query cannot be read. `address_of` returns the address of a name, or None
    if no more names can be given one; `name_at` returns the name that has an address."""
    if len(query) < 17 or query[2] & 0x80:
        return None
    labels, at = [], 12
    try:
        while query[at]:
            if query[at] > 63:
                return None
            labels.append(query[at + 1 : at + 1 + query[at]])
            at += 1 + query[at]
        kind, family = struct.unpack_from(">HH", query, at + 1)
    except (IndexError, struct.error):
        return None
    name = b".".join(labels).decode("latin-1").lower()
    code, record = NO_ERROR, b""
    if family != INTERNET or query[2] & 0x78 or query[4:6] != b"\0\1":
        code = NOT_IMPLEMENTED
    elif not is_name(name):
        code = NO_SUCH_NAME
    elif name == "localhost" or name.endswith(".localhost"):
        record = {A: _record(A, b"\x7f\0\0\1"), AAAA: _record(AAAA, b"\0" * 15 + b"\1")}.get(kind, b"")
    elif name.endswith((".in-addr.arpa", ".ip6.arpa")):
        found = name_at(".".join(reversed(name.removesuffix(".in-addr.arpa").split("."))))
        code = NO_SUCH_NAME if found is None else NO_ERROR
        if found is not None and kind == PTR:
            record = _record(PTR, b"".join(bytes((len(part),)) + part.encode() for part in found.split(".")) + b"\0")
    elif kind == A:
        address = address_of(name)
        code = SERVER_FAILURE if address is None else NO_ERROR
        record = b"" if address is None else _record(A, socket.inet_aton(address))
    head = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, bool(record), 0, 0)
    return head + query[12 : at + 5] + record


def is_name(text: str) -> bool:
    """Whether a text is the name of a host, and not an address in some notation."""
    return NAME.fullmatch(text) is not None and NUMBER.fullmatch(text) is None


def _record(kind: int, data: bytes) -> bytes:
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, INTERNET, SECONDS_VALID, len(data)) + data
