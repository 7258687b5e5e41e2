"""Takes two of haft's guards away from a tool of a test, so that the test sees the tool itself.

haft checks arguments against the schema of a tool before the tool gets them, and lets a tool that says that it only
reads write nothing. An unguarded tool gets all arguments, and may write like any other tool: its sandbox, and
everything else, stays.
"""

from __future__ import annotations

from typing import Any, Final

from haft.contracts import BadConfig, RenamedTool, Tool, ToolSpec
from haft.service import ToolService
from haft.values import replace

ANYTHING: Final[dict[str, Any]] = {"type": "object"}


def takes_anything(spec: ToolSpec) -> bool:
    """Whether the tool itself reads the arguments, as JSON. haft makes the words, lines or values of other tools from
    the arguments, and for that needs arguments that fit the schema."""
    match spec.kind:
        case "amp-toolbox":
            return bool(spec.meta.get("toolbox", {}).get("form") == "json") and "export" not in spec.meta
        case "mcp":
            return True
        case "python":
            return spec.hosting == "session"
        case "bash-plugin":
            return bool(spec.meta.get("plugin", {}).get("argsMode") == "json")
        case _:
            return False


def unguard(service: ToolService, name: str) -> Tool:
    """Replace a tool of an open service by the same tool without guards. Must run in the event loop of the service.
    Returns the tool as it was. A built-in tool stays as it is."""
    tool = service.catalogue.get(name)
    spec = tool.spec
    if spec.provenance == "builtin":
        return tool
    schema = ANYTHING if takes_anything(spec) else spec.input_schema
    service.remove(name)
    bare = replace(spec, input_schema=schema, effects=replace(spec.effects, readonly=False, cacheable=False))
    listing = service.add(RenamedTool(bare, tool))
    if listing.spec.name != name:
        raise BadConfig(f"`{name}` could not be replaced: {listing.reason}")
    return tool
