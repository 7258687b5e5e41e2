"""The base class of the built-in tools. Their definitions are written by hand; this class makes the spec and its
digest.

Each tool is a class in its own file, with its name, description, schema and effects, and does its work in `invoke`. The
spec is made at its first use, so that importing this package computes nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from haft.contracts import Effects, Hosting, ToolContext, ToolName, ToolSpec
from haft.files import digest_of


class Builtin:
    """The base class of the built-in tools."""

    name: ClassVar[str]
    description: ClassVar[str]
    properties: ClassVar[dict[str, Any]]
    """The parameters by name, each with its JSON Schema."""
    required: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[Effects] = Effects()
    hosting: ClassVar[Hosting] = "in-process"
    meta: ClassVar[dict[str, Any]] = {}
    commands: ClassVar[tuple[str, ...]] = ()
    paths: ClassVar[tuple[str, ...]] = ()
    """The names of the parameters that are paths in the workspace: see `ToolSpec.paths`."""
    reads: ClassVar[tuple[str, ...] | None] = None
    """The names of the parameters that name what a call reads: see `ToolSpec.reads`."""
    writes: ClassVar[tuple[str, ...] | None] = None

    @cached_property
    def spec(self) -> ToolSpec:
        schema = {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }
        return ToolSpec(
            name=ToolName(self.name),
            kind="builtin",
            description=self.description,
            input_schema=schema,
            effects=self.effects,
            provenance="builtin",
            origin=type(self).__module__,
            hosting=self.hosting,
            digest=_digest(self.name, self.description, schema, self.effects),
            commands=self.commands,
            paths=self.paths,
            reads=self.reads,
            writes=self.writes,
            meta=self.meta,
        )

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments


def _digest(name: str, description: str, schema: dict[str, Any], effects: Effects) -> str:
    import json

    definition = {"name": name, "description": description, "inputSchema": schema, "effects": effects.to_json()}
    return digest_of(json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


PATH = {
    "type": "string",
    "minLength": 1,
    "description": "Path relative to the workspace, or an absolute path inside it.",
}
"""The parameter `path` that most of these tools have."""
