"""Whether a call stays within its rights: the rights of every caller above it that may do only some things."""

from __future__ import annotations

from collections.abc import Iterator

from haft.contracts import NO_GRANTS, Decision, Rights
from haft.policy.query import PolicyQuery


def why_beyond_rights(query: PolicyQuery) -> str | None:
    """Why the rights of a call do not permit it, whatever the rules say; None if they may."""
    for each in _binding(query):
        why = each.why_not(query.spec)
        if why is not None:
            return why
        if each.restricted and query.grants != NO_GRANTS:
            return f"{each.holder} gets no grants"
    return None


def _binding(query: PolicyQuery) -> Iterator[Rights]:
    return (each for each in query.rights if query.subagent or not each.binds_subagents_only)


def why_decision_beyond_rights(query: PolicyQuery, decision: Decision) -> str | None:
    """Why the rights of a call do not permit what would be decided about it; None if they do."""
    if decision.action == "reject":
        return None
    for each in _binding(query):
        if each.restricted and decision.is_dangerous:
            return f"{each.holder} may run no dangerous commands: {decision.reason}"
        if each.readonly and query.spec.commands and not (decision.neutral and decision.action == "allow"):
            return f"{each.holder} may run only commands that only read: {decision.reason}"
    return None
