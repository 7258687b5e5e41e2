"""What rules grant to every call of a tool, whatever its arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from haft.contracts import NO_GRANTS, Action, Grants
from haft.policy.rules.names import name_fits
from haft.policy.rules.rule import Rule

ALLOWING: Final[tuple[Action, ...]] = ("allow",)
RUNNING: Final[tuple[Action, ...]] = ("allow", "ask", "try")
"""Actions after which a call may run."""


def granted_to(
    names: Collection[str], kind: str, rules: Iterable[Rule], actions: Collection[Action] = ALLOWING
) -> Grants:
    """What the rule grants that decides every call of a tool by one of these names, where its action is one of
    `actions`. The rules stand in order, the strongest origin first. Nothing, where only some calls fit the first rule
    that speaks of the tool, or where an origin rejects calls or leaves them to a program."""
    first: dict[str, Rule] = {}
    for rule in rules:
        if rule.origin not in first and any(name_fits(rule.tool, name, kind) for name in names):
            first[rule.origin] = rule
    chosen = next(iter(first.values()), None)
    if chosen is None or any(rule.action in ("reject", "delegate") for rule in first.values()):
        return NO_GRANTS
    is_for_all = not chosen.matches and chosen.exactly is None and chosen.context is None
    return chosen.grant if is_for_all and chosen.action in actions else NO_GRANTS
