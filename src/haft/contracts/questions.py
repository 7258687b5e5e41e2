"""Questions that a tool asks while it runs, and their answers, in the form of the Model Context Protocol (MCP).

A person answers forms and web addresses: at the terminal, in the inbox, or through the program that made the call. A
model or a list of directories can be asked for only if that program is an MCP client that offers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from haft.values import dataclass

QuestionMethod = Literal["elicitation/create", "sampling/createMessage", "roots/list"]
FORM: Final = "elicitation/create"
"""A form for a person to fill in, or a web address for a person to visit."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a tool."""

    method: QuestionMethod
    params: Mapping[str, Any]
    """The parameters of the request, as MCP writes them."""
    by: str = ""
    """Who asks, in words, such as an MCP server; empty if the tool itself asks."""
    key: str = ""
    """A name for the question among those that the tool asks at once. MCP clients see it."""

    @classmethod
    def form(
        cls, message: str, properties: Mapping[str, Any], required: Sequence[str] | None = None, *, key: str = ""
    ) -> Question:
        """A form. `properties` has a JSON Schema for each field; all fields are required unless `required` names
        some."""
        schema = {"type": "object", "properties": dict(properties), "required": list(properties)}
        if required is not None:
            schema["required"] = list(required)
        return cls(FORM, {"mode": "form", "message": message, "requestedSchema": schema}, key=key)

    @property
    def is_for_person(self) -> bool:
        return self.method == FORM

    @property
    def url(self) -> str | None:
        """The web address that the person is asked to visit; None if the question is a form."""
        url = self.params.get("url") if self.is_for_person and self.params.get("mode") == "url" else None
        return url if isinstance(url, str) else None

    @property
    def message(self) -> str:
        message = self.params.get("message")
        return message if isinstance(message, str) else ""

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the answer to a form."""
        schema = self.params.get("requestedSchema")
        return schema if isinstance(schema, Mapping) else {"type": "object", "properties": {}}

    def to_json(self) -> dict[str, Any]:
        return {"method": self.method, "params": dict(self.params), "by": self.by, "key": self.key}


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The answer to a question."""

    action: Literal["accept", "decline", "cancel"]
    """`decline`: a person refused. `cancel`: nobody answered."""
    content: Any = None
    """The values of the form, or the result that the MCP client returned; None if the question was not accepted."""

    def to_json(self) -> dict[str, Any]:
        return {"action": self.action, "content": self.content}
