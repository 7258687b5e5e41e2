"""Tools, as the catalogue lists them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.given import Given, JsonObject, NoArguments, ToolName

Kind = Literal["builtin", "amp-toolbox", "bash-plugin", "python-plugin", "agent-studio", "mcp", "python", "cli"]
Form = Literal["openai", "openai-responses", "anthropic", "mcp"]
Thread = Annotated[str | None, Field(min_length=1, max_length=1000)]


class ToolsGiven(Given):
    """Which tools are listed."""

    all: bool = False
    """Also tools that cannot be called, each with the reason."""
    source: Annotated[str | None, Field(max_length=40)] = None
    """Only tools of this kind."""
    search: Annotated[str | None, Field(max_length=1000)] = None
    """Only tools that these words find."""
    thread: Thread = None


class ToolGiven(Given):
    """The tool that the path names."""

    tool: ToolName


class DefinitionsGiven(Given):
    """In which form tools are defined."""

    form: Form
    thread: Thread = None


class PreviewGiven(Given):
    """A call whose preview is wanted."""

    tool: ToolName
    args: NoArguments


class Tool(TypedDict):
    name: str
    kind: str
    description: str
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any] | None
    effects: dict[str, bool]
    enabled: bool
    state: str
    reason: str | None
    origin: str
    digest: str
    meta: dict[str, Any]


class ToolList(TypedDict):
    tools: list[Tool]


class Definitions(TypedDict):
    definitions: list[JsonObject]
    leftOut: list[str]
    """Why other tools have no definition in this form."""


class Preview(TypedDict):
    preview: str | None
