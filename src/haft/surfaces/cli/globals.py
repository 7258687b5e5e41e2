"""The global options, which may stand before or after any command, and the classes of commands that have them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from haft.contracts import BadUsage
from haft.values import dataclass, field
from haft.version import __version__


@dataclass(slots=True)
class Globals:
    """The values of the global options."""

    workspace: str | None = None
    """The directory given with `-w`; None means the nearest workspace."""
    json: bool = False
    quiet: bool = False
    servers: Mapping[str, Callable[..., int]] = field(default_factory=dict)
    """The servers that `haft serve` can start, by name. Each takes its options, serves, and returns an exit code."""


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    options = context.find_object(Globals)
    # Every group and command on the line has this option. One that got no value must not reset the value that another
    # got.
    if value and options is not None and parameter.name:
        setattr(options, parameter.name, value)


def _keep_workspace(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        _keep(context, parameter, checked_directory(value))


def checked_directory(path: str) -> str:
    """The absolute path of a directory that the person named. Raises `BadUsage` if it is not a directory."""
    if not path:
        raise BadUsage("the workspace has an empty name", hint="`-w .` is the current directory")
    absolute = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(absolute):
        raise BadUsage(f"the workspace {path} is not a directory", hint="`-w DIR` names an existing directory")
    return absolute


def _version(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"haft {__version__}")
        context.exit()


GLOBAL_OPTIONS: Final = (
    click.Option(
        ["-w", "--workspace"],
        metavar="DIR",
        expose_value=False,
        callback=_keep_workspace,
        type=click.Path(file_okay=False),
        help="The directory that tools work in. Default: going up from the current directory, the first directory "
        "that contains haft.toml, haft.json or .git.",
    ),
    click.Option(
        ["--json"], is_flag=True, expose_value=False, callback=_keep, help="Print the result as one JSON value."
    ),
    click.Option(
        ["-q", "--quiet"], is_flag=True, expose_value=False, callback=_keep, help="Print fewer messages on stderr."
    ),
    click.Option(
        ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
    ),
)


def _with_globals(own: list[click.Parameter]) -> list[click.Parameter]:
    return [*own, *GLOBAL_OPTIONS]


def _format_options(command: click.Command, context: click.Context, formatter: click.HelpFormatter) -> None:
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            (shared if parameter in GLOBAL_OPTIONS else own).append(record)
    for title, records in (("Options", own), ("Global options", shared)):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


class HaftCommand(click.Command):
    """A command with the global options."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return _with_globals(super().get_params(ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as error:  # click does not say whose option it is.
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _format_options(self, ctx, formatter)


class HaftGroup(click.Group):
    """A group with the global options."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return _with_globals(super().get_params(ctx))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)
