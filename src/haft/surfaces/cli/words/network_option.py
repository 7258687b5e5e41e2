"""The option `--network[=HOST,…]`. Alone, it grants the whole network; with hosts, it grants only these.

Only `--network=HOST` has a value: the word after a bare `--network` is another argument of the command. click cannot
say this, so `CommandWithNetwork` takes the values out of the words before click parses them. `haft tools use` parses
its words itself (`parameters`), and shares only `granted_network`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from haft.contracts import BadUsage, Network
from haft.surfaces.cli.globals import HaftCommand

NAME: Final = "--network"
WHOLE: Final = ""
"""Stands for a bare `--network` among the values of the option."""
_VALUES: Final = "haft.network"


def granted_network(values: Sequence[str]) -> Network:
    """The network that the values of all `--network` on a line grant together. Raises `BadUsage` if a host is wrong."""
    if not values:
        return False
    if all(value == WHOLE for value in values):
        return True
    if WHOLE in values:
        raise BadUsage(
            f"`{NAME}` is given both alone and with hosts",
            hint=f"`{NAME}` alone grants the whole network, `{NAME}=HOST` only that host",
        )
    from haft.contracts import hosts_in, network_from

    try:
        return network_from([host for value in values for host in hosts_in(value)])
    except ValueError as error:
        raise BadUsage(f"`{NAME}`: {error}") from error


def check_value(value: str) -> str:
    """The value of one `--network=…`. Raises `BadUsage` if it names no host."""
    from haft.contracts import hosts_in

    if not hosts_in(value):
        raise BadUsage(f"`{NAME}=` names no host", hint=f"`{NAME}` alone grants the whole network")
    return value


class CommandWithNetwork(HaftCommand):
    """A command with `network_option`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words, ctx.meta[_VALUES] = self._split(ctx, args)
        return super().parse_args(ctx, words)

    def _split(self, ctx: click.Context, args: Sequence[str]) -> tuple[list[str], list[str]]:
        """The words without each `--network=…`, and the values of these."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        valued = {name for each in options if not each.is_flag and not each.count for name in each.opts}
        words: list[str] = []
        values: list[str] = []
        rest = list(args)
        while rest:
            word = rest.pop(0)
            if word == "--":
                return [*words, word, *rest], values
            if word.startswith(f"{NAME}="):
                value = word.removeprefix(f"{NAME}=")
                values.append(value if ctx.resilient_parsing else check_value(value))
                continue
            words.append(word)
            if word in valued and rest:
                words.append(rest.pop(0))  # The value of another option, whatever it looks like.
        return words, values


class _NetworkOption(click.Option):
    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return None if record is None else (f"{NAME}[=HOST,…]", record[1])


def _with_hosts(ctx: click.Context, _parameter: click.Parameter, is_bare: bool) -> Network:
    return granted_network([*([WHOLE] if is_bare else []), *ctx.meta.get(_VALUES, ())])


def network_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option for a `CommandWithNetwork`, whose function gets a `Network`. `what` is the first sentence of its
    help."""
    text = f"{what} With HOST: only these hosts, such as `registry.example:443` (repeatable)."
    return click.option(NAME, cls=_NetworkOption, is_flag=True, callback=_with_hosts, help=text)
