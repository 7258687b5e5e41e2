"""The conversation of a task: what was said and called so far, stored after every step, so that it can go on later.

The messages are those of pydantic-ai. The texts of tools are framed as data, so that no file can speak with the voice
of the program.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import pydantic_ai.framing as framing
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)

from haft.agents.budget import Spent
from haft.agents.ports import ModelCall
from haft.contracts import BadUsage, Rights, RunId, own_copy, rights_from
from haft.values import dataclass, field

VERSION: Final = 1
CONTEXT: Final = framing.register_tag("task_context")
DROPPED: Final = "[This output was dropped to make room. Call the tool again if you need it.]"
_KEPT: Final = 2
"""How many of the latest requests keep the output of their tools at first."""


@dataclass(slots=True)
class Conversation:
    """The conversation of one task, and what it has done so far."""

    task: RunId
    agent: str
    model: str
    thread: str
    rights: tuple[Rights, ...] = ()
    """The rights of those who started the task. They hold too for whoever goes on with it."""
    messages: list[ModelMessage] = field(default_factory=list)
    pending: list[ModelCall] = field(default_factory=list)
    """The calls of the latest answer whose outcomes the model has not got."""
    executions: list[dict[str, Any]] = field(default_factory=list)
    """The calls so far: `toolName`, `run`, `status`."""
    modified: dict[str, str] = field(default_factory=dict)
    """The changed files, and how each was changed last."""
    spent: Spent = field(default_factory=Spent)
    last_tokens: int = 0
    """How many tokens the latest request and its answer had."""
    then_say: str = ""
    """What the person says who goes on with the task, to be said when the pending calls have been answered."""
    ended: str | None = None
    """How the task ended: `done`, `cut short`, `error` or `cancelled`; None if it has not ended."""
    is_layered: bool = False
    """Whether the sub-agent worked in a layer of its own, so that its changes may not be in the workspace."""
    continues: RunId | None = None
    """The task with which this one goes on."""

    def ask(self, prompt: str, context: str | None = None) -> None:
        """Add what the caller asks for. The context is data, and the prompt is the task."""
        text = prompt if not context else f"{framing.wrap(CONTEXT, context)}\n\n{prompt}"
        self.messages.append(ModelRequest(parts=[UserPromptPart(text)]))

    def tell(self, text: str) -> None:
        """Add what haft itself says."""
        self.messages.append(ModelRequest(parts=[UserPromptPart(text)]))

    def answer(self, parts: Sequence[ToolReturnPart], *, and_say: str = "") -> None:
        """Add the results of the calls in the latest answer of the model."""
        said = [UserPromptPart(and_say)] if and_say else []
        self.messages.append(ModelRequest(parts=[*parts, *said]))
        self.pending = []

    def drop_old_output(self) -> bool:
        """Drop output of tools: first all but the latest, then all. Returns False if there is nothing left to drop."""
        requests = [each for each in self.messages if isinstance(each, ModelRequest)]
        for kept in (_KEPT, 1, 0):
            dropped = False
            for request in requests[: len(requests) - kept]:
                for part in request.parts:
                    if isinstance(part, ToolReturnPart) and len(str(part.content)) > 2 * len(DROPPED):
                        part.content = DROPPED
                        dropped = True
            if dropped:
                return True
        return False

    def last_text(self) -> str:
        """What the model wrote last."""
        texts = (each.text for each in reversed(self.messages) if isinstance(each, ModelResponse))
        return next(filter(None, texts), "") or ""

    def to_bytes(self) -> bytes:
        facts = {
            "version": VERSION,
            "task": self.task,
            "agent": self.agent,
            "model": self.model,
            "thread": self.thread,
            "rights": [each.to_json() for each in self.rights],
            "pending": [
                {
                    "id": call.id,
                    "run": call.run,
                    "tool": call.tool,
                    "arguments": own_copy(call.arguments),
                    "resumes": call.resumes,
                }
                for call in self.pending
            ],
            "executions": self.executions,
            "modified": self.modified,
            "spent": self.spent.to_json(),
            "lastTokens": self.last_tokens,
            "ended": self.ended,
            "continues": self.continues,
            "isLayered": self.is_layered,
        }
        return json.dumps(facts).encode() + b"\n" + ModelMessagesTypeAdapter.dump_json(self.messages) + b"\n"

    @classmethod
    def from_bytes(cls, text: bytes) -> Conversation:
        """Raises `BadUsage` if the text is damaged."""
        try:
            first, _, rest = text.partition(b"\n")
            facts = json.loads(first)
            return cls(
                RunId(facts["task"]),
                facts["agent"],
                facts["model"],
                facts["thread"],
                tuple(map(rights_from, facts["rights"])),
                ModelMessagesTypeAdapter.validate_json(rest),
                [ModelCall(**each) for each in facts["pending"]],
                facts["executions"],
                facts["modified"],
                Spent(**facts["spent"]),
                facts["lastTokens"],
                ended=facts["ended"],
                continues=facts["continues"],
                is_layered=facts["isLayered"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise BadUsage(f"the conversation of the task is damaged: {error}", hint="start a new task") from None


def encodable(text: str) -> str:
    """The text, with `?` for what cannot be written as UTF-8. A model or a tool may send such text."""
    return text.encode("utf-8", "replace").decode()


def tool_result(tool: str, call: str, text: str) -> ToolReturnPart:
    """The result of a call, framed as data."""
    return ToolReturnPart(
        tool_name=tool, content=framing.wrap("tool_result", encodable(text), tool_name=tool), tool_call_id=call
    )
