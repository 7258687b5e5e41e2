"""What haft keeps of an MCP server: the tools that the server lists, as plain JSON, and the specs that haft makes of
them. This module needs no connection."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from haft.contracts import Definitions, Effects, ToolName, ToolSpec
from haft.schema import why_too_large
from haft.sources.mcp import texts
from haft.sources.mcp.names import listed_name
from haft.sources.mcp.provider import InstalledServer, Provider

MOST_KEPT: Final = 8
"""How many definitions of servers with the same name are kept, such as those of several workspaces."""
LARGEST_TOOL: Final = 256_000
"""The most bytes of one tool's definition as JSON."""
OWN_FILES: Final = ("haft.toml", "haft.json")
"""The names of haft's own configuration files."""
EMPTY: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}

Known = Mapping[str, Any]
"""What is kept of one server: `tools`, `instructions`, `capabilities`, `era` and `more` (what was left out); or
`problem`, if the server could not be described. `at` is the time."""


class ServerDefinitions:
    """The definitions of one server, on disk and in memory."""

    def __init__(self, definitions: Definitions, provider: Provider) -> None:
        self._definitions = definitions
        self._group = f"mcp:{provider.name}"
        self._identity = provider.identity
        self._loaded: dict[str, Any] | None = None

    def get(self, installed: InstalledServer | None) -> Known | None:
        """What is known of the server as it is configured and installed now; None if it was never asked."""
        if self._loaded is None:
            self._loaded = self._definitions.load(self._group)
        found = self._loaded.get(self._key(installed))
        return found if isinstance(found, dict) else None

    def put(self, installed: InstalledServer | None, known: Known) -> None:
        every = {**self._definitions.load(self._group), self._key(installed): {**known, "at": time.time()}}
        newest = sorted(every.items(), key=lambda each: _time(each[1]), reverse=True)[:MOST_KEPT]
        self._loaded = dict(newest)
        self._definitions.save(self._group, self._loaded)

    def reload(self) -> None:
        """Read the definitions again: another process may have asked the server."""
        self._loaded = None

    def _key(self, installed: InstalledServer | None) -> str:
        return self._identity if installed is None else f"{self._identity}:{installed.digest}"


def _time(known: Any) -> float:
    at = known.get("at") if isinstance(known, dict) else None
    return at if isinstance(at, float | int) else 0.0


def prepared(provider: Provider, installed: InstalledServer | None, facts: Known) -> dict[str, Any]:
    """What haft keeps of a server that answered. Its tools are checked and made fit to be shown now, so that listing
    them later is quick."""
    instructions = facts.get("instructions")
    tools = [_prepared(provider, installed, instructions, each) for each in facts["tools"]]
    shown = texts.visible(instructions, texts.LONGEST_DESCRIPTION) if isinstance(instructions, str) else ""
    return {**facts, "tools": tools, "instructions": shown}


def _prepared(
    provider: Provider, installed: InstalledServer | None, instructions: Any, tool: Mapping[str, Any]
) -> dict[str, Any]:
    name = str(tool["name"])
    try:
        if len(json.dumps(tool)) > LARGEST_TOOL:
            raise ValueError(f"its definition is larger than {LARGEST_TOOL:_} bytes")
        parameters = _schema("parameters", tool.get("inputSchema") or EMPTY)
    except ValueError as error:
        return {"name": name, "problem": str(error)}
    text = tool.get("description") or tool.get("title") or ""
    annotations = tool.get("annotations")
    return {
        "name": name,
        "description": texts.marked(provider.name, text if isinstance(text, str) else ""),
        "inputSchema": parameters,
        "outputSchema": _output_schema(tool),
        "annotations": texts.visible_json(annotations) if isinstance(annotations, dict) else {},
        "digest": digest_of(provider, installed, instructions, tool),
    }


def tools_in(provider: Provider, known: Known) -> Iterator[Mapping[str, Any]]:
    """The kept tools of a server that its `include` and `exclude` let through."""
    tools = known.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
            continue
        if provider.include and not any(fnmatch.fnmatchcase(name, each) for each in provider.include):
            continue
        if not any(fnmatch.fnmatchcase(name, each) for each in provider.exclude):
            yield tool


def spec_of(provider: Provider, known: Known, tool: Mapping[str, Any]) -> ToolSpec:
    """The spec of a kept tool. Raises `ValueError` with a message if the tool cannot be used."""
    name = str(tool["name"])
    if "problem" in tool:
        raise ValueError(tool["problem"])
    definition = {"annotations": tool["annotations"], "instructions": known.get("instructions") or ""}
    skill = {} if provider.skill is None else {"skill": provider.skill[0], "skillFolder": provider.skill[1]}
    return ToolSpec(
        name=listed_name(provider.name, name),
        kind="mcp",
        description=tool["description"],
        input_schema=tool["inputSchema"],
        output_schema=tool["outputSchema"],
        effects=_effects(tool["annotations"]) if provider.trusts_annotations else Effects(),
        provenance=provider.provenance,
        origin=origin_of(provider),
        digest=tool["digest"],
        hosting="session" if provider.transport == "stdio" else "remote",
        grants=provider.grants,
        timeout=provider.timeouts.get(name, provider.timeout),
        prepares=True,
        meta={"mcp": {"server": provider.name, "tool": name, "definition": definition, **_entry(provider)}, **skill},
    )


def digest_of(provider: Provider, installed: InstalledServer | None, instructions: Any, tool: Mapping[str, Any]) -> str:
    """The digest of everything that an approval of a tool is bound to."""
    parts = [tool.get(key) for key in ("name", "title", "description", "inputSchema", "outputSchema", "annotations")]
    definition = [provider.identity, installed and installed.digest, *parts, instructions]
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()


def bare_spec(provider: Provider, tool: str | None = None) -> ToolSpec:
    """The spec under which a server, or one of its tools, is listed if it cannot be used."""
    skill = {} if provider.skill is None else {"skill": provider.skill[0], "skillFolder": provider.skill[1]}
    named = {} if tool is None else {"tool": tool}
    return ToolSpec(
        name=ToolName(listed_name(provider.name, tool)),
        kind="mcp",
        description="",
        input_schema=EMPTY,
        provenance=provider.provenance,
        origin=origin_of(provider),
        hosting="session" if provider.transport == "stdio" else "remote",
        meta={"mcp": {"server": provider.name, **named}, **skill},
    )


def _entry(provider: Provider) -> dict[str, str]:
    """Where a person writes grants for the server, if not in a table of haft's own file."""
    if not os.path.isabs(provider.source) or os.path.basename(provider.source) in OWN_FILES:
        return {}
    return {"entry": f"in the entry `{provider.name}` of {provider.source}"}


def origin_of(provider: Provider) -> str:
    """The `origin` of a server's tools."""
    return f"mcp:{provider.name}"


def _schema(what: str, schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise ValueError(f"its {what} are no JSON Schema")  # noqa: TRY004  all raise the same
    if (why := why_too_large(schema)) is not None:
        raise ValueError(f"its {what} are too complex: {why}")
    try:
        return {"type": "object", **texts.visible_schema(schema)}
    except ValueError as error:
        raise ValueError(f"its {what} cannot be used: {error}") from None


def _output_schema(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema of the tool's result; None if there is none, or if it cannot be used. A bad schema of a result does
    no harm, so the tool can still be called."""
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict) or why_too_large(schema) is not None:
        return None
    try:
        return texts.visible_schema(schema)
    except ValueError:
        return None


def _effects(annotations: Mapping[str, Any]) -> Effects:
    readonly = annotations.get("readOnlyHint") is True
    return Effects(
        readonly=readonly,
        idempotent=readonly or annotations.get("idempotentHint") is True,
        network=annotations.get("openWorldHint") is not False,
    )
