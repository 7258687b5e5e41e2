"""`haft agent check [PATH…]`: finds problems in the Markdown files that define types of sub-agents."""

from __future__ import annotations

import click

from haft.surfaces.cli.commands.agent.types import opened_types, tell_disabled
from haft.surfaces.cli.commands.check import lines_of, sum_up
from haft.surfaces.cli.commands.tools import listings
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import workspace_of
from haft.surfaces.cli.screen.printing import facts, lines


@click.command("check", cls=HaftCommand)
@click.argument(
    "paths",
    metavar="[PATH]...",
    nargs=-1,
    type=click.Path(),
    help="A Markdown file, or a folder with such files. Default: the folders in which haft looks for types.",
)
@click.pass_context
def check_agents(context: click.Context, paths: tuple[str, ...]) -> None:
    """Find problems in files that define types of sub-agents, and say how to fix each problem. The exit code is 1 if
    there are errors."""
    from haft.authoring.check import agent_files, check_agent

    options = context.find_object(Globals) or Globals()
    types, config = opened_types(options)
    files = agent_files(paths, types.places())
    tools = listings(options) if files else []
    reports = [check_agent(path, workspace_of(options), tools) for path in files]
    if options.json:
        facts([report.to_json() for report in reports])
    else:
        tell_disabled(config, options)
        lines(line for report in reports for line in lines_of(report))
        if not options.quiet:
            sum_up(reports)
    context.exit(0 if all(report.ok for report in reports) else 1)
