"""Checks for the values of settings. Each check returns the value in the form that haft uses, or raises `ValueError`.

Every check accepts text, because environment variables contain nothing else.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any, Final

from haft.lazy import regex

UNUSABLE: Final = "cannot be used"
"""The beginning of the message of a check that already shows the wrong part of the value."""
_WORKSPACE_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_WHOLE: Final = 10**18
MOST_SECONDS: Final = 10**9


def whole(least: int, *, zero: bool = False) -> Callable[[Any], int]:
    """A check for a whole number of at least `least`. With `zero`, 0 is accepted, too, and means no limit."""

    def check(value: Any) -> int:
        if isinstance(value, str):
            try:
                value = int(value)
            except ValueError:
                value = None
        none = zero and value == 0
        if not isinstance(value, int) or isinstance(value, bool) or (value < least and not none):
            raise ValueError(f"must be a whole number, at least {least:_}" + (", or 0 for no limit" if zero else ""))
        if value > MOST_WHOLE:
            raise ValueError(f"must be at most {MOST_WHOLE:_}")
        return value

    return check


def seconds(least: float, *, zero: bool = False) -> Callable[[Any], float]:
    """A check for a number of seconds of at least `least`. With `zero`, 0 is accepted, too, and means no limit."""

    def check(value: Any) -> float:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                value = None
        if not isinstance(value, int | float) or isinstance(value, bool) or not value < float("inf"):
            raise ValueError("must be a number of seconds")
        if value < least and not (zero and value == 0):
            raise ValueError(f"must be at least {least:g} seconds" + (", or 0 for no limit" if zero else ""))
        if value > MOST_SECONDS:
            raise ValueError(f"must be at most {MOST_SECONDS:_} seconds")
        return float(value)

    return check


def amount(value: Any) -> float:
    """Check a number that is not negative, such as an amount of money, and return it. 0 means no limit."""
    return _number(value, float("inf"), "must be a number, or 0 for no limit")


def temperature(value: Any) -> float:
    """Check the temperature of a model, and return it."""
    return _number(value, 2.0, "must be a number from 0 to 2")


def _number(value: Any, most: float, otherwise: str) -> float:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most or value == float("inf"):
        raise ValueError(otherwise)
    return float(value)


def one_of(*choices: str) -> Callable[[Any], str]:
    """A check for one of the words in `choices`."""

    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return str(value)

    return check


def truth(value: Any) -> bool:
    """Check a value that must be true or false, and return it as a `bool`. Words such as `yes` and `off` are accepted,
    too."""
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004  all checks raise the same
    return value


def network(value: Any) -> bool | str | list[str]:
    """Check a value that must be true, false, `never` or a list of hosts, and return it. In a single text, commas
    separate the hosts. A single word that is none of these is refused: it is more likely a misspelt `never` than a
    host."""
    if value == "never":
        return "never"
    with contextlib.suppress(ValueError):
        return truth(value)
    from haft.contracts import hosts_in, network_from  # Imported here because few configurations name hosts.

    if isinstance(value, str):
        value = hosts_in(value) if any(mark in value for mark in ".:@") else None
    if not isinstance(value, list | tuple):
        raise ValueError("must be true, false, `never` or a list of hosts")  # noqa: TRY004  all checks raise the same
    try:
        found = network_from(value)
    except ValueError as error:
        raise ValueError(f"{UNUSABLE}: {error}") from None
    return found if isinstance(found, bool) else list(found)


def seconds_by_tool(value: Any) -> dict[str, float]:
    """Check a table from tool names to seconds, and return it."""
    if not isinstance(value, dict):
        raise ValueError("must be a table of tool names and seconds")  # noqa: TRY004  all checks raise the same
    check = seconds(0.001)
    checked = {}
    for name, number in value.items():
        try:
            checked[name] = check(number)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return checked


def days_by_workspace(value: Any) -> dict[str, int]:
    """Check a table from paths of workspaces to days, and return it."""
    if not isinstance(value, dict):
        raise ValueError("must be a table of workspaces and days")  # noqa: TRY004  all checks raise the same
    check, checked = whole(0), {}
    for path, number in value.items():
        if not str(path).startswith(("/", "~")):
            raise ValueError(f"{path}: must be the whole path of a workspace")
        try:
            checked[path] = check(number)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return checked


def text(value: Any) -> str:
    """Check that a value is a text and not empty, and return it."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be text")
    return value


def text_or_empty(value: Any) -> str:
    """Check that a value is a text, and return it. An empty text switches off what another place sets."""
    return "" if value == "" else text(value)


def texts(value: Any) -> list[str]:
    """Check a list of texts, and return it. A single text is split at its commas."""
    if isinstance(value, str):
        value = [word.strip() for word in value.split(",") if word.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        raise ValueError("must be a list of texts")
    return list(value)


def table(value: Any) -> dict[str, Any]:
    """Check that a value is a table, with any content, and return it."""
    if not isinstance(value, dict):
        raise ValueError("must be a table")  # noqa: TRY004  all checks raise the same
    return value


def tables(value: Any) -> dict[str, Any]:
    """Check that a value is a table of tables, and return it."""
    for name, one in table(value).items():
        if not isinstance(one, dict):
            raise ValueError(f"must be a table of tables: `{name}` is not a table")  # noqa: TRY004  all checks raise the same
    return dict(value)


def secret_sources(value: Any) -> dict[str, Any]:
    """Check the sources of secrets, and return them."""
    for name, given in table(value).items():
        for one in given if isinstance(given, list) else [given]:
            _check_source(name, one)
    return dict(value)


def _check_source(name: str, one: Any) -> None:
    kinds = {"env", "file", "command"} & one.keys() if isinstance(one, dict) else set()
    if len(kinds) != 1 or one.keys() - kinds - {"users"}:
        raise ValueError(f"needs exactly one of `env`, `file` and `command` for `{name}`, and perhaps `users`")
    source, users = one[next(iter(kinds))], one.get("users", [])
    words = source if "command" in one else [source]
    if not (isinstance(words, list) and words and all(_is_text(word) and word for word in words)):
        raise ValueError(f"needs a text for `{name}`, or for `command` a list of texts")
    if "file" in one and not source.startswith(("/", "~/")):
        raise ValueError(f"needs an absolute path as the `file` of `{name}`")
    if not (isinstance(users, list) and all(map(_is_text, users))):
        raise ValueError(f"needs a list of names as the `users` of `{name}`")


def served_workspaces(value: Any) -> list[dict[str, Any]]:
    """Check a list of the workspaces of a server, and return it."""
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of tables")  # noqa: TRY004  all checks raise the same
    for one in value:
        if not isinstance(one, dict) or not _is_text(one.get("name")) or not _is_text(one.get("path")):
            raise ValueError("must be a list of tables, each with `name` and `path`")
        if not _WORKSPACE_NAME.fullmatch(one["name"]):
            raise ValueError(f"`{one['name']}` is not a name: use letters, digits, `.`, `_` and `-`")
        if not one["path"].startswith(("/", "~")):
            raise ValueError(f"`{one['path']}` must be an absolute path, or begin with `~`")
        unknown = sorted(one.keys() - {"name", "path", "users", "limits"})
        if unknown:
            raise ValueError(f"has unknown entries: {', '.join(unknown)}")
        texts(one.get("users", []))
        table(one.get("limits", {}))
    names = [one["name"] for one in value]
    if len({*names}) < len(names):
        raise ValueError("must have a different name for each workspace")
    return list(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def model_names(value: Any) -> dict[str, str]:
    """Check a table from short names of models to their names, and return it."""
    if not all(isinstance(one, str) and one for one in table(value).values()):
        raise ValueError("must be a table from short names to names of models")
    return dict(value)


def agent_types(value: Any) -> dict[str, Any]:
    """Check a table with types of sub-agents by name, and return it. `haft.agents` reads each type later, so that a
    mistake in one of them does not hide the others."""
    return dict(table(value))


def plugin_list(value: Any) -> list[Any]:
    """Check a list of plugins, each a text or a table, and return it."""
    if isinstance(value, str):
        return texts(value)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str | dict) and one for one in value):
        raise ValueError("must be a list of texts and tables")
    return list(value)


def separator(value: Any) -> str:
    """Check the text that separates a name from its value, such as `: ` or `=`, and return it."""
    if not isinstance(value, str) or not value.strip() or len(value) > 8 or not value.isprintable():
        raise ValueError('must be a separator such as ": " or "="')
    return value


def separators(value: Any) -> dict[str, str]:
    """Check a table from tools or directories to their separators, and return it."""
    checked = {}
    for name, mark in table(value).items():
        try:
            checked[name] = separator(mark)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return checked


def rule_list(value: Any) -> list[Any]:
    """Check a list of tables, one for each rule, and return it. `haft.policy` parses the rules later."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, dict) for one in value):
        raise ValueError("must be a list of tables, each written as [[permissions]]")
    return list(value)


MISSING_VARIABLES: Final = " unset"
"""A key that haft adds to a template's instance. Its value maps each parameter that needs an unset variable to the
reason."""


def instance_list(value: Any) -> list[dict[str, Any]]:
    """Check a list of tools that are made from templates, and return it."""
    if not isinstance(value, list):
        raise ValueError("must be a list of tables: [[templates.instances]]")  # noqa: TRY004  all checks raise the same
    for one in value:
        if not isinstance(one, dict):
            raise ValueError("must be a list of tables: [[templates.instances]]")  # noqa: TRY004  the same
        for key in ("name", "template"):
            if not isinstance(one.get(key), str) or not one[key].strip():
                raise ValueError(f"needs text as `{key}` in each table")
        if not isinstance(one.get("user_params", {}), dict):
            raise ValueError("needs a table as `user_params` in each table")  # noqa: TRY004  the same
        try:
            json.dumps(one.get("user_params", {}))
        except (TypeError, ValueError):
            what = f"has `user_params` for `{one['name']}` that JSON cannot represent"
            raise ValueError(f"{what}: write dates as text") from None
        if any(not isinstance(one.get(key, False), bool) for key in ("readonly", "cacheable")):
            raise ValueError("needs true or false as `readonly` and `cacheable`")
        strange = sorted(one.keys() - {"name", "template", "user_params", "readonly", "cacheable", MISSING_VARIABLES})
        if strange:
            known = "name, template, user_params, readonly and cacheable"
            raise ValueError(f"has no key `{strange[0]}`: the keys are {known}")
    return value
