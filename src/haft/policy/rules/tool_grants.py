"""Grants that rules give to every call of a tool, independent of its arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from haft.contracts import NO_GRANTS, Action, Grants
from haft.policy.rules.names import name_matches
from haft.policy.rules.rule import Rule

ALLOWING_ACTIONS: Final[tuple[Action, ...]] = ("allow",)
RUNNABLE_ACTIONS: Final[tuple[Action, ...]] = ("allow", "ask", "try")
"""Actions after which a call may run."""


def grants_for_all_calls(
    names: Collection[str], kind: str, rules: Iterable[Rule], actions: Collection[Action] = ALLOWING_ACTIONS
) -> Grants:
    """The grants of the rule that decides every call of a tool with one of these names, if the rule's action is in
    `actions`. `rules` must be sorted, with those of the strongest origin first. There are no grants if the first rule
    for the tool matches only some of its calls, or if the first rule of any origin rejects or delegates.
    """
    first: dict[str, Rule] = {}
    for rule in rules:
        if rule.origin not in first and any(name_matches(rule.tool, name, kind) for name in names):
            first[rule.origin] = rule
    chosen = next(iter(first.values()), None)
    if chosen is None or any(rule.action in ("reject", "delegate") for rule in first.values()):
        return NO_GRANTS
    is_for_all = not chosen.matches and chosen.exactly is None and chosen.context is None
    return chosen.grant if is_for_all and chosen.action in actions else NO_GRANTS
