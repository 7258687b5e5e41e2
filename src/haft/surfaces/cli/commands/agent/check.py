"""`haft agent check [PATH…]`: finds problems in the Markdown files and configuration files that define types of
sub-agents."""

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
    help="A Markdown file, or a folder with such files. Default: the folders in which haft looks for types, and the "
    "types in configuration files.",
)
@click.pass_context
def check_agents(context: click.Context, paths: tuple[str, ...]) -> None:
    """Find problems in files that define types of sub-agents, and say how to fix each problem. The exit code is 1 if
    there are errors."""
    from haft.authoring.check import agent_files, check_agent, check_agent_tables

    options = context.find_object(Globals) or Globals()
    types, config = opened_types(options)
    files = agent_files(paths, types.places())
    tables = [] if paths else [one for one in types.tables if one.tables]
    tools = listings(options) if files or tables else []
    reports = [check_agent(path, workspace_of(options), tools) for path in files]
    reports += [report for one in tables for report in check_agent_tables(one, tools)]
    if options.json:
        facts([report.to_json() for report in reports])
    else:
        tell_disabled(config, options)
        lines(line for report in reports for line in lines_of(report))
        if not options.quiet:
            sum_up(reports)
    context.exit(0 if all(report.ok for report in reports) else 1)
