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
    profile="read-only",
    neutral=True,
    unasked=True,
)
_PASS_EMBEDDED = Decision(
    action="allow",
    layer="built-in",
    rule="read-only tools of the embedding program pass",
    source=SOURCE,
    by="rule",
    reason="the program that handed it over says that it only reads",
    profile="read-only",
    unasked=True,
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
    profile="read-only",
)
_ASK_USER = Decision(
    action="ask",
    layer="built-in",
    rule="everything else asks",
    source=SOURCE,
    by="rule",
    reason="it comes from your own folder, and nobody but itself says that it only reads",
    profile="read-only",
)
_ASK_WORKSPACE = Decision(
    action="ask",
    layer="built-in",
    rule="everything else asks",
    source=SOURCE,
    by="rule",
    reason="it comes from the workspace",
    profile="read-only",
)
_ASK_UNHELD = Decision(
    action="ask",
    layer="built-in",
    rule="what nothing holds to its word asks",
    source=SOURCE,
    by="rule",
    reason="it is said only to read, and this machine has no sandbox that would hold it to that",
    profile="read-only",
)


def decide(spec: ToolSpec, *, confined: bool) -> Decision:
    """May a call of this tool go ahead? `confined` says whether a sandbox will stand around what it starts."""
    if not spec.effects.readonly:
        return _ASK_EFFECTS
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
