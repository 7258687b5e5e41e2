"""haft's own rules: a call needs no approval if a trusted party declares that the tool only reads; all other calls need
approval.

The trusted parties are haft itself, the program that embeds it, and MCP servers that the configuration says haft
believes. A tool from an installed package needs approval even
if it declares that it only reads. These rules do not look at arguments.
"""

from __future__ import annotations

from haft.contracts import Decision, ToolSpec

BUILT_IN_SOURCE = "haft's own rules"

_PASS_BUILTIN = Decision(
    action="allow",
    layer="built-in",
    rule="read-only built-in tools need no approval",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="it only reads, inside the workspace",
    profile="read-only",
    neutral=True,
    unasked=True,
)
_PASS_DELEGATING = Decision(
    action="allow",
    layer="built-in",
    rule="a sub-agent needs no approval: each of its calls is decided",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="all its work is done by calls, and each of them is decided",
    unasked=True,
)
_PASS_EMBEDDED = Decision(
    action="allow",
    layer="built-in",
    rule="read-only tools of the embedding program need no approval",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="the embedding program declares that it only reads",
    profile="read-only",
    unasked=True,
)
_PASS_BELIEVED = Decision(
    action="allow",
    layer="built-in",
    rule="read-only tools of MCP servers that are believed need no approval",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="its MCP server says that it only reads, and the configuration says that haft believes this server",
    profile="read-only",
)
_ASK_EFFECTS = Decision(
    action="ask",
    layer="built-in",
    rule="everything else needs approval",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="it may change something",
)
_ASK_INSTALLED = Decision(
    action="ask",
    layer="built-in",
    rule="everything else needs approval",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="it comes from an installed package",
    profile="read-only",
)
_ASK_USER = Decision(
    action="ask",
    layer="built-in",
    rule="everything else needs approval",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="it comes from your own tools, and only its own description says that it only reads",
    profile="read-only",
)
_ASK_WORKSPACE = Decision(
    action="ask",
    layer="built-in",
    rule="everything else needs approval",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="it comes from the workspace",
    profile="read-only",
)
_ASK_UNHELD = Decision(
    action="ask",
    layer="built-in",
    rule="tools that nothing confines need approval",
    source=BUILT_IN_SOURCE,
    by="rule",
    reason="it is declared read-only, but this machine has no sandbox to enforce that",
    profile="read-only",
)


def decide(spec: ToolSpec, *, confined: bool) -> Decision:
    """The decision of haft's own rules about a tool. `confined` says whether a sandbox will confine the processes that
    the tool starts."""
    if spec.delegates:
        return _PASS_DELEGATING
    if not spec.effects.readonly:
        return _ASK_EFFECTS
    if spec.kind == "mcp":  # An MCP tool has effects only if the configuration says that its server is believed.
        return _PASS_BELIEVED
    match spec.provenance:
        case "builtin":
            return _PASS_BUILTIN
        case "embedded":
            return _PASS_EMBEDDED if confined or spec.hosting == "in-process" else _ASK_UNHELD
        case "installed":
            return _ASK_INSTALLED
        case "user":
            return _ASK_USER
        case "workspace":
            return _ASK_WORKSPACE
