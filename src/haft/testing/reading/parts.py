"""Parses the simple parts of a scenario: texts, numbers, tables, answers.

Each function gets the part's place, for messages, and its value. It returns the value as `scenario` has it, or raises
`BadUsage`. `file_parts` and `program_parts` parse the larger parts.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast, get_args

from haft.contracts import ERROR_CODES, BadUsage, near_miss
from haft.testing.scenarios.scenario import Answer, Fault, TextMatch

MOST_LEVELS: Final = 100
"""How deeply the values of a scenario can be nested."""
_MOST_SECONDS: Final = 1_000_000_000
_LARGEST: Final = 1 << 63
_MOST_SHOWN: Final = 100


class Place(Protocol):
    """The place of a part."""

    def __truediv__(self, key: object) -> Place: ...
    def wrong(self, message: str) -> BadUsage: ...


def text(where: Place, value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise where.wrong(f"must be a text, not {_brief(value)}")
    return value


def name(where: Place, value: Any) -> str:
    """A text that can be a path, or the name of a program or a variable."""
    found = text(where, value)
    try:
        os.fsencode(found)
    except UnicodeEncodeError:
        raise where.wrong("has a character that is not valid Unicode") from None
    if "\0" in found:
        raise where.wrong("has a NUL character")
    return found


def content(where: Place, value: Any) -> bytes:
    """A text as the bytes of a file. Characters from U+DC80 to U+DCFF stand for bytes that are no UTF-8."""
    try:
        return text(where, value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise where.wrong("has a character that is not valid Unicode") from None


def words(where: Place, value: Any) -> list[str]:
    """The words of a command line."""
    try:
        return shlex.split(text(where, value))
    except ValueError as error:
        raise where.wrong(f"is not a command line: {error}") from error


def texts(where: Place, value: Any) -> tuple[str, ...]:
    """A list of texts, or one text alone."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
        raise where.wrong(f"must be a list of texts, not {_brief(value)}")
    return tuple(value)


def boolean(where: Place, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise where.wrong(f"must be true or false, not {_brief(value)}")
    return value


def number(where: Place, value: Any) -> float | None:
    """A number of seconds, or null."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST_SECONDS:
        raise where.wrong(f"must be a number of seconds above 0 and at most {_MOST_SECONDS:,}, not {_brief(value)}")
    return float(value)


def whole_number(where: Place, value: Any) -> int | None:
    """A whole number, or null."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST):
        raise where.wrong(f"must be a whole number, not {_brief(value)}")
    return value


def table(where: Place, value: Any) -> Mapping[str, Any]:
    """A table whose keys are texts."""
    if not isinstance(value, Mapping):
        raise where.wrong(f"must be a table, not {_brief(value)}")
    for key in value:
        if not isinstance(key, str):
            raise where.wrong(f"has the key {_brief(key)}, which must be a text; put it in quotes")
    return value


def json_table(where: Place, value: Any) -> dict[str, Any]:
    """A table whose values are JSON."""
    found = dict(table(where, value))
    json_value(where, found)
    return found


def json_value(where: Place, value: Any, depth: int = 0) -> Any:
    """A value that JSON has."""
    if depth > MOST_LEVELS:
        raise where.wrong(f"is nested deeper than {MOST_LEVELS} levels")
    if isinstance(value, Mapping):
        for key, each in table(where, value).items():
            json_value(where / key, each, depth + 1)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            json_value(where / index, each, depth + 1)
    elif not (value is None or isinstance(value, str | int | float)) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise where.wrong(f"must be a value that JSON has, not {_brief(value)}")
    return value


def _brief(value: Any) -> str:
    """A value in a message; a part of a long one."""
    try:
        shown = repr(value)
    except ValueError:  # Python writes no numbers of thousands of digits.
        return "so large a number"
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"


def check_keys(where: Place, value: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Raise `BadUsage` if the table has a key that is not one of `keys`."""
    for key in value:
        if key not in keys:
            near = near_miss(key, keys)
            raise where.wrong(
                f"has no `{key}`" + (f"; did you mean `{near}`?" if near else f"; it has {', '.join(keys)}")
            )


# Texts.


def text_match(where: Place, value: Any) -> TextMatch | None:
    """A text that must be equal, or a table of `equals`, `contains` and `matches`."""
    if value is None:
        return None
    if isinstance(value, str):
        return TextMatch(equals=value)
    found = table(where, value)
    check_keys(where, found, ("equals", "contains", "matches"))
    pattern = text(where / "matches", found["matches"]) if found.get("matches") is not None else None
    if pattern is not None:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise (where / "matches").wrong(f"is not a regular expression: {error}") from error
    equals = text(where / "equals", found["equals"]) if found.get("equals") is not None else None
    return TextMatch(equals, texts(where / "contains", found.get("contains", ())), pattern)


# Answers, faults, decisions.


def answers(where: Place, value: Any) -> Any:
    """`all`, `none`, or the answers in the order of the requests."""
    if value in ("all", "none"):
        return value
    if value is True or value is False:
        return "all" if value else "none"
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise where.wrong(f"must be `all`, `none` or a list of answers, not {_brief(value)}")
    return tuple(_answer(where / index, each) for index, each in enumerate(value))


def _answer(where: Place, value: Any) -> Answer:
    if isinstance(value, Answer):
        return value
    if isinstance(value, bool):
        return Answer(value)
    if value in ("approve", "reject"):
        return Answer(value == "approve")
    found = table(where, value)
    check_keys(where, found, ("reject", "message", "args", "grant", "scope"))
    if "reject" in found:
        given = found["reject"]
        return Answer(approve=False, message=None if given is True else text(where / "reject", given))
    scope = found.get("scope", "once")
    if scope not in ("once", "thread", "always"):
        raise (where / "scope").wrong(f"must be once, thread or always, not {_brief(scope)}")
    message = text(where / "message", found["message"]) if found.get("message") is not None else None
    args = None if found.get("args") is None else json_table(where / "args", found["args"])
    grant = None if found.get("grant") is None else json_table(where / "grant", found["grant"])
    return Answer(approve=True, message=message, args=args, grant=grant, scope=scope)


def fault(where: Place, value: Any) -> tuple[Fault | None, dict[str, Any]]:
    """The kind of a fault, and its options."""
    if value is None:
        return None, {}
    options = {} if isinstance(value, str) else dict(json_table(where, value))
    kind = value if isinstance(value, str) else options.pop("kind", None)
    if kind not in get_args(Fault):
        near = near_miss(str(kind), get_args(Fault))
        raise where.wrong(
            f"must be one of {', '.join(get_args(Fault))}" + (f"; did you mean `{near}`?" if near else "")
        )
    return cast("Fault", kind), options


def error_code(where: Place, value: Any) -> str | None:
    """The code of an error, or null."""
    if value is not None and (code := text(where, value)) not in ERROR_CODES:
        near = near_miss(code, ERROR_CODES)
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(sorted(ERROR_CODES))}"
        raise where.wrong(f"names no error code: {code!r}; {hint}")
    return cast("str | None", value)


def decision(where: Place, value: Any) -> dict[str, Any]:
    """An action, or the parts of a decision."""
    found = {"action": value} if isinstance(value, str) else json_table(where, value)
    check_keys(where, found, ("action", "by", "layer", "rule", "reason", "source"))
    if found.get("action", "allow") not in ("allow", "reject"):
        raise where.wrong(
            f"must be `allow` or `reject`, not {found['action']!r}; `by: person` says that somebody was asked"
        )
    return found
