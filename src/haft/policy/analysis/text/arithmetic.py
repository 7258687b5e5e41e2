"""Recognises arithmetic that cannot fail. If arithmetic fails, bash skips the rest of the text line and continues with
the next text line. Then other commands would run than the command line suggests."""

from __future__ import annotations

import re
from typing import Final

from haft.lazy import regex

_TOKEN: Final = regex(
    r"\s*+((?:0|[1-9][0-9]{0,17}+)(?![0-9A-Za-z_#.$])|\$?[A-Za-z_][A-Za-z0-9_]*+(?!\$)"
    r"|&&|\|\||[<>=!]=|[-+*/%()?:<>!])\s*+",
    re.ASCII,
)
_CHANGES: Final = regex(r"\+\s*\+|-\s*-|(?<![$A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]*\s*-\$", re.ASCII)
"""Text that bash may read as `++` or `--`. The last alternative is `x-$y`, which becomes `x--5` if `y` contains -5."""
_UNARY: Final = frozenset(("+", "-", "!"))
_BINARY: Final = frozenset(("+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&&", "||"))
_MAX_TOKENS: Final = 200
_MAX_DEPTH: Final = 10


class Arithmetic:
    """The expression in `$((…))`, parsed."""

    __slots__ = ("_at", "_tokens", "is_valid", "may_divide_by_zero", "names")

    def __init__(self, written: str) -> None:
        self._tokens = [] if _CHANGES.search(written) else _tokens(written)
        self._at = 0
        self.may_divide_by_zero = False
        self.names = [each.lstrip("$") for each in self._tokens if each[0] == "$" or each[0].isidentifier()]
        self.is_valid = self._expression(0) and self._at == len(self._tokens)
        """Whether bash accepts the expression, provided that each variable in it contains a whole number."""

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _takes(self, *signs: str) -> bool:
        is_there = self._next() in signs
        self._at += is_there
        return is_there

    def _expression(self, depth: int) -> bool:
        """Parse operands and the operators between them, and return whether the syntax is known. The precedence of the
        operators does not matter here."""
        if depth > _MAX_DEPTH or not self._operand(depth):
            return False
        while self._next() in _BINARY:
            divides = self._takes("/", "%")
            if divides and not ("1" <= self._next()[:1] <= "9"):
                self.may_divide_by_zero = True
            self._at += not divides
            if not self._operand(depth):
                return False
        if not self._takes("?"):
            return True
        return self._expression(depth + 1) and self._takes(":") and self._expression(depth + 1)

    def _operand(self, depth: int) -> bool:
        self._takes(*_UNARY)
        if self._takes("("):
            return self._expression(depth + 1) and self._takes(")")
        first = self._next()[:1]
        self._at += 1
        return first == "$" or first.isdigit() or first.isidentifier()


def _tokens(written: str) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(written):
        token = _TOKEN.match(written, at)
        if token is None or len(found) >= _MAX_TOKENS:
            return []
        found.append(token[1])
        at = token.end()
    return found
