"""Texts of MCP servers. A server may be hostile, so every text of a server is data: bounded, without hidden characters,
and unable to imitate the mark that haft puts before such texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import escaped_marks, marked_text
from haft.sources.checks.hidden import hidden_in

LONGEST_DESCRIPTION: Final = 10_000
LONGEST_MESSAGE: Final = 2_000
"""The most characters of an error, a progress message or a question."""
MOST_DEPTH: Final = 100
_FOR_PEOPLE: Final = frozenset({"description", "title", "$comment", "markdownDescription"})
"""The keys of a JSON Schema whose texts only explain."""


def marked(server: str, text: str) -> str:
    """A text of a server for a model, with a mark that names the server. The text cannot contain such a mark."""
    return marked_text(server, visible(text, LONGEST_DESCRIPTION).rstrip())


def visible(text: str, most: int | None = None) -> str:
    """A text of a server: hidden characters are replaced by escapes, an imitation of haft's mark is escaped, and the
    rest after `most` characters is left out."""
    cut = most is not None and len(text) > most
    text = text[:most]
    if not text.isascii() or not text.isprintable():
        text = _escaped(text)
    text = escaped_marks(text)
    return f"{text}…" if cut else text


def is_plain(text: str, most: int) -> bool:
    """Whether a text of a server can be shown as it is, and has at most `most` characters."""
    return visible(text, most) == text


def line(text: str, most: int = LONGEST_MESSAGE) -> str:
    """A text of a server on one line."""
    return " ".join(visible(text, most).split())


def _escaped(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates
    parts, last = [], 0
    for at, _kind in hidden_in(text):
        parts += [text[last:at], text[at].encode("unicode_escape").decode("ascii")]
        last = at + 1
    return "".join([*parts, text[last:]])


def visible_json(value: Any, depth: int = 0, *, most: int | None = None) -> Any:
    """A JSON value of a server that every reader of JSON can read, with all its texts as `visible` returns them."""
    if isinstance(value, str):
        return visible(value, most)
    if depth >= MOST_DEPTH:
        return None
    if isinstance(value, Mapping):
        return {visible(str(key), most): visible_json(inner, depth + 1, most=most) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [visible_json(inner, depth + 1, most=most) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number.
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)  # Not all readers of JSON can read such a number.
    return value


def visible_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema of a server. Texts that explain are made visible. Raises `ValueError` if a hidden character is
    elsewhere, such as in the name of a parameter, where it cannot be replaced."""
    found: dict[str, Any] = _schema(schema, 0, is_names=False)
    return found


def _schema(value: Any, depth: int, *, is_names: bool) -> Any:
    if depth > MOST_DEPTH:
        raise ValueError(f"it is nested more than {MOST_DEPTH} deep")
    if isinstance(value, Mapping):
        made = {}
        for key, inner in value.items():
            _check(str(key))
            if isinstance(inner, str) and key in _FOR_PEOPLE and not is_names:
                made[key] = visible(inner, LONGEST_DESCRIPTION)
            else:
                made[key] = _schema(inner, depth + 1, is_names=key in ("properties", "$defs", "definitions"))
        return made
    if isinstance(value, list | tuple):
        return [_schema(inner, depth + 1, is_names=False) for inner in value]
    if isinstance(value, str):
        _check(value)
    return value


def _check(text: str) -> None:
    for _at, kind in hidden_in(text):
        raise ValueError(f"a name or a value in it holds {kind}")
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise ValueError("a name or a value in it is no valid text")
