"""What a task tells those who watch it: one object after another, as the progress of its run.

There are five types of objects: `status`, `text` (what the model writes), `tool-execution`, and at the end exactly one
`complete` or `error`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from haft.contracts import Outcome, ToolContext

State = Literal["starting", "thinking", "calling-tools", "waiting", "reporting"]
MAX_RESULT: Final = 2_000
MAX_TEXT: Final = 400
"""How many characters of the model's text are collected before they are told."""


class TaskProgress:
    """Reports the progress of one task."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._has_ended = False
        self._text = ""

    def status(self, state: State, message: str) -> None:
        self._tell(message, {"type": "status", "state": state, "message": message})

    def text(self, text: str) -> None:
        """Tell what the model writes, in pieces that are not too small."""
        self._text += text
        if len(self._text) >= MAX_TEXT:
            self.end_text()

    def end_text(self) -> None:
        text, self._text = self._text, ""
        if text:
            self._tell("", {"type": "text", "text": text})

    def execution(self, tool: str, arguments: Mapping[str, Any], outcome: Outcome, result: str) -> None:
        """Tell that a call has ended."""
        fields = {"toolName": tool, "arguments": dict(arguments), "result": result[:MAX_RESULT]}
        self._tell(
            f"{tool}: {outcome.status}",
            {"type": "tool-execution", **fields, "run": outcome.run_id, "status": outcome.status},
        )

    def complete(
        self, summary: str, executions: Sequence[Mapping[str, Any]], modified: Sequence[Mapping[str, str]]
    ) -> None:
        self._end(
            {
                "type": "complete",
                "summary": summary,
                "toolExecutions": [dict(each) for each in executions],
                "modifiedFiles": [dict(each) for each in modified],
            }
        )

    def error(self, message: str) -> None:
        self._end({"type": "error", "errorMessage": message})

    def _end(self, fields: Mapping[str, Any]) -> None:
        self.end_text()
        if not self._has_ended:
            self._has_ended = True
            self._tell("", fields)

    def _tell(self, message: str, fields: Mapping[str, Any]) -> None:
        if not self._has_ended or fields["type"] in ("complete", "error"):
            self._context.progress(message, task=dict(fields))
