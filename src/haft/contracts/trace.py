"""The trace that a call belongs to, in the form of the W3C Trace Context, which OpenTelemetry uses.

A caller names its trace in a `traceparent`: over HTTP in a header, over MCP in `_meta`, for a command in the variable
`TRACEPARENT`. haft puts the id of the trace into the audit log, with or without telemetry.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from haft.lazy import regex
from haft.values import dataclass

_TRACEPARENT = regex(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class Trace:
    """A place in a trace: the id of the trace, and the id of the span to which new spans belong."""

    trace_id: str
    span_id: str
    """Empty if the trace has no span yet, so that the first span of haft is its root."""
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def parse_traceparent(text: object) -> Trace | None:
    """The trace that a `traceparent` names; None if it names none. A caller's mistake in it never fails a call."""
    match = _TRACEPARENT.fullmatch(text.strip()) if isinstance(text, str) and len(text) < 512 else None
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return Trace(trace_id, span_id, sampled=bool(int(flags, 16) & 1))


_CALLERS: ContextVar[Trace | None] = ContextVar("haft_callers_trace", default=None)


def callers_trace() -> Trace | None:
    """The trace of whoever makes the calls in this context; None if it named none."""
    return _CALLERS.get()


@contextlib.contextmanager
def in_trace(traceparent: object) -> Iterator[Trace | None]:
    """A context manager: calls that are made in it continue this trace, a `Trace` or the text of a `traceparent`.
    Without a valid one, they begin their own."""
    trace = traceparent if isinstance(traceparent, Trace) else parse_traceparent(traceparent)
    token = _CALLERS.set(trace)
    try:
        yield trace
    finally:
        _CALLERS.reset(token)
