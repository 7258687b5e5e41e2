"""The rules of one configuration file: stored as they were decoded, and parsed when they are first needed.

Parsing rules costs more than reading settings, and listing tools needs no rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from haft.contracts import NO_GRANTS
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from haft.policy import Rule, RuleOrigin


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The decoded rules of one source."""

    origin: RuleOrigin
    source: str
    tables: list[dict[str, Any]]
    lines: tuple[int, ...] | None
    workspace: str
    """The directory that paths in the examples of rules are resolved in."""
    counting: tuple[int, ...] | None = None
    """The indices of the rules that count, in an untrusted file; the grants in these rules do not count. None if all
    rules count, with their grants."""

    def rules(self) -> Iterator[Rule]:
        """Yield the rules that count. A mistake in a rule that does not count raises `BadConfig`, too."""
        from haft.policy import check_rules, rules_from

        rules = rules_from(self.tables, origin=self.origin, source=self.source, lines=self.lines)
        check_rules(rules)
        self._check_examples(rules)
        if self.counting is None:
            yield from rules
        else:
            yield from (replace(rules[number], grant=NO_GRANTS) for number in self.counting)

    def _check_examples(self, rules: Sequence[Rule]) -> None:
        rules = [rule for rule in rules if rule.match or rule.not_match]
        if not rules:
            return
        from haft.policy import AnalysisContext, analyse, check_examples

        context = AnalysisContext(self.workspace, home=os.path.expanduser("~"))
        check_examples(rules, lambda line: analyse(line, context))
