"""A request that the scripted model received, with what a test or a step of a script wants to know of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from haft.testing.scripted_model.dialects import Conversation
from haft.testing.scripted_model.steps import Fault, Turn
from haft.values import dataclass, field


@dataclass(eq=False)
class ReceivedRequest:
    """A request of a client."""

    number: int
    """Counts from 1, in the order in which the requests arrived."""
    at: float
    """When it arrived, as `time.monotonic` counts."""
    dialect: str
    """`anthropic`, `openai-responses`, `openai-chat` or `gemini`."""
    path: str
    headers: Mapping[str, str]
    """The names are in lower case."""
    body: Mapping[str, Any]
    streams: bool
    conversation: Conversation
    word: str | None
    """The word of its script; None if no user message of the conversation has one."""
    step: int
    """How many answers of the model the conversation holds since that word: the step that comes now."""
    results: list[str]
    """The results of calls since that word."""
    attempt: int
    """Counts from 1 for each step of a script."""
    answer: Turn | Fault | None = None
    """What the model said, with the tools named as they were offered. None until that is known."""
    finished: threading.Event = field(default_factory=threading.Event)
    """Set when the server has nothing more to send: all was sent, or it broke off."""
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when the client went away while the server was answering."""

    @property
    def tools(self) -> list[str]:
        """The names of the offered tools."""
        return self.conversation.tool_names

    @property
    def system(self) -> str:
        """The system prompt."""
        return self.conversation.system

    @property
    def said(self) -> list[str]:
        """The texts of the user, in order."""
        return [text for kind, text in self.conversation.events if kind == "user"]

    @property
    def temperature(self) -> float | None:
        return self.conversation.temperature

    @property
    def output_tokens(self) -> int | None:
        """The limit of output tokens."""
        return self.conversation.output_tokens
