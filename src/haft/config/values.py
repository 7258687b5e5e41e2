"""What the value of a setting may be: each check gives the value as it is used, or raises `ValueError` with a sentence.

A text stands for what it says, since variables of the environment hold nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from haft.contracts import grants_from

MOST_WHOLE: Final = 10**18
MOST_SECONDS: Final = 10**9


def whole(least: int, *, zero: bool = False) -> Callable[[Any], int]:
    """A whole number, at least `least`; `zero` where 0 means none."""

    def check(value: Any) -> int:
        if isinstance(value, str):
            try:
                value = int(value)
            except ValueError:
                value = None
        none = zero and value == 0
        if not isinstance(value, int) or isinstance(value, bool) or (value < least and not none):
            raise ValueError(f"must be a whole number, at least {least:_}" + (", or 0 for none" if zero else ""))
        if value > MOST_WHOLE:
            raise ValueError(f"must be at most {MOST_WHOLE:_}")
        return value

    return check


def seconds(least: float, *, zero: bool = False) -> Callable[[Any], float]:
    """A number of seconds; `zero` where 0 means none."""

    def check(value: Any) -> float:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                value = None
        if not isinstance(value, int | float) or isinstance(value, bool) or not value < float("inf"):
            raise ValueError("must be a number of seconds")
        if value < least and not (zero and value == 0):
            raise ValueError(f"must be at least {least:g} seconds" + (", or 0 for none" if zero else ""))
        if value > MOST_SECONDS:
            raise ValueError(f"must be at most {MOST_SECONDS:_} seconds")
        return float(value)

    return check


def one_of(*choices: str) -> Callable[[Any], str]:
    """One of a few words."""

    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return str(value)

    return check


def truth(value: Any) -> bool:
    """True or false, also as a word."""
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004  all checks raise the same
    return value


def network(value: Any) -> bool | str:
    """True, false or `never`."""
    if value == "never":
        return "never"
    try:
        return truth(value)
    except ValueError:
        raise ValueError("must be true, false or `never`") from None


def seconds_by_tool(value: Any) -> dict[str, float]:
    """A table from tool names to seconds."""
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


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be a text")
    return value


def texts(value: Any) -> list[str]:
    """A list of texts; in one text they are parted by commas."""
    if isinstance(value, str):
        value = [word.strip() for word in value.split(",") if word.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        raise ValueError("must be a list of texts")
    return list(value)


def table(value: Any) -> dict[str, Any]:
    """A table, whatever is in it."""
    if not isinstance(value, dict):
        raise ValueError("must be a table")  # noqa: TRY004  all checks raise the same
    return value


def tables(value: Any) -> dict[str, Any]:
    """A table of tables."""
    for name, one in table(value).items():
        if not isinstance(one, dict):
            raise ValueError(f"must be a table of tables: `{name}` is none")  # noqa: TRY004  all checks raise the same
    return dict(value)


def provider_tables(value: Any) -> dict[str, Any]:
    """Tables of MCP servers. What the process of one may reach is its `grant`, with the keys of a rule's."""
    for name, one in tables(value).items():
        try:
            grants_from(one.get("grant"))
        except ValueError as error:
            raise ValueError(f"cannot be used: the `grant` of `{name}`: {error}") from None
    return dict(value)


def plugin_list(value: Any) -> list[Any]:
    """A list of texts and tables."""
    if isinstance(value, str):
        return texts(value)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str | dict) and one for one in value):
        raise ValueError("must be a list of texts and tables")
    return list(value)


def separator(value: Any) -> str:
    """What may stand between a name and a value: a mark, and spaces around it."""
    if not isinstance(value, str) or not value.strip() or len(value) > 8 or not value.isprintable():
        raise ValueError('must be a mark such as ": " or "="')
    return value


def separators(value: Any) -> dict[str, str]:
    """A table of tools or directories, and what stands between name and value there."""
    checked = {}
    for name, mark in table(value).items():
        try:
            checked[name] = separator(mark)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return checked


def rule_list(value: Any) -> list[Any]:
    """A list of tables. What is in them is read where rules are."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, dict) for one in value):
        raise ValueError("must be a list of tables, each written as [[permissions]]")
    return list(value)


UNSET: Final = " unset"
"""In a tool that is made of a template: its parameters that ask for a variable which is not set, and what they ask."""


def instance_list(value: Any) -> list[dict[str, Any]]:
    """A list of tools that are made of templates."""
    if not isinstance(value, list):
        raise ValueError("must be a list of tables: [[templates.instances]]")  # noqa: TRY004  all checks raise the same
    for one in value:
        if not isinstance(one, dict):
            raise ValueError("must be a list of tables: [[templates.instances]]")  # noqa: TRY004  the same
        for key in ("name", "template"):
            if not isinstance(one.get(key), str) or not one[key].strip():
                raise ValueError(f"needs a text as `{key}` in each")
        if not isinstance(one.get("user_params", {}), dict):
            raise ValueError("needs a table as `user_params`")  # noqa: TRY004  the same
        try:
            json.dumps(one.get("user_params", {}))
        except (TypeError, ValueError):
            said = f"has `user_params` for `{one['name']}` that JSON cannot hold"
            raise ValueError(f"{said}: write dates as texts") from None
        strange = sorted(one.keys() - {"name", "template", "user_params", UNSET})
        if strange:
            raise ValueError(f"knows name, template and user_params, and no `{strange[0]}`")
    return value
