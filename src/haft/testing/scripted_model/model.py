"""The scripted model: scripts, the requests so far, and the server that serves them.

`ScriptedModel` finds the step of a request from the conversation in it, so it keeps no state of a client. Uses the
dialects and the server; nothing here knows how an answer is sent.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from haft.testing.scripted_model.dialects import Conversation, Dialect, flat
from haft.testing.scripted_model.received import ReceivedRequest
from haft.testing.scripted_model.server import ModelServer
from haft.testing.scripted_model.steps import Attempts, Call, Fault, Step, Turn, invalid_request
from haft.values import replace

OVER = Turn("script over")
NO_SCRIPT = Turn("ok")


class RefusedByProvider(AssertionError):
    """A request that a real provider refuses, because the client sent it wrongly."""


class ScriptedModel:
    """A model on loopback that says what a test wrote down.

    with ScriptedModel() as model:
        prompt = model.task(call("shell", command="ls"), say("done: {{result}}"))

    A request that a real provider refuses, such as one without the result of a call, gets an error, and the `with`
    raises `RefusedByProvider` at its end. A step that raises is treated in the same way.

    `without_tools` is what it answers to requests that offer no tools, such as an agent's request for a title. None:
    these requests get a step of the script, too.
    """

    def __init__(self, *, without_tools: str | None = None) -> None:
        self.requests: list[ReceivedRequest] = []
        """All requests, in the order in which they arrived."""
        self.closing = threading.Event()
        """Set when the server ends, so that nothing waits longer."""
        self._without_tools = without_tools
        self._scripts: dict[str, tuple[Step, ...]] = {}
        self._words = re.compile(r"(?!)")
        self._attempts: Counter[tuple[str | None, int]] = Counter()
        self._changed = threading.Condition()
        self._failures: list[Exception] = []
        self._server = ModelServer(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        """The address. It is the base URL of Anthropic's client."""
        self.openai_url = f"{self.url}/v1"
        """The base URL of OpenAI's client, for both of its APIs."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        if self._failures and error is None:
            raise self._failures[0]

    def task(self, *steps: Step, word: str | None = None) -> str:
        """The prompt that makes the model take these steps. `word` is what a prompt of your own contains: the script
        counts from the last user message that has the word of one."""
        with self._changed:
            name = word or f"task-{len(self._scripts) + 1}"
            self._scripts[name] = steps
            names = "|".join(map(re.escape, self._scripts))
            self._words = re.compile(rf"(?<![\w-])(?:{names})(?![\w-])")
        return f"Please do {name} now."

    def of(self, prompt: str) -> list[ReceivedRequest]:
        """The requests for a prompt, or for the word of a script."""
        (word,) = set(self._words.findall(prompt))
        with self._changed:
            return [request for request in self.requests if request.word == word]

    def results(self, prompt: str) -> list[str]:
        """The results of the calls for a prompt, as the client last sent them."""
        return max((request.results for request in self.of(prompt)), key=len, default=[])

    def tools(self, prompt: str) -> list[str]:
        """The tools that the client offered for a prompt."""
        return max((request.tools for request in self.of(prompt)), key=len, default=[])

    def wait_for(self, number: int, prompt: str | None = None, *, seconds: float = 30) -> ReceivedRequest:
        """Wait until so many requests have arrived, for this prompt or in all, and return the last of them."""

        def found() -> list[ReceivedRequest]:
            return self.requests if prompt is None else self.of(prompt)

        with self._changed:
            if not self._changed.wait_for(lambda: len(found()) >= number, seconds):
                raise TimeoutError(f"only {len(found())} of {number} requests arrived in {seconds:g} s")
            return found()[number - 1]

    def receive(
        self, dialect: Dialect, path: str, headers: Mapping[str, str], body: Mapping[str, Any], *, streams: bool
    ) -> ReceivedRequest:
        """Record a request and find its answer. For the server."""
        asked = dialect.read(body)
        asked.check()
        word, step, results = self._progress(asked)
        with self._changed:
            self._attempts[word, step] += 1
            request = ReceivedRequest(
                len(self.requests) + 1,
                time.monotonic(),
                dialect.name,
                path,
                headers,
                body,
                streams,
                asked,
                word,
                step,
                results,
                self._attempts[word, step],
            )
            self.requests.append(request)
            self._changed.notify_all()
        try:
            if asked.problem is not None:
                raise RefusedByProvider(f"request {request.number} ({dialect.name}): {asked.problem}")
            request.answer = self._answer(request)
        except Exception as error:  # The client or a step of the test is wrong: the test hears it when the model ends.
            self._failures.append(error)
            request.answer = invalid_request()
        return request

    def _answer(self, request: ReceivedRequest) -> Turn | Fault:
        if request.word is None:
            return NO_SCRIPT
        if self._without_tools is not None and not request.tools:
            return Turn(self._without_tools)
        steps = self._scripts[request.word]
        step: Step = steps[request.step] if request.step < len(steps) else OVER
        while not isinstance(step, Turn | Fault):
            if isinstance(step, Attempts):
                step = step.steps[min(request.attempt, len(step.steps)) - 1]
            else:
                step = step(request)
        return step if isinstance(step, Fault) else _filled(step, request)

    def _progress(self, asked: Conversation) -> tuple[str | None, int, list[str]]:
        """The last word that a user message has, the answers since, and the results since."""
        word: str | None = None
        taken, results = 0, list[str]()
        for kind, text in asked.events:
            named = self._words.findall(text) if kind == "user" else []
            if named and named[-1] != word:
                word, taken, results = named[-1], 0, []
            elif kind == "answer":
                taken += 1
            elif kind == "result":
                results.append(text)
        return word, taken, results


def _filled(turn: Turn, request: ReceivedRequest) -> Turn:
    if turn.words is not None:
        words = turn.words.replace("{{tools}}", " ".join(request.tools))
        turn = replace(turn, words=words.replace("{{result}}", request.results[-1] if request.results else ""))
    made = []
    for one in turn.calls:
        found = _offered(request.conversation, one.name)
        if found is None:
            return Turn(f"TOOL NOT OFFERED: {one.name} among {' '.join(request.tools)}")
        group, name = (None, found) if isinstance(found, str) else found
        made.append(replace(one, name=name, namespace=group))
    return replace(turn, calls=tuple[Call, ...](made))


def _offered(asked: Conversation, name: str) -> str | tuple[str, str] | None:
    """The offered tool with this name, or else the shortest whose name ends so. `!NAME` is taken as it is."""
    if name.startswith("!"):
        return name[1:]
    for tool in asked.tools:
        if name in (tool, flat(tool)):
            return tool
    ending = [tool for tool in asked.tools if re.search(rf"(^|[_./:-]){re.escape(name)}$", flat(tool))]
    return min(ending, key=lambda tool: len(flat(tool)), default=None)
