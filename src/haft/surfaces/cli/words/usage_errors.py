"""Click's errors about the command line, as errors of haft: which option is wrong, and what would be right."""

from __future__ import annotations

import re
from typing import Final

import click

from haft.contracts import BadUsage, near_miss
from haft.lazy import regex

_REFUSED: Final = regex(r"'?(?P<value>.*?)'? is not ", re.DOTALL)
_EXTRA: Final = regex(r"unexpected extra arguments? \((?P<words>.*)\)", re.DOTALL)

RUNS_HINT: Final = "`haft log` shows the runs"
_MISSING_HINTS: Final = {"ID": "`haft inbox` shows the requests"}
_COMMANDS_AFTER_DASHES: Final = {
    "haft providers add": "write the command of a server after `--`: `haft providers add NAME -- COMMAND…`"
}


def to_bad_usage(error: click.ClickException) -> BadUsage:
    """An error of click as an error of haft."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context is not None else "haft"
    more = f"`{command} --help` shows how it is used"
    if isinstance(error, click.NoSuchOption):
        known = _option_names(context)
        near = near_miss(error.option_name, known)
        listed = f"the options are {', '.join(known)}" if known else more
        listed = _COMMANDS_AFTER_DASHES.get(command, listed)
        hint = f"did you mean `{near}`?" if near else listed
        return BadUsage(f"`{command}` has no option `{error.option_name}`", hint=hint)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        hint = RUNS_HINT if error.param.name in ("run", "runs") else _MISSING_HINTS.get(_shown(error.param), more)
        return BadUsage(f"`{command}` needs {_shown(error.param)}", hint=hint)
    if isinstance(error, click.BadParameter) and error.param is not None:
        return _bad_value(error.param, error.message, more)
    if isinstance(error, click.BadOptionUsage):
        wrong = "takes no value" if "not take a value" in error.message else _needs_value(error.option_name, context)
        return BadUsage(f"`{error.option_name}` {wrong}", hint=None if context is None else more)
    if isinstance(error, click.UsageError) and "Missing command" in error.message:
        return BadUsage(f"`{command}` needs a command", hint=more)
    extra = _EXTRA.search(error.format_message())
    if extra is not None:
        return BadUsage(f"`{command}` takes no argument `{extra['words'][:80]}`", hint=more)
    return BadUsage(_sentence(error.format_message()), hint=more)


def _bad_value(parameter: click.Parameter, message: str, more: str) -> BadUsage:
    refused = _REFUSED.match(message)
    wanted = _wanted(parameter.type)
    if refused is None or wanted is None:
        return BadUsage(f"{_shown(parameter)}: {_sentence(message)}", hint=more)
    value = refused["value"][:80]
    if isinstance(parameter.type, click.Choice):
        near = near_miss(value, map(str, parameter.type.choices))
        more = f"did you mean `{near}`?" if near else more
    return BadUsage(f"{_shown(parameter)} must be {wanted}, not `{value}`", hint=more)


def _wanted(kind: click.ParamType[object]) -> str | None:
    """The values that an option takes, in words; None if it takes any text."""
    if isinstance(kind, click.Choice):
        return f"one of {', '.join(map(str, kind.choices))}"
    number = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    if isinstance(kind, click.IntRange | click.FloatRange):
        least = "" if kind.min is None else f", at least {kind.min}"
        most = "" if kind.max is None else f", at most {kind.max}"
        return f"{number}{least}{most}"
    return number if isinstance(kind, click.types.IntParamType | click.types.FloatParamType) else None


def _needs_value(name: str, context: click.Context | None) -> str:
    options = [] if context is None else context.command.get_params(context)
    option = next((each for each in options if name in each.opts), None)
    wanted = None if option is None else _wanted(option.type)
    if wanted is not None:
        return f"needs {wanted}"
    return "needs a value" if option is None or not option.metavar else f"needs a value: `{name} {option.metavar}`"


def _sentence(text: str) -> str:
    """A sentence of click without its capital and full stop, since it follows `error:`."""
    return text[:1].lower() + text[1:].rstrip(".")


def _shown(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return f"`{parameter.opts[-1]}`"
    return parameter.metavar or (parameter.name or "").upper()


def _option_names(context: click.Context | None) -> list[str]:
    if context is None:
        return []
    options = [item for item in context.command.get_params(context) if isinstance(item, click.Option)]
    return [name for option in options for name in option.opts if name.startswith("--")]
