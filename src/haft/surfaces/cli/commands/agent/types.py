"""Functions that the commands about types of sub-agents share."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click

from haft.contracts import HaftError
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.place import workspace_of, workspace_quietly
from haft.surfaces.cli.screen.printing import say
from haft.surfaces.text.home import state_home

if TYPE_CHECKING:
    from haft.service import AgentTypes, Config


def opened_types(options: Globals) -> tuple[AgentTypes, Config]:
    """The types of the workspace, and its configuration."""
    from haft.service import find_agent_types, load_config

    workspace, home = workspace_of(options), state_home().path
    config = load_config(workspace, os.environ, trust_home=home)
    return find_agent_types(workspace, home, config), config


def is_enabled(config: Config) -> bool:
    """Whether sub-agents can be started."""
    return bool(config.values["subagents.enabled"])


def tell_disabled(config: Config, options: Globals) -> None:
    """Say that sub-agents are off, if they are."""
    if not is_enabled(config) and not options.quiet:
        source = config.sources["subagents.enabled"]
        say(f"sub-agents are not enabled: `subagents.enabled` is false ({source})")


def shown_origin(origin: str, options: Globals) -> str:
    """Where a type is defined, in a short form."""
    inside = f"{workspace_quietly(options).rstrip('/')}/"
    home = f"{os.path.expanduser('~').rstrip('/')}/"
    if origin.startswith(inside):
        return origin.removeprefix(inside)
    return f"~/{origin.removeprefix(home)}" if origin.startswith(home) else origin or "built in"


def complete_agents(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion: the types that can be used."""
    from click.shell_completion import CompletionItem

    with contextlib.suppress(HaftError):
        usable = opened_types(Globals(quiet=True))[0].usable()
        return [
            CompletionItem(one.name, help=one.description.split("\n", 1)[0])
            for one in usable
            if one.name.startswith(incomplete)
        ]
    return []
