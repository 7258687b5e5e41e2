"""Arguments of a call to the words of a command line.

Every value arrives as it was given, whatever letters it has: a long option is joined to its value by `=`, a short one
directly, and what stands by position follows the word that ends the options. Where nothing can keep a value from being
taken for an option, it is refused.

This file is part of every wrapper that is written: it needs Python's own library alone.
"""

from __future__ import annotations

import json
from typing import Any

_A = {"integer": "a whole number", "number": "a number"}


class Refused(Exception):
    """Why the arguments cannot be passed, in a sentence."""


def words_of(command: dict[str, Any], given: Any) -> tuple[list[str], bytes]:
    """The words after the program, and what it reads from stdin."""
    if not isinstance(given, dict):
        raise Refused("the arguments must be one JSON object")
    parameters = {one["name"]: one for one in command["parameters"]}
    for name in given:
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            raise Refused(f"there is no parameter `{name}`; there are: {known}")
    options: list[str] = []
    placed: list[tuple[dict[str, Any], list[str]]] = []
    stdin = b""
    absent: str | None = None
    for name, one in parameters.items():
        value, how = given.get(name), one["by"]
        if value is None:
            if one.get("required"):
                raise Refused(f"`{name}` is missing: {one.get('help') or 'it is required'}")
            if how == "position" and not one.get("many"):
                absent = name
            continue
        if how == "stdin":
            stdin = _text(one, value).encode()
        elif how == "position":
            if absent is not None and not one.get("required") and not one.get("lead"):
                raise Refused(f"`{absent}` is missing: `{name}` stands behind it, and would be taken for it")
            placed.append((one, _values(one, value)))
        else:
            options += _option(one, value)
    return [*command["words"], *options, *_placed(placed, command.get("end_of_options", "--"))], stdin


def _placed(placed: list[tuple[dict[str, Any], list[str]]], end: str) -> list[str]:
    found: list[str] = []
    is_ended = False
    for one, values in placed:
        if not values:
            continue
        for word in one.get("lead") or ():
            found.append(word)
            is_ended = is_ended or word == "--"
        if end and not is_ended:
            found.append(end)
            is_ended = True
        for value in values:
            if value.startswith("-") and not is_ended:
                raise Refused(f"`{one['name']}` may not begin with `-`: it would be taken for an option")
            found.append(value)
    return found


def _option(one: dict[str, Any], value: Any) -> list[str]:
    option = one["option"]
    if one["by"] == "flag":
        is_on = _truth(one, value)
        if is_on:
            return [option] if option else []
        return [one["off"]] if one.get("off") else []
    if one["by"] == "count":
        number = int(_text({**one, "type": "integer"}, value))
        if not 0 <= number <= 100:
            raise Refused(f"`{one['name']}` must be from 0 to 100")
        return [option] * number
    values = _values(one, value)
    if one.get("many") == "exactly":
        return [option, *values]
    if one.get("many") == "together":
        if any(each.startswith("-") for each in values):
            raise Refused(f"no value of `{one['name']}` may begin with `-`: it would be taken for an option")
        return [option, *values] if values else []
    return [word for each in values for word in _joined(one["name"], option, each)]


def _joined(name: str, option: str, value: str) -> list[str]:
    if option.startswith("--"):
        return [f"{option}={value}"]
    if len(option) == 2 and value and not value.startswith("="):  # Some take `-n=5` for 5, and an empty one for none.
        return [option + value]
    if value.startswith("-"):
        raise Refused(f"`{name}` may not begin with `-`: it would be taken for an option")
    return [option, value]


def _values(one: dict[str, Any], value: Any) -> list[str]:
    if not one.get("many"):
        return [_text(one, value)]
    single = {**one, "type": one.get("items") or "string"}
    values = [_text(single, each) for each in (value if isinstance(value, list) else [value])]
    if one.get("number") and len(values) != one["number"]:
        raise Refused(f"`{one['name']}` takes {one['number']} values, not {len(values)}")
    return values


def _text(one: dict[str, Any], value: Any) -> str:
    """One value as a word."""
    kind, name = one.get("type", "string"), one["name"]
    if isinstance(value, bool):
        value = "true" if value else "false"
        if kind in ("integer", "number"):
            raise Refused(f"`{name}` must be {_A[kind]}")
    if kind == "object" and isinstance(value, (dict, list)):
        value = json.dumps(value)
    if isinstance(value, (dict, list)):
        raise Refused(f"`{name}` must be one {kind}")
    if kind in ("integer", "number"):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise Refused(f"`{name}` must be {_A[kind]}, not `{str(value)[:40]}`") from None
        if kind == "integer" and not (isinstance(value, int) or str(value).lstrip("+-").isdigit()):
            if number != number // 1:
                raise Refused(f"`{name}` must be a whole number, not `{value}`")
            value = int(number)
    word = str(value)
    if "\0" in word:
        raise Refused(f"`{name}` holds a NUL, which no program can receive")
    if any("\ud800" <= letter <= "\udfff" for letter in word):
        raise Refused(f"`{name}` holds half of a character")
    choices = one.get("choices")
    if choices and word not in [str(choice) for choice in choices]:
        raise Refused(f"`{name}` must be one of {', '.join(str(choice) for choice in choices)}, not `{word}`")
    return word


def _truth(one: dict[str, Any], value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
    said = words.get(str(value).lower())
    if said is None:
        raise Refused(f"`{one['name']}` must be true or false, not `{value}`")
    return said
