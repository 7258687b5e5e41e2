r"""Patterns for values: what a rule's matcher requires of an argument.

A matcher is one of these: a text, in which `*` matches anything (`\*`, `\\` and `\/` stand for the character itself); a
`/regex/`, which is searched anywhere in the value; a list, of which one item must match; a boolean or number, which
must be equal; or a table for nested values. Every comparison takes time in proportion to the length of the text,
whatever the pattern is. This matters because patterns may come from the files of strangers, and texts from a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from haft.lazy import regex

SIZE_LIMIT: Final = 1_000_000
"""The maximum size of a compiled regular expression, in bytes."""
_ESCAPED_OR_STAR: Final = regex(r"\\([\\*/])|(\*)")


def is_regex(pattern: str) -> bool:
    """Whether the pattern is written as `/…/`."""
    return len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/")


def text_matches(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern with `*`, or a `/regex/`."""
    return regex_of(pattern[1:-1])(text) if is_regex(pattern) else glob_matches(pattern, text)


def glob_matches(pattern: str, text: str) -> bool:
    """Whether `pattern` matches the whole `text`; each `*` in it stands for any text."""
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
    """Whether `pattern` matches any piece of `text`."""
    return glob_matches(f"*{pattern}*", text)


def escaped(text: str) -> str:
    """The pattern that matches only `text`."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


@lru_cache(maxsize=4096)
def _literals(pattern: str) -> tuple[str, ...]:
    """The texts before, between and after the stars of a pattern."""
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
    """A function that searches a text for the expression. Raises `ValueError` if the expression is no valid regular
    expression, or uses look-around or back-references."""
    # Rust's engine has no look-around and no back-references, so it takes linear time for every text.
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=SIZE_LIMIT, dfa_size_limit=SIZE_LIMIT)
    try:
        found = jsonschema_rs.validator_for({"type": "string", "pattern": expression}, pattern_options=options)
    except (ValueError, UnicodeEncodeError) as error:
        raise ValueError(f"is not a regular expression that haft accepts: {_trouble(expression)}") from error

    def test(text: str) -> bool:
        try:
            return found.is_valid(text)
        except UnicodeEncodeError:  # bytes that are not UTF-8 appear as lone surrogates
            return found.is_valid(text.encode("utf-8", "replace").decode())

    return test


def _trouble(expression: str) -> str:
    """What is wrong with an expression. haft has to find this itself, because `jsonschema_rs` does not pass on the
    message of Rust's engine."""
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return "it uses look-around or back-references, or is too large"


def value_matches(matcher: Any, value: Any) -> bool:
    """Whether the value of an argument matches a rule's matcher."""
    if isinstance(matcher, list | tuple):
        return any(value_matches(one, value) for one in matcher)
    if isinstance(matcher, Mapping):
        return isinstance(value, Mapping) and all(
            name in value and value_matches(one, value[name]) for name, one in matcher.items()
        )
    if isinstance(matcher, str):
        return isinstance(value, str) and text_matches(matcher, value)
    if isinstance(matcher, bool) or isinstance(value, bool):
        return matcher is value
    return isinstance(value, int | float) and bool(matcher == value)


def quoted(matcher: Any) -> str:
    """A matcher in the form in which messages show it."""
    if isinstance(matcher, list | tuple):
        return " or ".join(map(quoted, matcher))
    return f"`{matcher}`"
