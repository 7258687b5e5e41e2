"""The meaning of the names of a module, from its own statements: imports, classes, and names that are assigned once.

Names in functions and in the main block are not read: the main block runs after all other statements.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Final, Literal

Where = Literal["always", "sometimes", "fallback", "typing", "main"]
"""When a statement of a module runs. `fallback`: in an `else` or `except` branch. `typing`: never, it is only for type
checkers. `main`: in the main block."""
Bound = str | ast.ClassDef | ast.expr | None
"""What a name stands for: the full name of an import, a class, or the assigned expression; None for anything else."""

_BUILTINS: Final = frozenset(dir(builtins))


class TooComplex(Exception):
    """Source code that takes too many steps to understand."""


class Budget:
    """Counts the steps of reading source code, and raises `TooComplex` after too many: a few lines of foreign code may
    expand without end."""

    __slots__ = ("_left",)

    def __init__(self, steps: int = 50_000) -> None:
        self._left = steps

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooComplex


class Scope:
    """The names of one module."""

    def __init__(self, module: ast.Module) -> None:
        self._bound: dict[str, Bound] = {}
        self._times: dict[str, int] = {}
        self._stars: list[str] = []
        for node, where in statements(module):
            if where == "main":
                continue
            for name, bound in self._bindings(node):
                if where != "fallback" or name not in self._bound:
                    self._bound[name] = bound
                self._times[name] = self._times.get(name, 0) + 1

    def class_of(self, node: ast.expr) -> ast.ClassDef | None:
        """The class of this file that an expression names; None if it names no such class."""
        bound = self._bound.get(node.id) if isinstance(node, ast.Name) else None
        return bound if isinstance(bound, ast.ClassDef) else None

    def assigned(self, name: str) -> ast.expr | None:
        """The expression that is assigned to a name; None if the name is not assigned exactly once."""
        bound = self._bound.get(name)
        return bound if isinstance(bound, ast.expr) and self._times[name] == 1 else None

    def names(self, node: ast.expr) -> tuple[str, ...]:
        """The full names that an expression may have, such as `typing.List`. There are several if its name may come
        from a star import."""
        written = dotted(node)
        if written is None:
            return ()
        first, dot, rest = written.partition(".")
        if first in self._bound:
            bound = self._bound[first]
            return (_canonical(f"{bound}{dot}{rest}"),) if isinstance(bound, str) else ()
        starred = tuple(_canonical(f"{star}.{written}") for star in self._stars)
        return (*starred, f"builtins.{written}") if first in _BUILTINS else starred

    def is_named(self, node: ast.expr, *names: str) -> bool:
        return any(name in names for name in self.names(node))

    def _bindings(self, node: ast.stmt) -> Iterator[tuple[str, Bound]]:
        match node:
            case ast.Import(names=imported):
                for each in imported:
                    yield (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2
            case ast.ImportFrom(module=package, names=imported, level=level):
                for each in imported:
                    if each.name != "*":
                        yield each.asname or each.name, None if level else f"{package}.{each.name}"
                    elif not level and len(self._stars) < 8:
                        self._stars.append(str(package))
            case _:
                yield from _defined(node)


def _defined(node: ast.stmt) -> Iterator[tuple[str, Bound]]:
    match node:
        case ast.ClassDef(name=name):
            yield name, node
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.AugAssign(target=ast.Name(id=name)):
            yield name, None
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case _:
            pass


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Bound]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        yield from ((each.id, None) for each in target.elts if isinstance(each, ast.Name))


def _canonical(name: str) -> str:
    """The one full name that haft uses for an object that several modules of a library offer."""
    if name.startswith("typing_extensions."):
        return name.replace("typing_extensions", "typing", 1)
    package, *parts = name.split(".")
    if package != "pydantic" or len(parts) < 2:
        return name
    first = next((at for at, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
    return ".".join([package, *parts[first:]])


def dotted(node: ast.expr) -> str | None:
    """The text of an expression such as `a.b.c`; None for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def is_main(node: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__"`, with the two sides in either order."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    return (
        len(sides) == 2
        and isinstance(node.test.ops[0], ast.Eq)
        and any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
        and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    )


def statements(module: ast.Module) -> Iterator[tuple[ast.stmt, Where]]:
    """The statements of a module in order, also those inside blocks such as `if`, but not those inside functions."""
    waiting: list[tuple[ast.stmt, Where]] = [(node, "always") for node in reversed(module.body)]
    while waiting:
        node, where = waiting.pop()
        yield node, where
        for body, inner in reversed(_blocks(node)):
            kept = where if where in ("main", "typing", "fallback") else inner
            waiting += [(each, kept) for each in reversed(body)]


def _blocks(node: ast.stmt) -> list[tuple[list[ast.stmt], Where]]:
    match node:
        case ast.If(body=body, orelse=other):
            if is_main(node):
                return [(body, "main"), (other, "sometimes")]
            if (dotted(node.test) or "").rpartition(".")[2] == "TYPE_CHECKING":
                return [(body, "typing"), (other, "always")]
            return [(body, "sometimes"), (other, "fallback")]
        case (
            ast.Try(body=body, handlers=handlers, orelse=other, finalbody=final)
            | ast.TryStar(body=body, handlers=handlers, orelse=other, finalbody=final)
        ):
            caught: list[tuple[list[ast.stmt], Where]] = [(handler.body, "fallback") for handler in handlers]
            return [(body, "sometimes"), *caught, (other, "sometimes"), (final, "always")]
        case ast.With(body=body):
            return [(body, "always")]
        case ast.For(body=body, orelse=other) | ast.While(body=body, orelse=other):
            return [(body, "sometimes"), (other, "sometimes")]
        case _:
            return []
