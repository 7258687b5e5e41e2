"""Which locales a command may run in: command lines are read as UTF-8, so that bash must read them that way too.

In other encodings (GBK, Shift-JIS, Big5) the second byte of a character can be a backslash, and a quote then ends
elsewhere. In C every byte stands for itself, which splits a line in the same places as UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from haft.lazy import regex

PLAIN_LOCALE: Final = "C.UTF-8"
"""Stands in for the locale of a host that has another encoding."""

_NAME: Final = regex(r"LC_[A-Z]+|LANG|LOCPATH|LOCALE_ARCHIVE")
"""The variables that choose a locale, or the files that define one."""
_VALUE: Final = regex(r"(?:C|POSIX|[A-Za-z]{1,8}(?:_[A-Z]{2})?\.(?:utf|UTF)-?8(?:@[a-z]+)?)?")
"""The locales that read UTF-8, or bytes; nothing chooses none. A name without an encoding has one that is not known."""
_WHERE: Final = ("LOCPATH", "LOCALE_ARCHIVE")


def is_locale_variable(name: str) -> bool:
    """Whether a variable chooses how programs read characters."""
    return _NAME.fullmatch(name) is not None


def reads_utf8(name: str, value: str) -> bool:
    """Whether a variable, set to a value, leaves programs reading UTF-8 or bytes."""
    return not is_locale_variable(name) or (name not in _WHERE and _VALUE.fullmatch(value) is not None)


def foreign_locale(variables: Mapping[str, object]) -> str | None:
    """The first variable that may have programs read another encoding than UTF-8."""
    return next((name for name, value in variables.items() if not reads_utf8(name, str(value))), None)
