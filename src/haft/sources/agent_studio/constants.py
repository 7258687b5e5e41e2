"""Evaluates an expression without running it: literals, and a few ways to combine them.

The result is the exact value as JSON. For any other expression, the result is `UNKNOWN`.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from typing import Any, Final

from haft.sources.agent_studio.scope import Budget, Scope
from haft.sources.agent_studio.template import UNKNOWN, Unknown

MOST_DEPTH: Final = 30
LONGEST_TEXT: Final = 100_000
LARGEST_INTEGER: Final = 2**63 - 1
_EMPTY: Final[dict[str, Any]] = {
    "builtins.list": list, "builtins.set": list, "builtins.tuple": list, "builtins.dict": dict, "builtins.str": str,
    "builtins.int": int, "builtins.float": float, "builtins.bool": bool,
}  # fmt: skip
_ENUMS: Final = ("enum.Enum", "enum.StrEnum", "enum.IntEnum")
_MIXED_IN: Final = ("builtins.str", "builtins.int")


class Constants:
    """The constants of one module."""

    def __init__(self, scope: Scope, budget: Budget) -> None:
        self._scope = scope
        self._budget = budget

    def value(self, node: ast.expr | None, depth: int = 0) -> Any:
        """The value of an expression as JSON, or `UNKNOWN`."""
        self._budget.spend()
        if depth > MOST_DEPTH:
            return UNKNOWN
        match node:
            case ast.Constant(value=value):
                return _plain(value)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                value = self.value(operand, depth + 1)
                return (-value if isinstance(sign, ast.USub) else value) if _is_number(value) else UNKNOWN
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return self._all(items, depth)
            case ast.Dict(keys=keys, values=values):
                return self._object(keys, values, depth)
            case ast.BinOp(left=left, op=operator, right=right):
                return _joined(self.value(left, depth + 1), operator, self.value(right, depth + 1))
            case ast.JoinedStr(values=parts):
                return self._formatted(parts, depth)
            case ast.Name(id=name):
                assigned = self._scope.assigned(name)
                return UNKNOWN if assigned is None else self.value(assigned, depth + 1)
            case ast.Attribute():
                return self._member(node)
            case ast.Call():
                return self._called(node, depth)
            case _:
                return UNKNOWN

    def text(self, node: ast.expr | None) -> str | None:
        """The value of an expression if it is a text; otherwise None."""
        value = self.value(node)
        return value if isinstance(value, str) else None

    def made_by(self, node: ast.expr) -> Any:
        """The value that a `default_factory` returns, or `UNKNOWN`."""
        if isinstance(node, ast.Lambda):
            return self.value(node.body)
        return next((_EMPTY[name]() for name in self._scope.names(node) if name in _EMPTY), UNKNOWN)

    def is_enum(self, node: ast.ClassDef) -> bool:
        """Whether a class is an enumeration. An enumeration that inherits from another class of the file is not
        recognized."""
        return any(self._scope.is_named(base, *_ENUMS) for base in node.bases)

    def members(self, node: ast.ClassDef) -> dict[str, Any] | None:
        """The values of an enumeration by member name; None if they cannot be known, or if the enumeration also accepts
        other values."""
        known = (*_ENUMS, *_MIXED_IN)
        kinds = [name for base in node.bases for name in self._scope.names(base) if name in known]
        if len(kinds) != len(node.bases):
            return None
        as_text = "enum.StrEnum" in kinds or "builtins.str" in kinds
        found: dict[str, Any] = {}
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=given) if not name.startswith("_"):
                    found[name] = self._numbered(given, name, found, "enum.StrEnum" in kinds)
                case ast.FunctionDef(name="_missing_" | "__new__" | "__init__" | "_generate_next_value_"):
                    return None
                case ast.Assign() | ast.AnnAssign() | ast.If() | ast.For() | ast.Try():
                    return None
                case _:
                    pass
        if not found or any(not _is_scalar(each) or (as_text and not isinstance(each, str)) for each in found.values()):
            return None
        return found

    def _numbered(self, given: ast.expr, name: str, before: dict[str, Any], as_text: bool) -> Any:
        """The value of an enumeration's member. For `auto()`, the value that Python would choose."""
        if not (isinstance(given, ast.Call) and self._scope.is_named(given.func, "enum.auto")):
            return self.value(given)
        if as_text:
            return name.lower()
        last = list(before.values())
        if all(type(each) is int for each in last):
            return max(last, default=0) + 1
        return UNKNOWN

    def _member(self, node: ast.Attribute) -> Any:
        inner = node.value if node.attr == "value" and isinstance(node.value, ast.Attribute) else node
        owner = self._scope.class_of(inner.value)
        if owner is None or not self.is_enum(owner):
            return UNKNOWN
        return (self.members(owner) or {}).get(inner.attr, UNKNOWN)

    def _all(self, items: list[ast.expr], depth: int) -> Any:
        values = [self.value(item, depth + 1) for item in items]
        return UNKNOWN if any(isinstance(value, Unknown) for value in values) else values

    def _object(self, keys: list[ast.expr | None], values: list[ast.expr], depth: int) -> Any:
        names = [UNKNOWN if key is None else self.value(key, depth + 1) for key in keys]
        held = self._all(values, depth)
        if isinstance(held, Unknown) or not all(isinstance(name, str) for name in names):
            return UNKNOWN
        return dict(zip(names, held, strict=True))

    def _formatted(self, parts: list[ast.expr], depth: int) -> Any:
        text = ""
        for part in parts:
            if isinstance(part, ast.FormattedValue):
                if part.conversion != -1 or part.format_spec is not None:
                    return UNKNOWN
                part = part.value
            value = self.value(part, depth + 1)
            if not isinstance(value, str | int) or len(text) > LONGEST_TEXT:
                return UNKNOWN
            text += str(value)
        return _plain(text)

    def _called(self, node: ast.Call, depth: int) -> Any:
        """The value of a call that trims a text, or makes an empty value."""
        if node.keywords:
            return UNKNOWN
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="strip"), args=[]):
                value = self.value(inner, depth + 1)
                return value.strip() if isinstance(value, str) else UNKNOWN
            case ast.Call(func=function, args=[inner]):
                value = self.value(inner, depth + 1)
                if not isinstance(value, str):
                    return UNKNOWN
                if self._scope.is_named(function, "textwrap.dedent"):
                    return textwrap.dedent(value)
                return inspect.cleandoc(value) if self._scope.is_named(function, "inspect.cleandoc") else UNKNOWN
            case ast.Call(func=function, args=[]):
                return self.made_by(function) if not isinstance(function, ast.Lambda) else UNKNOWN
            case _:
                return UNKNOWN


def _plain(value: Any) -> Any:
    """The value of a Python constant, if JSON has such a value; otherwise `UNKNOWN`."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_INTEGER else UNKNOWN
    if isinstance(value, float):
        return value if math.isfinite(value) else UNKNOWN
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        return UNKNOWN if any("\ud800" <= letter <= "\udfff" for letter in value) else value
    return UNKNOWN


def _joined(left: Any, operator: ast.operator, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str) and isinstance(operator, ast.Add):
        return _plain(left + right)
    if not (_is_number(left) and _is_number(right)):
        return UNKNOWN
    match operator:
        case ast.Add():
            return _plain(left + right)
        case ast.Sub():
            return _plain(left - right)
        case ast.Mult():
            return _plain(left * right)
        case _:
            return UNKNOWN


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
