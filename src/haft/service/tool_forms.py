"""The definitions of tools in the forms of model providers and other programs. `ToolService.tools_as`, `haft tools list
--as`, `haft tools show --as` and the MCP server use this module.

Providers refuse a whole request for one schema that they do not accept, so `schema.for_providers` changes schemas until
they are accepted. haft checks the arguments of each call against the tool's own schema, whatever a provider was told.
Names need no change: a tool's name fits every provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from haft.contracts import BadUsage, Listing, ToolSpec, near_miss
from haft.lazy import regex
from haft.schema import for_providers

OPENAI_DESCRIPTION: Final = 1_024
"""The longest description of a function that every model of OpenAI's chat completions takes."""
_ANTHROPIC_NAME = regex(r"[a-zA-Z0-9_.-]{1,64}")
"""A parameter's name that Anthropic takes."""


def mcp_definition(spec: ToolSpec, name: str = "") -> dict[str, Any]:
    """The definition as an MCP server lists it."""
    definition: dict[str, Any] = {
        "name": name or spec.name,
        "description": spec.description,
        "inputSchema": _object_schema(spec.input_schema),
        "annotations": {
            "readOnlyHint": spec.effects.readonly,
            "idempotentHint": spec.effects.idempotent,
            "openWorldHint": spec.effects.network,
        },
    }
    if spec.output_schema is not None:
        definition["outputSchema"] = dict(spec.output_schema)
    return definition


def _object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The input schema, with the `type` that MCP requires at its top."""
    return dict(schema) if schema.get("type") == "object" else {**schema, "type": "object"}


def openai(spec: ToolSpec) -> dict[str, Any]:
    """The definition for OpenAI's chat completions."""
    schema, description = accepted_schema(spec)
    if len(description) > OPENAI_DESCRIPTION:
        description = description[: OPENAI_DESCRIPTION - 1] + "…"
    return {"type": "function", "function": {"name": spec.name, "description": description, "parameters": schema}}


def openai_responses(spec: ToolSpec) -> dict[str, Any]:
    """The definition for OpenAI's Responses. `strict` is off, because a strict schema may have no optional
    parameters; left out, it would be on."""
    schema, description = accepted_schema(spec)
    return {
        "type": "function",
        "name": spec.name,
        "description": description,
        "parameters": schema,
        "strict": False,
    }


def anthropic(spec: ToolSpec) -> dict[str, Any]:
    """The definition for Anthropic's messages. Optional parameters whose names Anthropic refuses are left out. Raises
    `BadUsage` if such a parameter is required."""
    schema, description = accepted_schema(spec)
    for name in [each for each in schema["properties"] if not _ANTHROPIC_NAME.fullmatch(each)]:
        if name in schema.get("required", ()):
            raise BadUsage(
                f"`{spec.name}` cannot be defined for Anthropic: its parameter `{name}` is required, and Anthropic "
                "refuses the name",
                hint="names of parameters there are at most 64 letters, digits, `_`, `.` and `-`",
            )
        del schema["properties"][name]
    return {"name": spec.name, "description": description, "input_schema": schema}


def amp(spec: ToolSpec) -> dict[str, Any]:
    """The definition as an Amp toolbox executable describes itself. The name has no `tb__`, because the program that
    loads the toolbox adds this prefix."""
    name = spec.meta["toolbox"]["describes"] if "toolbox" in spec.meta else spec.name
    return {"name": name, "description": spec.description, "inputSchema": dict(spec.input_schema)}


def accepted_schema(spec: ToolSpec) -> tuple[dict[str, Any], str]:
    """The schema as providers accept it, and the description, which also says what the schema lost."""
    schema, rest = for_providers(spec.input_schema)
    description = spec.description.strip()
    return schema, f"{description}\n\nThe arguments must also fit this JSON Schema: {rest}" if rest else description


LIST_FORMS: Final[dict[str, Callable[[ToolSpec], dict[str, Any]]]] = {
    "openai": openai,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "mcp": mcp_definition,
}
"""The forms for a list of tools."""
SINGLE_FORMS: Final = {**LIST_FORMS, "amp": amp}
"""The forms for a single tool."""


def tool_definitions(listings: Iterable[Listing], form: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The definitions of the tools that can be called, and why others of these have none. Raises `BadUsage` if there is
    no such form."""
    if form not in LIST_FORMS:
        near = near_miss(form, LIST_FORMS)
        raise BadUsage(
            f"there is no form `{form}` of tool definitions",
            hint=f"did you mean `{near}`?" if near else f"the forms are {', '.join(LIST_FORMS)}",
        )
    made, problems = [], []
    for listing in listings:
        if not listing.enabled:
            continue
        try:
            made.append(LIST_FORMS[form](listing.spec))
        except BadUsage as error:
            problems.append(str(error))
    return made, problems
