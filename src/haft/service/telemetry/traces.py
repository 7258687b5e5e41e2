"""Traces of calls, by the conventions of OpenTelemetry for generative AI: one span `execute_tool NAME` for each call,
with a child span for each thing that it waited for, and for the commit of its changes. Calls that a call made are its
children.

Only this module and `quiet_exporter` import OpenTelemetry. Spans wait in a bounded queue, and a thread sends them: a
collector that is slow or gone costs spans, never a call.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, Status, StatusCode, TraceFlags

from haft.audit import Redactor
from haft.contracts import Outcome, RunId, Trace
from haft.pipeline import Run
from haft.service.telemetry.choice import Destination
from haft.service.telemetry.content import content_of
from haft.service.telemetry.quiet_exporter import QuietExporter
from haft.version import __version__

SHORTEST_WAIT: Final = 0.001
"""Waits that are shorter, in seconds, get no span."""
FLUSH_SECONDS: Final = 1.0
"""How long the end of a host waits until its last spans are sent."""
MOST_WAITS: Final = 50
"""How many child spans one call gets at most."""
LONGEST_DESCRIPTION: Final = 1_000


class Traces:
    """Makes the spans of one host's calls."""

    def __init__(
        self,
        redactor: Redactor,
        destination: Destination = "collector",
        endpoint: str = "",
        *,
        with_content: bool = False,
    ) -> None:
        """`endpoint` is the collector's address, without the path of traces; empty: as the standard variables say."""
        self._redactor = redactor
        self._with_content = with_content
        self._spans: dict[RunId, Span] = {}
        """The spans of the calls that have not ended."""
        self._exporter: QuietExporter | None = None
        self._provider: TracerProvider | None = None
        provider: trace.TracerProvider
        if destination == "program":
            provider = trace.get_tracer_provider()
        else:
            own = Resource.create({"service.version": __version__}).attributes
            name = own.get("service.name")
            is_named = isinstance(name, str) and not name.startswith("unknown_service")
            resource = Resource({**own, "service.name": name if is_named else "haft"})
            self._exporter = QuietExporter(f"{endpoint.rstrip('/')}/v1/traces" if endpoint else None)
            # It must not register itself for the end of the process: there, it would wait for the collector.
            self._provider = provider = TracerProvider(
                resource=resource, shutdown_on_exit=False, id_generator=_GivenTraceIds()
            )
            self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = provider.get_tracer("haft", __version__)

    def began(self, run: Run) -> None:
        with _given_trace_id(run.call.trace):
            span = self._tracer.start_span(
                f"execute_tool {run.call.name}",
                context=trace.set_span_in_context(self._parent_of(run)),
                start_time=_nanoseconds(run.started_at),
                attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": run.call.name},
            )
        self._spans[run.id] = span
        place = span.get_span_context()
        run.revise(
            trace=Trace(
                trace.format_trace_id(place.trace_id),
                trace.format_span_id(place.span_id),
                sampled=place.trace_flags.sampled,
            )
        )

    def began_task(self, run: Run) -> None:
        # The task and its context end with the run. In it, spans of the tool itself become children of this span.
        contexts.attach(trace.set_span_in_context(self._spans[run.id]))

    def ended(self, run: Run, outcome: Outcome) -> None:
        span = self._spans.pop(run.id)
        if span.is_recording():
            for name, start, end in list(_waits(run, outcome))[:MOST_WAITS]:
                wait = self._tracer.start_span(
                    f"haft.{name}", context=trace.set_span_in_context(span), start_time=_nanoseconds(start)
                )
                wait.end(_nanoseconds(end))
            self._describe(span, run, outcome)
        span.end(_nanoseconds(outcome.started_at + outcome.duration))

    def close(self) -> None:
        """Send the last spans, and give up after a moment."""
        if self._provider is None or self._exporter is None:
            return
        sending = threading.Thread(target=self._provider.shutdown, name="haft-telemetry", daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)
        if sending.is_alive():
            self._exporter.shutdown()

    def _parent_of(self, run: Run) -> Span:
        """The span to which the span of a new call belongs: the caller's run, or a span that its tool has begun below
        it; the trace that the caller named; or the span in which the embedding program makes the call."""
        current = trace.get_current_span()
        place = current.get_span_context()
        caller = None if run.parent is None else self._spans.get(run.parent.id)
        if caller is not None:
            is_below = place.is_valid and place.trace_id == caller.get_span_context().trace_id
            return current if is_below else caller
        named = run.call.trace
        if named is None or not named.span_id:
            return current
        if place.is_valid and trace.format_trace_id(place.trace_id) == named.trace_id:
            return current
        flags = TraceFlags(TraceFlags.SAMPLED if named.sampled else TraceFlags.DEFAULT)
        return NonRecordingSpan(
            SpanContext(int(named.trace_id, 16), int(named.span_id, 16), is_remote=True, trace_flags=flags)
        )

    def _describe(self, span: Span, run: Run, outcome: Outcome) -> None:
        call, tool = run.call, run.call.tool
        known: dict[str, str | bool | int | None] = {
            "gen_ai.tool.call.id": run.id,
            "gen_ai.conversation.id": outcome.thread or None,
            "user.name": outcome.who,
            "haft.status": outcome.status,
            "haft.cached": outcome.cached,
            "haft.changed_files": len(outcome.changes.files),
            "haft.batch": call.batch,
        }
        if tool is not None:
            known["gen_ai.tool.type"] = "function"
            known["gen_ai.tool.description"] = tool.spec.description[:LONGEST_DESCRIPTION]
            known["haft.tool.kind"] = tool.spec.kind
        if call.decision is not None:
            known["haft.decision"] = call.decision.action
            known["haft.decision.by"] = call.decision.by
        if outcome.error is not None:
            known["error.type"] = outcome.error.code
            span.set_status(Status(StatusCode.ERROR))
        span.set_attributes({name: value for name, value in known.items() if value is not None})
        if self._with_content:
            span.set_attributes(content_of(run, outcome, self._redactor))


_GIVEN: Final[ContextVar[str | None]] = ContextVar("haft_given_trace_id", default=None)


@contextlib.contextmanager
def _given_trace_id(given: Trace | None) -> Iterator[None]:
    """A context manager: a span that begins a new trace in it gets the id of `given`. An HTTP request without
    `traceparent` has such an id already, in its answers and in the log of the server."""
    token = _GIVEN.set(None if given is None else given.trace_id)
    try:
        yield
    finally:
        _GIVEN.reset(token)


class _GivenTraceIds(RandomIdGenerator):
    def generate_trace_id(self) -> int:
        given = _GIVEN.get()
        return super().generate_trace_id() if given is None else int(given, 16)


def _waits(run: Run, outcome: Outcome) -> Iterator[tuple[str, float, float]]:
    """What a call waited for, and its commit, each with its start and its end."""
    for (_seq, start, status), (_next, end, _status) in zip(run.states, run.states[1:], strict=False):
        if status == "blocked-on-user":
            yield "approval", start, end
    for step in run.steps:
        is_commit = step.name == "commit" and outcome.changes.files
        if is_commit or step.end - step.start >= SHORTEST_WAIT:
            yield step.name, step.start, step.end


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
