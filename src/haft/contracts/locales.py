"""Which locales a command may run in. haft analyses command lines as UTF-8, so bash must read them as UTF-8 too.

In some other encodings (GBK, Shift-JIS, Big5), the second byte of a character can be a backslash. Then bash would see
the end of a quoted text at another place than the analysis. In the locale C every byte is one character, and bash
splits a line in the same places as in UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from haft.lazy import regex

PLAIN_LOCALE: Final = "C.UTF-8"
"""Replaces the locale of a host that uses another encoding."""

_NAME: Final = regex(r"LC_[A-Z]+|LANG|LOCPATH|LOCALE_ARCHIVE")
"""The names of the variables that choose a locale, or the directory or file that defines locales."""
_VALUE: Final = regex(r"(?:C|POSIX|[A-Za-z]{1,8}(?:_[A-Z]{2})?\.(?:utf|UTF)-?8(?:@[a-z]+)?)?")
"""The names of locales in which programs read UTF-8 or single bytes, and the empty value, which selects no locale. A
name without an encoding, such as `de_DE`, is not among them, because its encoding is not known."""
_WHERE: Final = ("LOCPATH", "LOCALE_ARCHIVE")


def is_locale_variable(name: str) -> bool:
    """Whether a variable of this name selects the encoding that programs read."""
    return _NAME.fullmatch(name) is not None


def reads_utf8(name: str, value: str) -> bool:
    """Whether this value of the variable `name` is safe: programs then read their input as UTF-8, or as single
    bytes."""
    return not is_locale_variable(name) or (name not in _WHERE and _VALUE.fullmatch(value) is not None)


def non_utf8_variable(variables: Mapping[str, object]) -> str | None:
    """The first variable that may make programs read another encoding than UTF-8; None if there is none."""
    return next((name for name, value in variables.items() if not reads_utf8(name, str(value))), None)
