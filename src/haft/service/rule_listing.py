"""All rules for a workspace, in the order in which haft tries them, as `haft permissions list --json` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from haft.config import Config
from haft.contracts import NO_GRANTS, ToolSpec
from haft.policy import BUILT_IN_SOURCE, Rule, missing_target, rules_from
from haft.service.permissions import shown_rules
from haft.service.rule_memory import remembered_rules
from haft.storage import StateHome

TRUST: Final = "`haft trust`"


def listed_rules(
    config: Config, workspace: str | None, home: StateHome, specs: Sequence[ToolSpec]
) -> Iterator[dict[str, Any]]:
    """Remembered rules, the rules of files, and haft's own rules. `specs` are all tools."""
    for rule in () if workspace is None else remembered_rules(home, workspace):
        yield _shape(rule, specs)
    yield from _written(config, specs)
    yield from _built_in()


def is_all_there(rules: Sequence[Rule], specs: Sequence[ToolSpec]) -> bool:
    """Whether every tool and argument that the rules name exists."""
    return all(missing_target(rule, specs) is None for rule in rules)


def _shape(rule: Rule, specs: Sequence[ToolSpec] = (), *, why: str | None = None) -> dict[str, Any]:
    missing = missing_target(rule, specs) if specs else None
    return {**shown_rules([rule])[0], "rule": rule.words, "counts": why is None, "why": why, "missing": missing}


def _written(config: Config, specs: Sequence[ToolSpec]) -> Iterator[dict[str, Any]]:
    """The rules of configuration files, in their order, also those that do not count because the workspace is not
    trusted."""
    aside = {one.source: one.why for one in config.ignored if one.name == "permissions"}
    grants = {one.source: one.why for one in config.ignored if one.name == "permissions.grant"}
    _ = config.rules  # Raises `BadConfig` if a rule is wrong.
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
