"""The first rule of all: what only reads, and comes from someone we trust to say so, passes; everything else asks.

"Someone we trust" is haft itself and the program that embeds it. A package that is merely installed, and any tool that
may change something, asks. It does not look at arguments.
"""

from __future__ import annotations

from haft.contracts import Decision, ToolSpec

SOURCE = "haft's own rules"

_PASS_BUILTIN = Decision(
    action="allow",
    layer="built-in",
    rule="read-only built-in tools pass",
    source=SOURCE,
    by="rule",
    reason="it only reads, inside the workspace",
)
_PASS_EMBEDDED = Decision(
    action="allow",
    layer="built-in",
    rule="read-only tools of the embedding program pass",
    source=SOURCE,
    by="rule",
    reason="the program that handed it over says that it only reads",
)
_ASK_EFFECTS = Decision(
    action="ask",
    layer="built-in",
    rule="everything else asks",
    source=SOURCE,
    by="rule",
    reason="it may change something",
)
_ASK_INSTALLED = Decision(
    action="ask",
    layer="built-in",
    rule="everything else asks",
    source=SOURCE,
    by="rule",
    reason="it comes from an installed package",
)


def decide(spec: ToolSpec) -> Decision:
    """May a call of this tool go ahead?"""
    if not spec.effects.readonly:
        return _ASK_EFFECTS
    match spec.provenance:
        case "builtin":
            return _PASS_BUILTIN
        case "embedded":
            return _PASS_EMBEDDED
        case "installed":
            return _ASK_INSTALLED
