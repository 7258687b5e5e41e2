"""Every rule there is for a workspace, in the order in which they count: as `haft permissions list --json` has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from haft.config import Config
from haft.contracts import NO_GRANTS, ToolSpec
from haft.policy import BUILT_IN_SOURCE, Rule, missing_target, rules_from
from haft.service.permissions import shown_rules
from haft.service.remembered import remembered_rules
from haft.storage import StateHome

TRUST: Final = "`haft trust`"


def listed_rules(
    config: Config, workspace: str | None, home: StateHome, specs: Sequence[ToolSpec]
) -> Iterator[dict[str, Any]]:
    """Remembered answers, those of files, and what haft does where none fits. `specs` are the tools there are."""
    for rule in () if workspace is None else remembered_rules(home, workspace):
        yield _shape(rule, specs)
    yield from _written(config, specs)
    yield from _built_in()


def is_all_there(rules: Sequence[Rule], specs: Sequence[ToolSpec]) -> bool:
    """Whether there is everything that the rules speak of."""
    return all(missing_target(rule, specs) is None for rule in rules)


def _shape(rule: Rule, specs: Sequence[ToolSpec] = (), *, why: str | None = None) -> dict[str, Any]:
    missing = missing_target(rule, specs) if specs else None
    return {**shown_rules([rule])[0], "rule": rule.words, "counts": why is None, "why": why, "missing": missing}


def _written(config: Config, specs: Sequence[ToolSpec]) -> Iterator[dict[str, Any]]:
    """Those of files, each file in its own order; what is set aside stands where it is written."""
    aside = {one.source: one.why for one in config.ignored if one.name == "permissions"}
    grants = {one.source: one.why for one in config.ignored if one.name == "permissions.grant"}
    _ = config.rules  # what is wrong with them is said
    for one in config.rule_sets:
        for rule in rules_from(one.tables, origin=one.origin, source=one.source, lines=one.lines):
            shape = _shape(rule, specs, why=aside.get(rule.source) if one.counting is not None else None)
            if one.counting is not None and rule.source in grants:
                shape |= {
                    "grant": NO_GRANTS.to_json(),
                    "why": f"without its grant until {TRUST}: before that, {grants[rule.source]}",
                }
            elif config.never_network is not None and rule.grant.network:
                shape["grant"]["network"] = False
                shape["why"] = f"without the network: `sandbox.network` is `never` ({config.never_network})"
            yield shape


def _built_in() -> Iterator[dict[str, Any]]:
    for action, words in (
        ("allow", "commands that only read need no approval"),
        ("allow", "read-only built-in tools need no approval"),
        ("allow", "read-only tools of the embedding program need no approval"),
        ("ask", "everything else needs approval"),
    ):
        rule = Rule("*", action, source=BUILT_IN_SOURCE)  # type: ignore[arg-type]
        yield {**_shape(rule), "origin": "built-in", "rule": words}
