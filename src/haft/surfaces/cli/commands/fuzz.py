"""`haft tools fuzz`: looks for arguments that break a tool."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from haft.contracts import Listing
from haft.surfaces.cli.commands.check import complete_what
from haft.surfaces.cli.commands.tools import find_listing, is_path
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import workspace_of
from haft.surfaces.cli.screen.printing import facts, lines, say
from haft.surfaces.text.terminal import styled, visible

if TYPE_CHECKING:
    from haft.testing.fuzz import Finding

FOUND: Final = 1
INTERRUPTED: Final = 130
_CONFIGS: Final = ("haft.toml", "haft.json", ".mcp.json")


@click.command("fuzz", cls=HaftCommand)
@click.argument("name", shell_complete=complete_what, help="The name of a tool, or the path of a tool file.")
@click.option(
    "--load",
    metavar="PATH",
    multiple=True,
    type=click.Path(exists=True),
    help="Take the tool from this tool file, folder of tools or configuration file (repeatable). Default: where "
    "`haft tools list` has it from.",
)
@click.option(
    "--examples",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    default=100,
    show_default=True,
    help="How many arguments to try.",
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(0, min_open=True),
    default=60,
    show_default=True,
    help="Stop after this time.",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0, 2**32 - 1),
    help="Make the same arguments as an earlier run with this seed.",
)
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(0, min_open=True),
    default=10,
    show_default=True,
    help="The deadline of each call. A call that passes it is a finding.",
)
@click.option(
    "--to",
    "directory",
    metavar="DIR",
    type=click.Path(file_okay=False, exists=True),
    default=".",
    help="Write findings as scenarios into this directory, and first try those that are there. Default: the current "
    "directory.",
)
@click.option(
    "--really",
    is_flag=True,
    help="Also call a tool that works on another machine, has grants, or runs without a sandbox. Nothing takes back "
    "what it does there.",
)
@click.pass_context
def fuzz_tool(
    context: click.Context,
    name: str,
    load: tuple[str, ...],
    examples: int,
    seconds: float,
    seed: int | None,
    timeout: float,
    directory: str,
    really: bool,
) -> None:
    """Look for arguments that break a tool. haft makes arguments from the tool's schema, and calls the tool in a
    temporary workspace, without network and grants. It writes each finding as a scenario.

    The exit code is 0 if haft finds nothing, 1 if it finds something, and 2 if the tool cannot be fuzzed."""
    from haft.testing.fuzz import FuzzOptions, lines_of, summary_of
    from haft.testing.fuzz import fuzz_tool as fuzz

    options = context.find_object(Globals) or Globals()
    places = [os.path.abspath(each) for each in load]
    if not places and is_path(name):
        name, places = "", [os.path.abspath(os.path.expanduser(name))]
    elif not places:
        listing = find_listing(name, options)
        name, places = listing.spec.name, _places(listing, workspace_of(options))

    def told(finding: Finding) -> None:
        if not options.json:
            lines(visible(line) for line in lines_of(finding, _styled))

    chosen = FuzzOptions(
        examples=examples, seconds=seconds, seed=seed, timeout=timeout, directory=directory, really=really
    )
    if not options.json and not options.quiet:
        say(f"calling {name or places[0]} with up to {examples} arguments, for at most {seconds:g} s; Ctrl-C ends this")
    report = fuzz(name, places, chosen, told)
    if options.json:
        facts(report.to_json())
    elif not options.quiet:
        for line in summary_of(report):
            say(line)
    context.exit(FOUND if report.findings else INTERRUPTED if report.ended == "interrupted" else 0)


def _styled(text: str, style: str) -> str:
    return styled(text, style, sys.stdout)


def _places(listing: Listing, workspace: str) -> list[str]:
    """The files from which a service gets the tool: none for built-in tools, the tool's own file or folder, or the
    configuration files of the workspace."""
    spec = listing.spec
    if spec.kind == "builtin":
        return []
    if spec.kind not in ("cli", "mcp") and os.path.isabs(spec.origin) and os.path.exists(spec.origin):
        return [spec.origin]
    found = (os.path.join(workspace, each) for each in _CONFIGS)
    return [each for each in found if os.path.exists(each)]
