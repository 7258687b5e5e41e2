"""`haft agent list`: every type of sub-agent. Reads their files, and starts no process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from haft.surfaces.cli.commands.agent.types import is_enabled, opened_types, shown_origin, tell_disabled
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import tell_ignored
from haft.surfaces.cli.screen.printing import facts, table

if TYPE_CHECKING:
    from haft.service import ListedType


@click.command("list", cls=HaftCommand)
@click.pass_obj
def list_agents(options: Globals) -> None:
    """List the types of sub-agents, each with its origin, the tools that it names, and the first line of its
    description. A type that cannot be used has a reason instead."""
    types, config = opened_types(options)
    tell_ignored(config, options)
    found = types.listed()
    if options.json:
        facts({"enabled": is_enabled(config), "types": [_fact(one) for one in found]})
        return
    tell_disabled(config, options)
    table([_row(one, options) for one in found], style_first="bold", cut=all(one.is_usable for one in found))


def _row(one: ListedType, options: Globals) -> tuple[str, ...]:
    origin = shown_origin(one.origin, options)
    if one.type is None or one.problem is not None:
        return one.name, origin, one.state, one.problem or ""
    return one.name, origin, ", ".join(one.type.tools) or "as explore", one.type.description.split("\n", 1)[0]


def _fact(one: ListedType) -> dict[str, Any]:
    agent = one.type
    return {
        "name": one.name,
        "description": None if agent is None else agent.description,
        "provenance": one.provenance,
        "origin": one.origin,
        "state": one.state,
        "reason": one.problem,
        "tools": None if agent is None else list(agent.tools),
        "disallowed": None if agent is None else list(agent.disallowed),
        "model": None if agent is None else agent.model,
        "notes": [] if agent is None else list(agent.notes),
    }
