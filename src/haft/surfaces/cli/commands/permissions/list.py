"""`haft permissions list`: every rule, in the order in which they apply."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from haft.surfaces.cli.commands.permissions.change import workspace_or_none
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import tell_trust_hint
from haft.surfaces.cli.screen.printing import facts, say, table
from haft.surfaces.text.home import state_home
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.contracts import ToolSpec
    from haft.service import Rule

TRUST: Final = "`haft trust`"


@click.command("list", cls=HaftCommand)
@click.pass_obj
def list_rules(options: Globals) -> None:
    """List the rules, in four groups: remembered answers, the workspace's rules, your rules, and haft's own rules.
    haft's own rules are for calls that no other rule matches. In each group, the first matching rule applies. If any
    group rejects a call, the call is rejected.

    In an untrusted workspace, some rules of the workspace do not count. haft marks these rules."""
    from haft.service import listed_rules, load_config

    workspace = workspace_or_none(options)
    config = load_config(workspace, os.environ, trust_home=state_home().path)
    specs = () if workspace is None else _specs(options, config.rules)
    found = list(listed_rules(config, workspace, state_home(), specs))
    if options.json:
        facts(found)
        return
    table([_row(rule) for rule in found], cut=False)
    if options.quiet:
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
    parts = {
        "": rule["matches"],
        "exactly": rule["exactly"],
        "grant": {name: value for name, value in rule["grant"].items() if value},
        "dangers": rule["dangers"],
        "isolation": rule["isolation"],
        "context": rule["context"],
        "to": rule["to"],
        "message": rule["message"],
        "in thread": rule["thread"],
    }
    pieces = [f"{name} {to_json_text(value)}".strip() for name, value in parts.items() if value]
    return ", ".join(pieces)


def _specs(options: Globals, rules: Sequence[Rule]) -> list[ToolSpec]:
    """The tools of the workspace. haft describes new tool files only if a rule may be about one of them."""
    from haft.service import is_all_there
    from haft.surfaces.cli.commands.tools import listings

    quiet = replace(options, quiet=True)
    known = listings(quiet, describe=False)
    ready = [listing.spec for listing in known if listing.enabled]
    return [listing.spec for listing in (known if is_all_there(rules, ready) else listings(quiet))]
