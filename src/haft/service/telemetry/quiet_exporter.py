"""Sends spans to a collector, and says once if that fails. The exporter itself writes several lines for each attempt,
which would fill the terminal of a command and the log of a server."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_log = logging.getLogger("haft")
_quiet: Final = threading.local()


class QuietExporter(SpanExporter):
    """The exporter of OTLP over HTTP."""

    def __init__(self, endpoint: str | None) -> None:
        """`endpoint` is the whole address; None: as the standard variables say."""
        self._exporter = trace_exporter.OTLPSpanExporter(endpoint)
        self._has_ended = False
        self._has_failed = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._has_ended:
            return SpanExportResult.FAILURE
        with _silence():
            result = self._exporter.export(spans)
        has_failed = result is not SpanExportResult.SUCCESS
        if has_failed and not self._has_failed:
            _log.warning("traces cannot be sent to the collector: spans are lost until it answers; calls go on")
        self._has_failed = has_failed
        return result

    def shutdown(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # its parent class has types


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """A context manager in which the exporter logs nothing from this thread. Exporters of the embedding program run in
    other threads."""
    _quiet.is_on = True
    try:
        yield
    finally:
        _quiet.is_on = False


def _is_wanted(_record: logging.LogRecord) -> bool:
    return not getattr(_quiet, "is_on", False)


logging.getLogger(trace_exporter.__name__).addFilter(_is_wanted)
