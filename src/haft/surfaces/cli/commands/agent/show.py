"""`haft agent show NAME`: what a sub-agent of a type would get in this workspace, with its whole system prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from haft.surfaces.cli.commands.agent.types import (
    complete_agents,
    is_enabled,
    opened_types,
    shown_origin,
    tell_disabled,
)
from haft.surfaces.cli.commands.tools import listings
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.screen.printing import facts, verbatim, warn
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import one_line, visible

if TYPE_CHECKING:
    from haft.service import DescribedType


@click.command("show", cls=HaftCommand)
@click.argument("name", shell_complete=complete_agents, help="A type of sub-agent.")
@click.pass_obj
def show_agent(options: Globals, name: str) -> None:
    """Show a type of sub-agent: its description, the tools that it would get here, its model, its limits, and its whole
    system prompt. haft also lists the tools that it would not get, each with the reason."""
    from haft.service import described_type

    types, config = opened_types(options)
    agent = types.named(name)
    found = described_type(agent, config, listings(options))
    if options.json:
        facts({**found.to_json(), "enabled": is_enabled(config)})
        return
    tell_disabled(config, options)
    verbatim(_described(found, options))
    for note in agent.notes:
        warn(note)


def _described(found: DescribedType, options: Globals) -> Iterator[str]:
    agent = found.agent
    yield one_line(f"{agent.name}  ({shown_origin(agent.origin, options)})")
    yield visible(agent.description)
    yield ""
    yield f"tools: {', '.join(found.tools.names) or 'none, so it cannot start'}"
    for name, reason in found.tools.left_out:
        yield one_line(f"  without {name}: {reason}")
    if agent.readonly:
        yield "  only calls that change nothing"
    if agent.restricted:
        yield "  no grants, no dangerous calls, and no remembered answers"
    yield one_line(f"model: {found.model.name or 'none: set `subagents.model`'}")
    if found.model.note is not None:
        yield one_line(f"  {found.model.note}")
    yield f"temperature: {found.temperature:g}, at most {found.output_tokens:_} tokens in one answer"
    limits = {key: number for key, number in found.budget.items() if number}
    yield "limits: " + ", ".join(f"{key} {_number(number)}" for key, number in limits.items())
    yield f"isolation: {found.isolation}"
    if agent.output is not None:
        yield one_line(f"result: {to_json_text(dict(agent.output))}")
    yield f"system prompt{'' if agent.prompt else ' (the default)'}:"
    yield from (f"  {visible(line)}".rstrip() for line in found.prompt.split("\n"))


def _number(number: float) -> str:
    return f"{int(number):_}" if float(number).is_integer() else f"{number:g}"
