"""The error that cdd shows when it refuses a request: one sentence, a hint on its own line, exit code 1.

Usage errors (a missing argument, an unknown option) are click's own and exit with 2.
"""

from __future__ import annotations

from typing import IO, Any

import click


class Refused(click.ClickException):
    """The request was understood, and nothing was done."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(visible(message))
        self.hint = visible(hint)

    def show(self, file: IO[Any] | None = None) -> None:
        super().show(file)
        if self.hint:
            click.echo(f"hint: {self.hint}", file=file, err=file is None)


def visible(text: str) -> str:
    """The text with its control characters escaped, so that a file cannot control the terminal."""
    return "".join(one if one in "\n\t" or not _is_control(one) else _escaped(one) for one in text)


def _is_control(character: str) -> bool:
    code = ord(character)
    return code < 0x20 or 0x7F <= code < 0xA0 or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069 or _half(code)


def _half(code: int) -> bool:
    """Whether a code point is half of a surrogate pair, which no encoding can print."""
    return 0xD800 <= code <= 0xDFFF


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
