"""MCP servers that are reached over HTTP, on loopback: a real one on the `mcp` package, and one that answers as a test
wants."""

import json
import socket
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from haft.sources.mcp import Provider


def provider_at(url, **fields):
    return Provider("remote", **{"transport": "http", "url": url, **fields})


@contextmanager
def real_server(transport="http", token=None, issuer=None):
    """A server with the tool `add`. Yields its URL. With a token, requests without it are refused; it may be a function
    that returns the tokens that are good now. `issuer` is the address of the server that issues tokens."""
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("calculator", instructions="add numbers")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    if token is not None:
        app = _requiring(app, token if callable(token) else lambda: {token}, issuer)
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


def _requiring(app, tokens, issuer):
    async def checked(scope, receive, send):
        if scope["type"] != "http":
            return await app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if scope["path"].startswith("/.well-known/oauth-protected-resource") and issuer is not None:
            path = scope["path"].removeprefix("/.well-known/oauth-protected-resource")
            known = {"resource": f"http://{headers['host']}{path}", "authorization_servers": [issuer]}
            known["scopes_supported"] = ["tools"]
            return await _respond(send, 200, json.dumps(known).encode())
        if headers.get("authorization", "").removeprefix("Bearer ") not in tokens():
            return await _respond(send, 401, b"")
        return await app(scope, receive, send)

    return checked


async def _respond(send, status, body):
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Answers:
    """A web server whose answers a test writes: `answer(request)` gets the handler of a request."""

    def __init__(self, answer, certificate=None):
        """`certificate` is a directory with `key.pem` and `cert.pem`; without it, the server is not encrypted."""
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

            do_GET = do_POST = do_DELETE = do_CONNECT = handle_one

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
        self._server.handle_error = lambda *_: None  # A client that leaves early is what some tests are about.
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Issuer(Answers):
    """An authorization server that approves every login at once."""

    def __init__(self, expires_in=3600):
        super().__init__(self._answer)
        self.expires_in = expires_in
        self.good = set()
        """The access tokens that are good now."""
        self.refresh_tokens = set()
        self.grants = []
        """What was asked of the token endpoint: a form each."""
        self.authorizations = []
        """What browsers brought: the query of each."""
        self.gives_refresh_tokens = True
        self.refuses = False
        """Whether people refuse to log in."""

    def _answer(self, request):
        parts = urlsplit(request.path)
        if parts.path.startswith("/.well-known/oauth-authorization-server"):
            request.reply(200, json.dumps(self._metadata()))
        elif parts.path == "/register":
            asked = json.loads(request.body)
            given = {**asked, "client_id": f"client-{len(self.requests)}", "client_secret": "registered-secret-1"}
            request.reply(201, json.dumps({**given, "token_endpoint_auth_method": "client_secret_post"}))
        elif parts.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self.authorizations.append(query)
            answer = {"error": "access_denied"} if self.refuses else {"code": f"code-{len(self.authorizations)}"}
            words = urlencode({**answer, "state": query["state"], "iss": self.url})
            request.reply(302, location=f"{query['redirect_uri']}?{words}")
        elif parts.path == "/token":
            self._grant(request)
        else:
            request.reply(404)

    def _metadata(self):
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _grant(self, request):
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        self.grants.append(form)
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refresh_tokens:
                request.reply(400, b'{"error": "invalid_grant"}')
                return
            self.refresh_tokens.discard(form["refresh_token"])
        number = len(self.grants)
        tokens = {"access_token": f"access-token-{number}"}
        self.good.add(tokens["access_token"])
        if self.gives_refresh_tokens:
            tokens["refresh_token"] = f"refresh-token-{number}"
            self.refresh_tokens.add(tokens["refresh_token"])
        request.reply(200, json.dumps({**tokens, "token_type": "bearer", "expires_in": self.expires_in}))


async def browse(page):
    """What a browser does with the address of a login page, for a person who approves."""
    import httpx2

    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(page.address)
        assert answer.status_code == 302
        return await browser.get(answer.headers["location"])
