"""Finds the end of a regular expression, in languages that write it between two delimiters.

Programs disagree on whether the closing delimiter counts inside of brackets (`[/]`), and on the meaning of a backslash
there. If two programs would end the expression in different places, haft does not know the end, unless one of the
programs would report an error.
"""

from __future__ import annotations

from typing import Final

_KINDS: Final = (":", ".", "=")


def end_of_regex(text: str, at: int, sign: str) -> int | None:
    """The position after the delimiter that ends the regular expression beginning at `at`; None if this position is not
    certain."""
    blind = end_of_replacement(text, at, sign)
    literal = _end(text, at, sign, is_escaped=False)
    if blind is None or literal is None or literal != _end(text, at, sign, is_escaped=True):
        return None
    return literal if blind == literal or text[blind : blind + 1] == "]" else None


def _end(text: str, at: int, sign: str, *, is_escaped: bool) -> int | None:
    """The position after the closing delimiter, for a program that ignores delimiters in brackets; None if there is no
    closing delimiter. With `is_escaped`, a backslash in brackets escapes the next character."""
    while at < len(text):
        letter = text[at]
        if letter == sign:
            return at + 1
        if letter == "\n" or text[at : at + 2] in ("\\", "\\\n"):
            return None
        if letter == "[":
            after = _end_of_bracket(text, at + 1, is_escaped=is_escaped)
            if after is None:
                return None
            at = after
        else:
            at += 2 if letter == "\\" else 1
    return None


def _end_of_bracket(text: str, at: int, *, is_escaped: bool) -> int | None:
    """The position after the closing bracket; None if the bracket, or a character class in it, is not closed."""
    at += text[at : at + 1] == "^"
    at += text[at : at + 1] == "]"
    while at < len(text):
        letter = text[at]
        if letter == "]":
            return at + 1
        if letter == "\n" or (is_escaped and text[at : at + 2] in ("\\", "\\\n")):
            return None
        if letter == "[" and text[at + 1 : at + 2] in _KINDS:
            after = text.find(text[at + 1] + "]", at + 2)
            inside = text[at + 2 : after]
            if after <= at + 2 or "]" in inside or "\n" in inside or "\\" in inside:
                return None
            at = after + 2
        else:
            at += 2 if is_escaped and letter == "\\" else 1
    return None


def end_of_replacement(text: str, at: int, sign: str) -> int | None:
    """The position after the delimiter that ends a replacement text beginning at `at`; None if there is no such
    delimiter. Brackets mean nothing in such a text, and a backslash may end a line of it."""
    while at < len(text):
        letter = text[at]
        if letter == "\n":
            return None
        if letter == sign:
            return at + 1
        if letter == "\\" and at + 1 == len(text):
            return None
        at += 2 if letter == "\\" else 1
    return None
