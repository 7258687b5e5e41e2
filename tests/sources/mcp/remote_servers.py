"""MCP servers that are reached over HTTP, on loopback: a real one on the `mcp` package, and one that answers as a test
wants."""

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from haft.sources.mcp import Provider


def provider_at(url, **fields):
    return Provider("remote", **{"transport": "http", "url": url, **fields})


@contextmanager
def real_server(transport="http", token=None):
    """A server with the tools `add` and `fail`. Yields its URL. With a token, requests without it are refused."""
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("calculator", instructions="add numbers")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    if token is not None:
        app = _requiring(app, token)
    listener = socket.create_server(("127.0.0.1", 0))
    web = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: web.run(sockets=[listener]), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/{'sse' if transport == 'sse' else 'mcp'}"
    finally:
        web.should_exit = True
        thread.join(10)
        listener.close()


def _requiring(app, token):
    async def checked(scope, receive, send):
        if scope["type"] == "http" and (b"authorization", f"Bearer {token}".encode()) not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    return checked


class Answers:
    """A web server whose answers a test writes: `answer(request)` gets the handler of a request."""

    def __init__(self, answer):
        self.requests = []
        answers = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                length = int(self.headers.get("content-length") or 0)
                self.body = self.rfile.read(length)
                answers.requests.append(self)
                self.close_connection = True
                answer(self)

            do_GET = do_POST = do_DELETE = handle_one

            def reply(self, status=200, content=b"", content_type="application/json", **headers):
                content = content.encode() if isinstance(content, str) else content
                self.send_response(status)
                self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(content)))
                self.send_header("connection", "close")
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
