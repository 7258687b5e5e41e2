"""A collector of OpenTelemetry: a real HTTP server that reads what programs send over OTLP."""

import contextlib
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

PATIENCE = 60


@dataclass
class ReceivedSpan:
    name: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    attributes: dict
    is_error: bool
    resource: dict


class Collector:
    """Keeps the spans that arrived."""

    def __init__(self):
        self.spans = []
        self.bodies = []
        self._arrived = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces", self.path
                collector.receive(body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_words):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def receive(self, body):
        request = ExportTraceServiceRequest.FromString(body)
        found = [
            ReceivedSpan(
                span.name,
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.start_time_unix_nano,
                span.end_time_unix_nano,
                _values(span.attributes),
                span.status.code == span.status.STATUS_CODE_ERROR,
                _values(of.resource.attributes),
            )
            for of in request.resource_spans
            for scope in of.scope_spans
            for span in scope.spans
        ]
        with self._arrived:
            self.bodies.append(body)
            self.spans += found
            self._arrived.notify_all()

    def named(self, name):
        """The one span with this name, once it is there."""
        (span,) = self.several(name, 1)
        return span

    def several(self, name, count):
        """The spans with this name, once there are so many."""

        def found():
            return [span for span in self.spans if span.name == name]

        with self._arrived:
            assert self._arrived.wait_for(lambda: len(found()) >= count, PATIENCE), self.spans
            return found()

    def below(self, parent):
        return sorted((span for span in self.spans if span.parent == parent.id), key=lambda span: span.start)


def _values(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextlib.contextmanager
def collecting():
    collector = Collector()
    try:
        yield collector
    finally:
        collector.close()
