"""The report of a sub-agent: its result in the form that its type demands, and a summary if it wrote none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.tools import ToolDefinition

from haft.schema import validator_for

if TYPE_CHECKING:
    from haft.agents.conversation import Conversation

REPORT_TOOL: Final = "report_result"
"""The name of the tool with which a sub-agent gives its result. It is no tool of haft: the loop takes the call."""


class ReportSchema:
    """The form of a result."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._is_object = schema.get("type") == "object"
        self._schema = (
            dict(schema)
            if self._is_object
            else {"type": "object", "properties": {"result": dict(schema)}, "required": ["result"]}
        )
        self._validator = validator_for(self._schema)

    def tool(self) -> ToolDefinition:
        return ToolDefinition(
            name=REPORT_TOOL,
            description="Ends the task with its result. Call it once, alone, when the task is done.",
            parameters_json_schema=self._schema,
            strict=False,
        )

    def problems(self, arguments: Mapping[str, Any]) -> list[str]:
        return [] if self._validator.is_valid(arguments) else list(self._validator.problems(arguments))

    def result(self, arguments: Mapping[str, Any]) -> Any:
        return dict(arguments) if self._is_object else arguments["result"]


def summary_of_record(conversation: Conversation) -> str:
    """A summary made from what is known of the task: what the model wrote last, its calls, and the changed files."""
    made = conversation.executions
    failed = sum(each["status"] != "done" for each in made)
    parts = [
        f"It made {len(made)} {'call' if len(made) == 1 else 'calls'}"
        + (f", {failed} of them without success." if failed else ".")
    ]
    if conversation.modified:
        names = sorted(conversation.modified)
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        parts.append(f"Changed files: {', '.join(names[:10])}{more}.")
    text = conversation.last_text().strip()
    if text:
        parts.append(f"It wrote last: {text}")
    return " ".join(parts)
