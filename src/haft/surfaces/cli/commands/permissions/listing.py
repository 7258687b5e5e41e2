"""`haft permissions list`: every rule there is, in the order in which they count."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import NO_GRANTS
from haft.surfaces.cli.commands.permissions.changing import workspace_or_none
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.home import state_home
from haft.surfaces.cli.place import tell_trust_hint
from haft.surfaces.cli.screen.printing import facts, say, table, to_json_text
from haft.surfaces.cli.screen.terminal import one_line

if TYPE_CHECKING:
    from haft.contracts import ToolSpec
    from haft.policy.rules.rule import Rule
    from haft.service import Config

TRUST: Final = "`haft trust`"


@click.command("list", cls=HaftCommand)
@click.pass_obj
def list_rules(said: Globals) -> None:
    """The rules, in the order in which they count: remembered answers, the workspace's, yours, and what haft does where
    none fits. Of each of these the first that fits counts, and what any of them rejects is rejected. Rules of a
    workspace that is not trusted are marked where they do not count."""
    from haft.service import load_config

    workspace = workspace_or_none(said)
    config = load_config(workspace, os.environ, trust_home=state_home().path)
    specs = () if workspace is None else _specs(said, config.rules)
    found = [*_remembered(workspace, specs), *_written(config, specs), *_built_in()]
    if said.json:
        facts(found)
        return
    table([_row(rule) for rule in found], cut=False)
    if said.quiet:
        return
    if any(one.name.startswith("permissions") for one in config.ignored):
        tell_trust_hint(config)
    say(f"workspace: {one_line(workspace) if workspace else 'none here'}")


def _row(rule: dict[str, Any]) -> tuple[str, ...]:
    about = rule["rule"] if rule["origin"] == "built-in" else _matches(rule)
    if rule["why"] is not None:
        about = (
            f"{about} ({'' if rule['counts'] else f'does not count until {TRUST}: before that, '}{rule['why']})".strip()
        )
    if rule["missing"] is not None:
        about = f"{about} ({rule['missing']})".strip()
    return rule["action"], rule["tool"], rule["source"], about


def _matches(rule: dict[str, Any]) -> str:
    told = {
        "": rule["matches"],
        "exactly": rule["exactly"],
        "grant": {name: value for name, value in rule["grant"].items() if value},
        "dangers": rule["dangers"],
        "context": rule["context"],
        "to": rule["to"],
        "message": rule["message"],
        "in thread": rule["thread"],
    }
    pieces = [f"{name} {to_json_text(value)}".strip() for name, value in told.items() if value]
    return ", ".join(pieces)


def _shape(rule: Rule, specs: Sequence[ToolSpec] = (), *, why: str | None = None) -> dict[str, Any]:
    from haft.policy.rules.missing import what_is_missing
    from haft.service.permissions import shown_rules

    missing = what_is_missing(rule, specs) if specs else None
    return {**shown_rules([rule])[0], "rule": rule.words, "counts": why is None, "why": why, "missing": missing}


def _specs(said: Globals, rules: Sequence[Rule]) -> list[ToolSpec]:
    """The tools of the workspace. Files that are new are asked what they are only where a rule may mean one of them."""
    from haft.policy.rules.missing import what_is_missing
    from haft.surfaces.cli.commands.tools import listings

    quiet = replace(said, quiet=True)
    known = listings(quiet, asking=False)
    ready = [listing.spec for listing in known if listing.enabled]
    is_all_there = all(what_is_missing(rule, ready) is None for rule in rules)
    return [listing.spec for listing in (known if is_all_there else listings(quiet))]


def _remembered(workspace: str | None, specs: Sequence[ToolSpec]) -> Iterator[dict[str, Any]]:
    from haft.service.remembered import remembered_rules

    if workspace is not None:
        for rule in remembered_rules(state_home(), workspace):
            yield _shape(rule, specs)


def _written(config: Config, specs: Sequence[ToolSpec]) -> Iterator[dict[str, Any]]:
    """Those of files, each file in its own order; what is set aside stands where it is written."""
    from haft.policy.rules.reading import rules_from

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
    from haft.policy.baseline import SOURCE
    from haft.policy.rules.rule import Rule

    for action, words in (
        ("allow", "commands that only read pass"),
        ("allow", "read-only built-in tools pass"),
        ("allow", "read-only tools of the embedding program pass"),
        ("ask", "everything else asks"),
    ):
        rule = Rule("*", action, source=SOURCE)  # type: ignore[arg-type]
        yield {**_shape(rule), "origin": "built-in", "rule": words}
