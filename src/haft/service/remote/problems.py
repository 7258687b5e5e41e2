"""Errors of a server: problem documents as the exceptions that the embedded service raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from haft.contracts import BadUsage, HaftError, InvalidArguments, MachineError, Rejected

_OTHERS: Final[Mapping[str, type[HaftError]]] = {
    "invalid-request": BadUsage,
    "bad-json": BadUsage,
    "not-found": BadUsage,
    "key-reused": BadUsage,
    "too-large": BadUsage,
    "forbidden": Rejected,
    "unauthenticated": Rejected,
    "foreign-page": Rejected,
}
"""Codes that only requests over HTTP have, each with the exception that says who must act."""
_LONGEST_TEXT: Final = 300


class ServerUnreachable(MachineError):
    """The server did not answer, or something else answered in its place."""

    code = "server-unreachable"


def error_from(status: int, content: bytes) -> HaftError:
    """The error in an answer with this HTTP status."""
    try:
        facts = orjson.loads(content)
        code, message = facts["code"], facts["detail"]
    except (ValueError, KeyError, TypeError):
        text = " ".join(content[:_LONGEST_TEXT].decode("utf-8", "replace").split())
        return ServerUnreachable(
            f"the server answered with status {status}, and not as haft does" + (f": {text}" if text else ""),
            hint="check the address; a proxy between may have answered",
        )
    return made_error(code, message, facts.get("hint"), is_retryable=bool(facts.get("retryable")))


def made_error(code: str, message: str, hint: str | None, *, is_retryable: bool) -> HaftError:
    """The exception for an error code. Its class is the one that the embedded service raises."""
    kind = _OTHERS.get(code) or _KINDS.get(code, HaftError)
    error = kind.__new__(kind)
    HaftError.__init__(error, message, hint=hint)
    if isinstance(error, InvalidArguments):
        error.problems = (message,)
    error.__dict__.update(code=code, retryable=is_retryable)  # The server knows better than the class.
    return error


def _kinds(kind: type[HaftError]) -> Iterator[tuple[str, type[HaftError]]]:
    """The codes below a class, those of the classes nearest to the root last."""
    for below in kind.__subclasses__():
        yield from _kinds(below)
    for below in reversed(kind.__subclasses__()):
        if "code" in below.__dict__:
            yield below.code, below


_KINDS: Final[dict[str, type[HaftError]]] = dict(_kinds(HaftError))


def is_told_to_wait(status: int) -> bool:
    """Whether a status means that the server did nothing, and should be asked again later."""
    return status in (429, 502, 503)
