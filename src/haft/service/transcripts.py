"""The transcript of a task: what was said and called, as it is stored. Does not need pydantic-ai."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from haft.storage import ConversationFiles, StateHome
from haft.values import dataclass

Kind = Literal["prompt", "text", "call", "result"]


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One thing that was said or done in a task."""

    kind: Kind
    """`prompt`: what the sub-agent was told. `text`: what it wrote. `call` and `result`: a call of a tool."""
    text: str
    tool: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "text": self.text, "tool": self.tool}


@dataclass(frozen=True, slots=True)
class Transcript:
    """The transcript of one task, and what it has spent."""

    agent: str
    model: str
    spent: dict[str, Any]
    ended: str | None
    """`done`, `cut short`, `error` or `cancelled`; None if the task has not ended, or was killed."""
    continues: str | None
    """The task with which this one goes on."""
    entries: tuple[TranscriptEntry, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "model": self.model,
            "spent": self.spent,
            "ended": self.ended,
            "continues": self.continues,
            "entries": [each.to_json() for each in self.entries],
        }


def transcript_of(home: StateHome, task: str) -> Transcript | None:
    """The transcript of a task; None if the run is no task, or nothing of it is stored."""
    stored = ConversationFiles(home.conversations).read(task)
    if stored is None:
        return None
    first, _, rest = stored.partition(b"\n")
    try:
        facts, messages = json.loads(first), json.loads(rest)
        entries = tuple(_entries(messages))
        return Transcript(facts["agent"], facts["model"], facts["spent"], facts["ended"], facts["continues"], entries)
    except (ValueError, KeyError, TypeError):
        return None


def _entries(messages: list[dict[str, Any]]) -> Iterator[TranscriptEntry]:
    for message in messages:
        for part in message["parts"]:
            match part["part_kind"]:
                case "user-prompt":
                    yield TranscriptEntry("prompt", str(part["content"]))
                case "text":
                    yield TranscriptEntry("text", part["content"])
                case "tool-call":
                    arguments = part["args"]
                    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
                    yield TranscriptEntry("call", text, part["tool_name"])
                case "tool-return":
                    yield TranscriptEntry("result", str(part["content"]), part["tool_name"])
                case _:
                    pass
