"""Rules that people made when they answered a prompt, for one workspace: for one thread only, or permanently."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from haft.policy.rules.reading import rules_from
from haft.policy.rules.rule import Rule
from haft.storage import Connection, KeptRule
from haft.values import dataclass, replace

_PROOF: Final = "proof"
_BY: Final = "by"
_CALLER: Final = "caller"


@dataclass(frozen=True, slots=True)
class Remembered:
    """One remembered rule."""

    number: int
    rule: Rule
    who: str
    at: float
    told: Mapping[str, Any]
    """The rule as it is stored, without its proof."""
    proof: str | None
    """The proof that the person who made the rule knows the approval passphrase."""


def with_people(rule: Mapping[str, Any], by: str, caller: str) -> dict[str, Any]:
    """A rule with the person who made it by an answer, and the caller whose call the person approved."""
    return {**rule, _BY: by, _CALLER: caller}


def with_proof(rule: Mapping[str, Any], proof: str | None) -> dict[str, Any]:
    """A rule in the form in which `Memory` stores it."""
    return dict(rule) if proof is None else {**rule, _PROOF: proof}


class Memory:
    """The remembered rules of one workspace."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._store = connection.rules
        self._workspace = workspace

    def remember(self, rule: Mapping[str, Any], *, pin: str | None, thread: str | None, who: str) -> None:
        """Remember a rule, for one thread or, if `thread` is None, permanently. Remembering the same rule again changes
        nothing."""
        self._store.remember(self._workspace, KeptRule(0, thread, dict(rule), pin, who, time.time()))

    def all(self) -> list[Remembered]:
        """All remembered rules, the latest first."""
        return [_remembered(kept) for kept in self._store.all(self._workspace)]

    def forget(self, number: int) -> bool:
        """Forget a rule. Returns False if no rule has this number."""
        return self._store.forget(self._workspace, number)


def _remembered(kept: KeptRule) -> Remembered:
    told = dict(kept.rule)
    proof = told.pop(_PROOF, None)
    return Remembered(kept.number, _rule(kept, told), kept.who, kept.at, told, proof)


def _rule(kept: KeptRule, told: Mapping[str, Any]) -> Rule:
    source = f"remembered:{kept.number}"
    plain = {name: value for name, value in told.items() if name not in (_BY, _CALLER)}
    rule = rules_from([plain], origin="remembered", source=source, lines=None)[0]
    by, caller = told.get(_BY, kept.who), told.get(_CALLER)
    return replace(rule, source=source, pin=kept.pin, thread=kept.thread, by=by, caller=caller)
