"""Requests to an ASGI application without a server between: exactly these headers, and nothing added."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The JSON-RPC message: the body, or the last one of an event stream."""
        text = self.body.decode()
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            text = next(line[6:] for line in reversed(text.splitlines()) if line.startswith("data: "))
        return json.loads(text)


async def ask(app: Any, method: str, path: str, headers: list[tuple[str, str]], body: bytes = b"") -> Answer:
    """The answer to one request."""
    answer, sent = Answer(), [{"type": "http.request", "body": body, "more_body": False}]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }

    async def receive() -> dict[str, Any]:
        if sent:
            return sent.pop()
        return {"type": "http.disconnect"} if answer.body and method != "POST" else await never()

    async def never() -> dict[str, Any]:
        import asyncio

        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {key.decode().lower(): value.decode() for key, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer
