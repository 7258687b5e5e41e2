"""What a script is made of: turns, which are what the model answers, and faults, which it fails with.

A script is a list of steps. A step is a turn, a fault, several attempts, or a function that gets the request and
returns one of them. Used by `model`, which finds the step, and by the dialects, which write it. Knows nothing of HTTP.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Literal

from haft.values import dataclass, field, replace

if TYPE_CHECKING:
    from haft.testing.scripted_model.received import ReceivedRequest

FaultKind = Literal[
    "rate-limited", "server-error", "overloaded", "unauthorized", "context-overflow", "invalid-request", "unknown-model"
]


@dataclass(frozen=True)
class Usage:
    """The tokens that an answer reports."""

    input: int = 9
    output: int = 9
    cached: int = 0
    """How many of the input tokens came from the provider's cache."""


@dataclass(frozen=True)
class Call:
    """A tool call of the model."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    """One string as the whole input, without arguments: a custom tool of the Responses API."""
    namespace: str | None = None
    """The group of a tool, where a request offers tools in groups."""
    raw: str | None = None
    """What is sent in place of the arguments as JSON, to the letter."""

    @property
    def written(self) -> str:
        """The arguments as the model writes them."""
        return self.raw if self.raw is not None else json.dumps(dict(self.arguments))


@dataclass(frozen=True)
class Fault:
    """A request that fails. Each dialect has its own status and body for a kind."""

    kind: FaultKind
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    """In place of the status that the dialect has for the kind."""


@dataclass(frozen=True)
class Pause:
    """Where an answer waits: after so many pieces, until the event is set, or the client or the server goes."""

    event: threading.Event
    after: int


@dataclass(frozen=True)
class Break:
    """Where an answer ends too early: after so many pieces, or in the middle. Without an error, by a reset."""

    after: int | None
    error: Fault | None


@dataclass(frozen=True)
class Turn:
    """What the model answers: words, calls, or both. `+` joins two turns into one."""

    words: str | None = None
    calls: tuple[Call, ...] = ()
    usage: Usage = field(default_factory=Usage)
    is_cut_off: bool = False
    pause: Pause | None = None
    broken: Break | None = None

    def __add__(self, other: Turn) -> Turn:
        both = [words for words in (self.words, other.words) if words is not None]
        return replace(self, words="".join(both) if both else None, calls=(*self.calls, *other.calls))

    def used(self, input: int, output: int, *, cached: int = 0) -> Turn:  # noqa: A002  as the APIs name it
        """The same turn, with these tokens."""
        return replace(self, usage=Usage(input, output, cached))

    def cut_off(self) -> Turn:
        """The same turn, ended by the limit of output tokens. The arguments of the last call break off halfway."""
        calls = self.calls
        if calls:
            last = calls[-1]
            # A whole answer of Anthropic holds an object, so that an argument is missing there.
            kept = dict(list(last.arguments.items())[:-1])
            calls = (*calls[:-1], replace(last, arguments=kept, raw=last.written[: len(last.written) // 2]))
        return replace(self, calls=calls, is_cut_off=True)

    def until(self, event: threading.Event, *, after: int = 0) -> Turn:
        """The same turn, but the server waits for the event: before it answers, or after so many pieces."""
        return replace(self, pause=Pause(event, after))

    def breaking(self, *, after: int | None = None, error: Fault | None = None) -> Turn:
        """The same turn, broken off after so many pieces, or else in the middle: by a reset of the connection, or by
        an error in the stream."""
        return replace(self, broken=Break(after, error))


@dataclass(frozen=True)
class Attempts:
    """A step that differs from attempt to attempt. The last one stays."""

    steps: tuple[Step, ...]


Step = Turn | Fault | Attempts | Callable[["ReceivedRequest"], "Step"]


def say(words: str) -> Turn:
    """A step: words. `{{result}}` stands for the last result, `{{tools}}` for the offered tools."""
    return Turn(words)


def call(name: str, /, **arguments: Any) -> Turn:
    """A step: one call. The name can be the end of an offered name, such as `shell` of `mcp__haft__shell`. With `!` in
    front, the name is sent as it is, offered or not."""
    return Turn(calls=(Call(name, arguments),))


def calls(*turns: Turn) -> Turn:
    """A step: several calls at once."""
    joined = turns[0]
    for one in turns[1:]:
        joined += one
    return joined


def text_call(name: str, text: str) -> Turn:
    """A step: a call of a custom tool, whose input is one text."""
    return Turn(calls=(Call(name, text=text),))


def broken_call(name: str, raw: str = '{"command": "ls"') -> Turn:
    """A step: a call whose arguments are no valid JSON. A whole answer of Anthropic holds no arguments then."""
    return Turn(calls=(Call(name, raw=raw),))


def attempts(*steps: Step) -> Attempts:
    """A step whose first attempt is the first of these, and so on: `attempts(rate_limited(1), say("done"))`. All
    requests count that a script gets for the step, also those of another conversation with the same prompt."""
    return Attempts(steps)


def rate_limited(retry_after: float | datetime | None = None) -> Fault:
    """A fault: too many requests. `Retry-After` says seconds, or a date."""
    if retry_after is None:
        return Fault("rate-limited")
    if isinstance(retry_after, datetime):
        header = format_datetime(retry_after.astimezone(UTC), usegmt=True)
    else:
        header = f"{retry_after:g}"
    return Fault("rate-limited", {"retry-after": header})


def server_error(status: int = 500) -> Fault:
    """A fault: the provider has a problem."""
    return Fault("server-error", status=status)


def overloaded() -> Fault:
    """A fault: the provider has too much to do. Status 529 with Anthropic, 503 with the others."""
    return Fault("overloaded")


def unauthorized() -> Fault:
    """A fault: the key is wrong."""
    return Fault("unauthorized")


def context_overflow() -> Fault:
    """A fault: the conversation is too long for the model."""
    return Fault("context-overflow")


def invalid_request() -> Fault:
    """A fault: the provider rejects the request."""
    return Fault("invalid-request")


def unknown_model() -> Fault:
    """A fault: there is no such model."""
    return Fault("unknown-model")
