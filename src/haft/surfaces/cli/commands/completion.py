"""`haft completion SHELL`, and the completion of a tool's parameters and their values.

The shell script only passes the words on: it runs haft itself to get the completions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import click

from haft.contracts import HaftError, ToolSpec
from haft.surfaces.cli.app import COMPLETE_VARIABLE, HAFT
from haft.surfaces.cli.globals import HaftCommand
from haft.surfaces.cli.screen.printing import data

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=HaftCommand)
@click.argument("shell", type=click.Choice(SHELLS), help="The shell.")
def print_completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash: eval "$(haft completion bash)"            in ~/.bashrc
    zsh:  eval "$(haft completion zsh)"             in ~/.zshrc
    fish: haft completion fish | source             in ~/.config/fish/config.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    chosen = get_completion_class(shell)
    assert chosen is not None
    # Use the base class's `source`: that of the class for bash would start bash to ask for its version.
    data(ShellComplete.source(chosen(HAFT, {}, "haft", COMPLETE_VARIABLE)))


def complete_parameters(name: str | None, words: Sequence[str], incomplete: str) -> list[Any]:
    """Shell completion for `tools use NAME`: the tool's parameters, or the values of the parameter that was typed
    last."""
    from haft.surfaces.cli.words.definitions import parameters

    spec = _spec(name)
    if spec is None:
        return []
    known = parameters(spec.input_schema)
    if incomplete.startswith("-"):
        return _names(known, words, incomplete)
    last = words[-1] if words else ""
    wanted = next((one for one in known if last.startswith("--") and _alike(one, last[2:])), None)
    return [] if wanted is None else _values(known[wanted], spec.input_schema, incomplete)


def _spec(name: str | None) -> ToolSpec | None:
    from haft.surfaces.cli.commands.tools import listings

    if name is not None:
        with contextlib.suppress(HaftError):
            return next((one.spec for one in listings() if one.enabled and one.spec.name == name), None)
    return None


def _alike(one: str, other: str) -> bool:
    return one.replace("_", "-") == other.replace("_", "-")


def _names(known: Mapping[str, Any], words: Sequence[str], incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from haft.surfaces.cli.words.parameters import is_option

    options = {f"--{name}": schema for name, schema in known.items()}
    after_dashes = [] if "--" in words else [option for option in options if is_option(option)]
    items = [
        CompletionItem(option, help=_first_line(schema))
        for option, schema in options.items()
        if option.startswith(incomplete) and option not in after_dashes
    ]
    if after_dashes and "--".startswith(incomplete):
        items.append(CompletionItem("--", help=f"then the tool's own {', '.join(after_dashes)}"))
    return items


def own_options(name: str | None, options: list[Any]) -> list[Any]:
    """The part of haft's `options` that may stand after the tool's name. An option is left out if the tool has a
    parameter of the same name."""
    from haft.surfaces.cli.words.binding import declared_as

    spec = _spec(name)
    if spec is None:
        return options
    return [each for each in options if declared_as(str(each.value), spec.input_schema) is None]


def _values(schema: Any, root: Mapping[str, Any], incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from haft.surfaces.cli.words.definitions import resolved, types_of

    form = resolved(schema, root)
    options = form.get("enum")
    if not isinstance(options, list):
        options = ["true", "false"] if types_of(schema, root) == {"boolean"} else []
    if options:
        return [CompletionItem(str(one)) for one in options if str(one).startswith(incomplete)]
    # Most text parameters are paths, and to offer files for the others does no harm.
    return [CompletionItem(incomplete, type="file")] if "string" in types_of(schema, root) else []


def _first_line(schema: Any) -> str:
    about = schema.get("description", "") if isinstance(schema, Mapping) else ""
    return str(about).strip().split("\n", 1)[0]
