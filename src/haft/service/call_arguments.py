"""Checks the arguments of `service.call`, and raises a clear error before there is a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from haft.contracts import BadUsage, Grants, InvalidArguments, Isolation, Question, ToolSpec, check_owned, grants_from
from haft.schema import validator_for


def check_call(
    name: Any,
    arguments: Any,
    *,
    timeout: Any,
    cwd: Any,
    env: Any,
    config: Any,
    grants: Any = None,
    isolation: Any = None,
) -> None:
    """Raise `BadUsage` if a parameter of `service.call` has a wrong type. Does not check `arguments` against the tool's
    schema."""
    if not isinstance(name, str):
        raise BadUsage(f"the name of a tool must be a text, not {name!r}")
    if arguments is not None and type(arguments) is not dict and not isinstance(arguments, Mapping):
        raise BadUsage(f"`arguments` must be a dict of names and values, not {_kind(arguments)}")
    if timeout is not None:
        number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not number or not 0 < timeout <= LONGEST_SECONDS:
            raise BadUsage(f"`timeout` must be a number of seconds above 0, not {timeout!r}")
    if not isinstance(cwd, str):
        raise BadUsage(f"`cwd` must be a path relative to the workspace, not {_kind(cwd)}")
    if env is not None and not (
        isinstance(env, Mapping) and all(isinstance(key, str) and isinstance(value, str) for key, value in env.items())
    ):
        raise BadUsage("`env` must be a dict of variable names and texts")
    if config is not None and not (isinstance(config, Mapping) and all(isinstance(key, str) for key in config)):
        raise BadUsage("`config` must be a dict of names and values")
    if isolation is not None and isolation not in (choices := get_args(Isolation)):
        raise BadUsage(f"`isolation` must be {' or '.join(choices)}, not {isolation!r}")
    if grants is None:
        return
    try:
        # A `Grants` object is checked too, because its fields may have values of any type.
        given = {name: getattr(grants, name) for name in GRANTS} if isinstance(grants, Grants) else grants
        check_owned(grants_from(given).network)
    except ValueError as error:
        raise BadUsage(f"`grants`: {error}") from None


def check_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    """Raise `InvalidArguments` if the tool cannot be called with these arguments."""
    validator = validator_for(spec.input_schema)
    if not validator.is_valid(arguments):
        raise InvalidArguments(spec.name, validator.problems(arguments))


def check_form(question: Question, content: Mapping[str, Any]) -> None:
    """Raise `InvalidArguments` if these values do not fit the form that a tool asks to fill in."""
    if question.url is not None:
        if content:
            raise InvalidArguments("the question", ["it asks you to visit a web address, and takes no values"])
        return
    validator = validator_for(question.schema)
    if not validator.is_valid(content):
        raise InvalidArguments("the question", validator.problems(content))


def never_granted(source: str) -> BadUsage:
    """The error for a call that asks for network although `sandbox.network` is `never`."""
    return BadUsage(
        f"no call gets the network: `sandbox.network` is `never` ({source})", hint="call it without `--network`"
    )


LONGEST_SECONDS = 10.0**9
GRANTS = tuple(field.name for field in dataclasses.fields(Grants))


def _kind(value: Any) -> str:
    return f"a `{type(value).__name__}`"
