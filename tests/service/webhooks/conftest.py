"""A receiver of webhooks: a real HTTP server, whose answers a test chooses."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Receiver(ThreadingHTTPServer):
    """Keeps what it receives."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/hook?key=of-the-receiver"
        self.received = []
        self.answers = []
        """The statuses of the next answers; 200 after them."""
        self.news = threading.Condition()

    def wait_for(self, count):
        """The first messages, when there are so many."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.received) >= count, 60), self.received
            return self.received[:]

    def events(self, count):
        return [each["event"]["type"] for each in self.wait_for(count)]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        with server.news:
            status = server.answers.pop(0) if server.answers else 200
            told = {"path": self.path, "headers": dict(self.headers), "body": body, "event": json.loads(body)}
            server.received.append(told)
            server.news.notify_all()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_words):
        pass


@pytest.fixture
def receiver():
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr("haft.service.webhooks.webhooks.SECONDS_BETWEEN_LOOKS", 0.05)
