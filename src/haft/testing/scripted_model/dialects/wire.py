"""What the dialects share: a conversation as all of them tell it, and an answer as the server sends it."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol

from haft.testing.scripted_model.steps import Fault, Turn
from haft.values import dataclass, field

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PIECES = 4
"""The number of pieces in which a text or the arguments of a call come."""

EventKind = Literal["user", "answer", "result"]


@dataclass
class Conversation:
    """A request: what the model is offered, and what was said so far."""

    tools: list[str | tuple[str, str]] = field(default_factory=list)
    """The names of the offered tools. A tool of a group is a pair: the group, the name."""
    events: list[tuple[EventKind, str]] = field(default_factory=list)
    """What the user said, that the model answered, and the results of its calls."""
    system: str = ""
    temperature: float | None = None
    output_tokens: int | None = None
    results_follow_calls: bool = True
    """Whether the API demands that the results of all calls of an answer come right after it."""
    problem: str | None = None
    """Why the provider would refuse the request; None if it would not."""
    _waiting: dict[str, None] = field(default_factory=dict)
    """The ids of the calls without a result."""

    def add(self, kind: EventKind, text: str = "") -> None:
        """Add an event. The parts of one answer are one event."""
        is_same_answer = kind == "answer" and bool(self.events) and self.events[-1][0] == "answer"
        if not is_same_answer:
            if self.results_follow_calls and kind != "result":
                self.check_results()
            self.events.append((kind, text))

    def add_call(self, call: str | None) -> None:
        """Add a call of an answer. APIs whose calls have no ids are not checked."""
        self.add("answer")
        if call is not None:
            self._waiting[call] = None

    def add_result(self, call: str | None, text: str) -> None:
        """Add the result of a call."""
        self.add("result", text)
        if call is not None and call not in self._waiting:
            self.problem = self.problem or f"the result of `{call}` belongs to no call before it, or is its second"
        elif call is not None:
            del self._waiting[call]

    def check_results(self) -> None:
        """Note a problem if calls have no result by now."""
        if self._waiting:
            self.problem = self.problem or f"there is no result of {', '.join(self._waiting)}"

    def check(self) -> None:
        """Note what else a provider refuses, when everything has been added."""
        self.check_results()
        if not self.events:
            self.problem = self.problem or "the request has no message"
        names = self.tool_names
        wrong = [
            name for tool in self.tools if isinstance(tool, str) for name in [tool] if not TOOL_NAME.fullmatch(name)
        ]
        if wrong or len({*names}) < len(names):
            self.problem = self.problem or f"the names of the tools are not valid or not unique: {', '.join(names)}"

    @property
    def tool_names(self) -> list[str]:
        """The offered tools, each as one name."""
        return [flat(tool) for tool in self.tools]


@dataclass(frozen=True)
class SentEvent:
    """An event of a stream. Pieces carry a part of what the model says; pauses and breaks count them."""

    data: Mapping[str, Any] | str
    name: str | None = None
    is_piece: bool = False


class Dialect(Protocol):
    """How a provider's API reads and writes."""

    name: str
    path: str
    """The end of the path of its requests."""

    def read(self, body: Mapping[str, Any]) -> Conversation: ...

    def write(self, body: Mapping[str, Any], turn: Turn) -> tuple[Mapping[str, Any], list[SentEvent]]:
        """A turn as one JSON value, and as the events of a stream."""
        ...

    def error(self, fault: Fault) -> tuple[int, Mapping[str, Any]]:
        """The status and the body of a failed request."""
        ...

    def error_event(self, fault: Fault) -> SentEvent:
        """An error in a stream that has begun."""
        ...


def flat(tool: str | tuple[str, str]) -> str:
    """The name of a tool as one text."""
    return tool if isinstance(tool, str) else "__".join(tool)


def new_id(prefix: str) -> str:
    """An id as the APIs make them."""
    return prefix + uuid.uuid4().hex[:20]


def pieces(text: str) -> Iterable[str]:
    """A text in several pieces. An empty text has none."""
    size = -(-len(text) // PIECES) or 1
    return (text[start : start + size] for start in range(0, len(text), size))


def text_of(value: Any) -> str:
    """All text in a message or a result of any shape."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_of, value)))
    if isinstance(value, Mapping):
        if value.get("type") in ("image", "input_image", "image_url") or "inlineData" in value:
            return "[image]"
        for key in ("text", "content", "output", "result", "response", "error"):
            if key in value:
                return text_of(value[key])
    return json.dumps(value, sort_keys=True)
