"""A model on loopback that says what a test wrote down, so that real agents run without an account.

    with ScriptedModel() as model:
        prompt = model.task(call("Bash", command="ls"), say("done: {{result}}"))

The prompt names the task, and each request carries the conversation so far: step N is answered when the conversation
has N turns of the model with calls since the prompt. So one model serves many agents and sub-agents at once. A step can
be a function, which is called when the model answers: tests wait there, or look at the machine in the middle.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from model_dialects import DIALECTS, Call, Conversation, Turn

TASK = re.compile(r"task-\d+")
MODELS = {"data": [{"id": "scripted", "object": "model", "type": "model"}], "models": [{"name": "models/scripted"}]}


def call(name: str, text: str | None = None, **arguments) -> Turn:
    """A step: one call of a tool. The name can be the end of an offered name, such as `shell` of `mcp__haft__shell`."""
    return Turn(calls=[Call(name, arguments, text)])


def calls(*steps: Turn) -> Turn:
    """A step: several calls at once."""
    return Turn(calls=[one for step in steps for one in step.calls])


def say(words: str) -> Turn:
    """A step: words. `{{result}}` stands for the last result, `{{tools}}` for the offered tools."""
    return Turn(words)


class ScriptedModel:
    """The model's server. `url` is its address; `requests` are all requests, with the task's name and what it said."""

    def __init__(self, keep_bodies: bool = False) -> None:
        self.requests: list[dict] = []
        self._keeps_bodies = keep_bodies
        self._tasks: dict[str, tuple] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()

    def task(self, *steps) -> str:
        """The prompt that makes the model take these steps."""
        with self._lock:
            name = f"task-{len(self._tasks) + 1}"
            self._tasks[name] = steps
        return f"Please do {name} now."

    def results(self, prompt: str) -> list[str]:
        """The results of the calls of a task, as the agent last sent them."""
        (name,) = TASK.findall(prompt)
        found = [request["results"] for request in self.requests if request["task"] == name]
        return max(found, key=len, default=[])

    def tools(self, prompt: str) -> list[str]:
        """The tools that the agent offered for a task."""
        (name,) = TASK.findall(prompt)
        found = [request["tools"] for request in self.requests if request["task"] == name]
        return max(found, key=len, default=[])

    def answer(self, dialect, body: dict) -> Turn:
        """What the model says to a request."""
        asked = dialect.read(body)
        task, taken, results = _progress(asked)
        # A request without tools is one of the agent's own: a title, a summary.
        turn = Turn("ok")
        if task in self._tasks and asked.tools:
            steps = self._tasks[task]
            step = steps[taken] if taken < len(steps) else Turn("script over")
            while callable(step):
                step = step()
            turn = _filled(step, asked, results)
        seen = {"task": task, "results": results, "tools": [*map(_flat, asked.tools)], "turn": turn, "at": time.time()}
        with self._lock:
            self.requests.append(seen | ({"body": body} if self._keeps_bodies else {}))
        return turn


def _progress(asked: Conversation) -> tuple[str | None, int, list[str]]:
    """The last task that a prompt named, the turns with calls since, and their results."""
    task, taken, results = None, 0, []
    for kind, text in asked.events:
        named = TASK.findall(text) if kind == "user" else []
        if named and named[-1] != task:
            task, taken, results = named[-1], 0, []
        elif kind == "calls":
            taken += 1
        elif kind == "result":
            results.append(text)
    return task, taken, results


def _flat(tool) -> str:
    return tool if isinstance(tool, str) else "__".join(tool)


def _filled(step: Turn, asked: Conversation, results: list[str]) -> Turn:
    offered = [*map(_flat, asked.tools)]
    if step.words is not None:
        words = step.words.replace("{{tools}}", " ".join(offered))
        return Turn(words.replace("{{result}}", results[-1] if results else ""))
    made = []
    for one in step.calls:
        found = _offered(asked, one.name)
        if found is None:
            return Turn(f"TOOL NOT OFFERED: {one.name} among {' '.join(offered)}")
        namespace, name = (None, found) if isinstance(found, str) else found
        made.append(Call(name, one.arguments, one.text, namespace))
    return Turn(calls=made)


def _offered(asked: Conversation, name: str):
    """The offered tool with this name, or else the shortest whose name ends so. `!NAME` is taken as it is."""
    if name.startswith("!"):
        return name[1:]
    for tool in asked.tools:
        if name in (tool, _flat(tool)):
            return tool
    ending = [tool for tool in asked.tools if re.search(rf"(^|[_./:-]){re.escape(name)}$", _flat(tool))]
    return min(ending, key=lambda tool: len(_flat(tool)), default=None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ScriptedModel

    def log_message(self, *_) -> None:
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
        whole, events = dialect.write(body, self.model.answer(dialect, body))
        try:
            if body.get("stream") or ":stream" in path:
                self._stream(events)
            else:
                self._send(whole)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

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

    def _send(self, value: dict, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data if self.command != "HEAD" else b"")

    def _stream(self, events) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, event in events:
            head = f"event: {name}\n" if name else ""
            data = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"{head}data: {data}\n\n".encode())
        self.wfile.flush()
