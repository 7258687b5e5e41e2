r"""Patterns of values: what a rule's matcher says of an argument.

A text in which `*` is anything (`\*`, `\\` and `\/` stand for the sign), `/regex/` searched anywhere in the text, a
list of which any may fit, a boolean or number that must be equal, a table for what is nested. Every test takes time in
proportion to the text, however the pattern was written: patterns come from files of strangers, and texts from a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from haft.lazy import regex

SIZE_LIMIT: Final = 1_000_000
"""Of a compiled regular expression, in bytes."""
_ESCAPED_OR_STAR: Final = regex(r"\\([\\*/])|(\*)")


def is_regex(pattern: str) -> bool:
    """Whether it is written `/…/`."""
    return len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/")


def text_fits(pattern: str, text: str) -> bool:
    """Whether a text, with `*` for anything, or a `/regex/` fits."""
    return regex_of(pattern[1:-1])(text) if is_regex(pattern) else glob_fits(pattern, text)


def glob_fits(pattern: str, text: str) -> bool:
    """Whether `text` is `pattern`, with anything where its stars stand."""
    first, *rest = _literals(pattern)
    if not rest:
        return text == first
    *middle, last = rest
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for literal in middle:
        at = text.find(literal, at, end)
        if at < 0:
            return False
        at += len(literal)
    return True


def glob_occurs(pattern: str, text: str) -> bool:
    """Whether `pattern` stands anywhere in `text`."""
    return glob_fits(f"*{pattern}*", text)


def escaped(text: str) -> str:
    """The pattern that only `text` fits."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


@lru_cache(maxsize=4096)
def _literals(pattern: str) -> tuple[str, ...]:
    """What stands before, between and after the stars."""
    found, at = [""], 0
    for match in _ESCAPED_OR_STAR.finditer(pattern):
        found[-1] += pattern[at : match.start()] + (match[1] or "")
        if match[2]:
            found.append("")
        at = match.end()
    found[-1] += pattern[at:]
    return tuple(found)


@lru_cache(maxsize=1024)
def regex_of(expression: str) -> Callable[[str], bool]:
    """A test whether it is found in a text; `ValueError` where it is no regular expression of the linear kind."""
    # Rust's engine: without look-around and back-references, and so without texts that take it for ever.
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=SIZE_LIMIT, dfa_size_limit=SIZE_LIMIT)
    try:
        found = jsonschema_rs.validator_for({"type": "string", "pattern": expression}, pattern_options=options)
    except (ValueError, UnicodeEncodeError) as error:
        raise ValueError(f"is no regular expression: {_trouble(expression)}") from error

    def test(text: str) -> bool:
        try:
            return found.is_valid(text)
        except UnicodeEncodeError:  # bytes that are no UTF-8 stand as lone surrogates
            return found.is_valid(text.encode("utf-8", "replace").decode())

    return test


def _trouble(expression: str) -> str:
    """What is wrong with it; Rust's engine was asked by a go-between that does not pass its words on."""
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return "it looks around or back, or grows too large"


def value_fits(matcher: Any, value: Any) -> bool:
    """Whether an argument's value fits what a rule says of it."""
    if isinstance(matcher, list | tuple):
        return any(value_fits(one, value) for one in matcher)
    if isinstance(matcher, Mapping):
        return isinstance(value, Mapping) and all(
            name in value and value_fits(one, value[name]) for name, one in matcher.items()
        )
    if isinstance(matcher, str):
        return isinstance(value, str) and text_fits(matcher, value)
    if isinstance(matcher, bool) or isinstance(value, bool):
        return matcher is value
    return isinstance(value, int | float) and bool(matcher == value)


def told(matcher: Any) -> str:
    """A matcher as it is named in a sentence."""
    if isinstance(matcher, list | tuple):
        return " or ".join(map(told, matcher))
    return f"`{matcher}`"
