"""The HTTP server of the scripted model: it reads requests, and sends answers, pauses, breaks and errors."""

from __future__ import annotations

import contextlib
import gzip
import json
import select
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from haft.testing.scripted_model.dialects import DIALECTS, Dialect, SentEvent
from haft.testing.scripted_model.received import ReceivedRequest
from haft.testing.scripted_model.steps import Fault, Turn

if TYPE_CHECKING:
    from haft.testing.scripted_model.model import ScriptedModel

MODELS = {"data": [{"id": "scripted", "object": "model", "type": "model"}], "models": [{"name": "models/scripted"}]}
LOOK_SECONDS = 0.02
"""How often a paused answer looks whether the client is still there."""


class _Gone(Exception):
    """The client or the server ends."""


class ModelServer(ThreadingHTTPServer):
    """The server on loopback. A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, model: ScriptedModel) -> None:
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": model}))

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client may go at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model: ScriptedModel

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send({})

    def do_GET(self) -> None:
        is_list = self.path.split("?")[0].rstrip("/").endswith("/models")
        self._send(MODELS if is_list else {"error": {"message": "not found"}}, 200 if is_list else 404)

    def do_POST(self) -> None:
        body = json.loads(self._body() or b"{}")
        path = self.path.split("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            return self._send({"input_tokens": 9, "totalTokens": 9})
        dialect = next((dialect for dialect in DIALECTS if path.endswith(dialect.path)), None)
        if dialect is None:
            return self._send({"error": {"message": "not found", "type": "not_found_error"}}, 404)
        streams = bool(body.get("stream")) or ":stream" in path
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = self.model.receive(dialect, self.path, headers, body, streams=streams)
        try:
            self._answer(dialect, request)
        except (OSError, _Gone):
            self.close_connection = True
            request.gone.set()
        finally:
            request.finished.set()

    def _answer(self, dialect: Dialect, request: ReceivedRequest) -> None:
        answer = request.answer
        assert answer is not None
        if isinstance(answer, Turn) and answer.pause is not None and not (request.streams and answer.pause.after):
            self._wait(answer.pause.event)
        fault = answer if isinstance(answer, Fault) else answer.broken.error if answer.broken is not None else None
        if isinstance(answer, Turn) and (request.streams or fault is None):
            whole, events = dialect.write(request.body, answer)
            if request.streams:
                self._stream(dialect, answer, events)
            else:
                self._send(whole, is_broken=answer.broken is not None)
        elif fault is not None:
            status, body = dialect.error(fault)
            self._send(body, status, fault.headers)

    def _stream(self, dialect: Dialect, turn: Turn, events: Sequence[SentEvent]) -> None:
        sent, total = 0, sum(event.is_piece for event in events)
        last = total + 1
        if turn.broken is not None:
            last = total // 2 if turn.broken.after is None else min(turn.broken.after, total)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            if turn.broken is not None and sent == last and (event.is_piece or sent == total):
                if turn.broken.error is None:
                    self._reset()
                    return
                self._send_event(dialect.error_event(turn.broken.error))
                break
            if event.is_piece:
                if turn.pause is not None and sent == turn.pause.after > 0:
                    self._wait(turn.pause.event)
                sent += 1
            self._send_event(event)
        self.wfile.write(b"0\r\n\r\n")

    def _send_event(self, event: SentEvent) -> None:
        head = f"event: {event.name}\n" if event.name else ""
        data = f"{head}data: {event.data if isinstance(event.data, str) else json.dumps(event.data)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send(
        self,
        value: Mapping[str, Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        is_broken: bool = False,
    ) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else data[: len(data) // 2] if is_broken else data)
        if is_broken:
            self._reset()

    def _reset(self) -> None:
        """End the connection as a machine does that fails."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()  # Holds the connection open as well.
        self.connection.close()

    def _wait(self, event: threading.Event) -> None:
        while not event.wait(LOOK_SECONDS):
            readable, _, _ = select.select([self.connection], [], [], 0)
            if self.model.closing.is_set() or (readable and not self.connection.recv(1, socket.MSG_PEEK)):
                raise _Gone

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw
