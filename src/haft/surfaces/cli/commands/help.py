"""`haft help` and `haft version`: print the same as `--help` and `--version`."""

from __future__ import annotations

import click

from haft.contracts import BadUsage
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.screen.printing import facts, lines
from haft.version import __version__


@click.command("help", cls=HaftCommand)
@click.argument("command", nargs=-1, help="A command, such as `tools use`. Default: the list of all commands.")
@click.pass_context
def print_help(context: click.Context, command: tuple[str, ...]) -> None:
    """Print the help of a command: `haft help tools use` prints the same as `haft tools use --help`."""
    wanted = context.find_root()
    for name in command:
        group = wanted.command
        if not isinstance(group, click.Group):
            raise BadUsage(f"`{wanted.command_path}` has no command `{name}`", hint=f"`{wanted.command_path} --help`")
        _name, found, _rest = group.resolve_command(wanted, [name])
        assert found is not None
        wanted = click.Context(found, info_name=name, parent=wanted, help_option_names=["--help", "-h"])
    lines([wanted.get_help()])


@click.command("version", cls=HaftCommand)
@click.pass_obj
def print_version(options: Globals) -> None:
    """Print the version of haft."""
    if options.json:
        facts({"version": __version__})
    else:
        lines([f"haft {__version__}"])
