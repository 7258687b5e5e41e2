"""The text of TOML files: strings, comments and headers of tables in it, and values as people write them. The modules
that change a TOML file line by line use this one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import BadUsage
from haft.lazy import regex

_BARE: Final = regex(r"[A-Za-z0-9_-]+")
_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
PIECES: Final = regex(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''.*?'''"
    rf"|^[ \t]*\[\[?[ \t]*(?P<table>{_KEY})(?P<below>(?:[ \t]*\.[ \t]*{_KEY})*)[ \t]*\]\]?[ \t]*(?:\#[^\n]*)?\r?$"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*",
    re.DOTALL | re.MULTILINE,
)
"""Strings and comments, which may contain any text, and the headers of tables."""
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def with_plain_ends(text: str) -> tuple[str, str]:
    """The text with `\\n` as line end, and the line end that the text had before. A text with both kinds of line ends
    stays the same."""
    ending = "\r\n" if 0 < text.count("\n") == text.count("\r\n") else "\n"
    return text.replace(ending, "\n"), ending


def toml_value(value: Any) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_key(name)} = {toml_value(one)}" for name, one in value.items()) + "}"
    return "[" + ", ".join(map(toml_value, value)) + "]"


def toml_key(name: str) -> str:
    """The name of a key, in quotes if TOML needs them."""
    return name if _BARE.fullmatch(name) else toml_string(name)


def toml_string(text: str) -> str:
    """A TOML basic string. Characters that are not plainly visible are escaped."""
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise BadUsage("a text that is not UTF-8 cannot be written as TOML")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
