"""Converts the arguments of a call to the words of a command line.

Every value reaches the program unchanged, whatever characters it has: a `=` joins a long option and its value, nothing
stands between a short option and its value, and positional values follow `--` or another word that ends the options. If
a value could still be read as an option, it is refused.

This file is copied into every wrapper (an executable for one command), so it imports only Python's standard library.
"""

from __future__ import annotations

import json
from typing import Any

MOST_DIGITS = 300
_A = {"integer": "a whole number", "number": "a number"}


class Refused(Exception):
    """The arguments cannot be passed; the message says why, in one sentence."""


def words_of(command: dict[str, Any], given: Any) -> tuple[list[str], bytes]:
    """The words that follow the program on its command line, and the content of its stdin."""
    if not isinstance(given, dict):
        raise Refused("the arguments must be one JSON object")
    parameters = {one["name"]: one for one in command["parameters"]}
    _check_names(given, parameters)
    options: list[str] = []
    placed: list[tuple[dict[str, Any], list[str]]] = []
    stdin = b""
    absent: str | None = None
    endless: str | None = None
    for name, one in parameters.items():
        value, how = given.get(name), one["by"]
        if value is None:
            if one.get("required"):
                raise Refused(f"`{name}` is missing: {one.get('help') or 'it is required'}")
            if how == "position" and not one.get("lead"):
                absent = name
                if endless is not None:
                    raise Refused(f"`{name}` is missing: the program would read the last of `{endless}` as `{name}`")
            continue
        if how == "stdin":
            stdin = _text(one, value).encode()
        elif how == "position":
            is_displaced = absent is not None and not one.get("lead")
            if is_displaced and one.get("or_stdin"):
                stdin = _text(one, value).encode()
                continue
            if is_displaced and (one.get("many") or not one.get("required")):
                raise Refused(
                    f"`{absent}` is missing: the program would read `{name}`, which follows it, as `{absent}`"
                )
            endless = name if one.get("many") and not one.get("number") else endless
            placed.append((one, _values(one, value)))
        else:
            options += _option(one, value, [other.get("option", "") for other in parameters.values()])
    for one, values in placed:
        _check_words(command, one, values)
    return [*command["words"], *options, *_placed(placed, command.get("end_of_options", "--"))], stdin


def _check_names(given: dict[str, Any], parameters: dict[str, Any]) -> None:
    for name in given:
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            raise Refused(f"there is no parameter `{name}`; there are: {known}")


def _check_words(command: dict[str, Any], one: dict[str, Any], values: list[str]) -> None:
    """Refuse values that the program's parser treats specially in any position: a lone `--`, and `@FILE`, from which
    some parsers read more words."""
    for refused in command.get("refused") or ():
        for value in values:
            if value == refused if refused == "--" else value.startswith(refused):
                raise Refused(f"`{one['name']}` may not be `{value[:40]}`: the program would not read it as a value")


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
                raise Refused(f"`{one['name']}` may not begin with `-`: the program would read it as an option")
            found.append(value)
    return found


def _option(one: dict[str, Any], value: Any, known: list[str]) -> list[str]:
    option = one["option"]
    if one["by"] == "flag":
        is_on = _as_bool(one, value)
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
            raise Refused(f"no value of `{one['name']}` may begin with `-`: the program would read it as an option")
        return [option, *values] if values else []
    return [word for each in values for word in _joined(one["name"], option, each, known)]


def _joined(name: str, option: str, value: str, known: list[str]) -> list[str]:
    if value == "--":
        raise Refused(f"`{name}` may not be `--`: it ends the options for some programs")
    if option.startswith("--"):
        return [f"{option}={value}"]
    # Not always in one word: some programs read `-n=5` as 5, and an empty value as none; `-name` may be another option.
    is_other = any(len(each) > 2 and not each.startswith("--") and each.startswith(option) for each in known)
    if len(option) == 2 and value and not value.startswith("=") and not is_other:
        return [option + value]
    if value.startswith("-"):
        raise Refused(f"`{name}` may not begin with `-`: the program would read it as an option")
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
    """One value as a word. Raises `Refused` if it does not have the parameter's type or is none of its choices."""
    kind, name = one.get("type", "string"), one["name"]
    if isinstance(value, bool):
        value = "true" if value else "false"
        if kind in ("integer", "number"):
            raise Refused(f"`{name}` must be {_A[kind]}")
    if kind == "object" and isinstance(value, (dict, list)):
        value = json.dumps(value)
    if value is None or isinstance(value, (dict, list)):
        raise Refused(f"`{name}` must be one {kind}, not {json.dumps(value)[:40]}")
    word = _number(name, kind, value) if kind in ("integer", "number") else str(value)
    if "\0" in word:
        raise Refused(f"`{name}` has a NUL character, which no program can receive")
    if any("\ud800" <= letter <= "\udfff" for letter in word):
        raise Refused(f"`{name}` has half of a character")
    choices = one.get("choices")
    if choices and word not in [str(choice) for choice in choices] and value not in choices:
        raise Refused(f"`{name}` must be one of {', '.join(str(choice) for choice in choices)}, not `{word}`")
    return word


def _number(name: str, kind: str, value: Any) -> str:
    """A number as a word. Raises `Refused` for values that are not numbers, and for numbers that do not fit the type or
    have too many digits."""
    try:
        word = str(value).strip()
    except ValueError:
        raise Refused(f"`{name}` has too many digits") from None
    digits = word[1:] if word[:1] in ("+", "-") else word
    if digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS:
        return word
    try:
        number = float(word)
    except (ValueError, OverflowError):
        number = float("nan")
    is_whole = number == number and abs(number) < 2**53 and number == int(number)
    if number != number or number in (float("inf"), -float("inf")) or (kind == "integer" and not is_whole):
        raise Refused(f"`{name}` must be {_A[kind]}, not `{word[:40]}`")
    return str(int(number)) if kind == "integer" else word


def _as_bool(one: dict[str, Any], value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
    answer = words.get(str(value).lower())
    if answer is None:
        raise Refused(f"`{one['name']}` must be true or false, not `{value}`")
    return answer
