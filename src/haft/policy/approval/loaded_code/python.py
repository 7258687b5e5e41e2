"""Finds what a Python script loads: modules beside the started script, modules in a folder that the script adds to
`sys.path`, and relative imports."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

from haft.policy.approval.loaded_code.reference import Reference, References, Script

_SAME: Final = frozenset(("abspath", "absolute", "str", "fspath", "Path", "normpath", "expanduser"))
_REAL: Final = frozenset(("realpath", "resolve"))
_LOADING: Final = {
    "import_module": 0, "__import__": 0, "run_path": 0, "spec_from_file_location": 1, "SourceFileLoader": 1
}  # fmt: skip
"""Functions that load code, with the position of the argument that names the file or module."""
_CHANGED: Final = re.compile(r"sys\.path(?: \+=|\.extend\()")


def references_of(script: Script) -> References:
    """The files that a Python text loads."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(script.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return References((), (f"{getattr(error, 'lineno', None) or 1}: it cannot be parsed",))
    reader = _Reader(script)
    for node in ast.walk(tree):
        reader.take_path(node)
    for node in ast.walk(tree):
        reader.take_import(node)
    return References(
        tuple(dict.fromkeys(reader.references)), tuple(f"{line}: {words}" for line, words in sorted(reader.unresolved))
    )


class _Reader:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._places = [os.path.dirname(script.real_main)]
        self._values: dict[str, str | None] = {"__file__": script.path}
        self.references: list[Reference] = []
        self.unresolved: set[tuple[int, str]] = set()

    def take_path(self, node: ast.AST) -> None:
        """If `node` assigns a path to a variable, or adds a folder to `sys.path`, note the path."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, self._value(node.value)
            self._values[name] = value if self._values.get(name, value) == value else None
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("sys.path.insert", "sys.path.append"):
            place = self._value(node.args[-1]) if node.args else None
            if place is None or not os.path.isabs(place):
                self._report_unresolved(node)
            else:
                self._places.append(os.path.normpath(place))
        elif isinstance(node, ast.AugAssign | ast.Call) and _CHANGED.match(ast.unparse(node)):
            self._report_unresolved(node)

    def take_import(self, node: ast.AST) -> None:
        """If `node` is an import, or a call that loads code, note the files that it loads."""
        if isinstance(node, ast.Import):
            for name in node.names:
                self._modules(self._places, name.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = os.path.dirname(self._script.real_path)
            for _ in range(node.level - 1):
                base = os.path.dirname(base)
            words = node.module.split(".") if node.module else []
            for name in node.names:
                self._modules([base] if node.level else self._places, [*words, name.name])

        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if called in _LOADING and len(node.args) > _LOADING[called]:
                self._load(node, called, self._value(node.args[_LOADING[called]]))
            elif ast.unparse(node.func) in ("exec", "eval") and not isinstance((*node.args, None)[0], ast.Constant):
                self._report_unresolved(node)

    def _load(self, node: ast.Call, name: str, value: str | None) -> None:
        """Note a file or module that a call loads."""
        if value is not None and name in ("import_module", "__import__") and not value.startswith("."):
            self._modules(self._places, value.split("."))
        elif value is not None and os.path.isabs(value):
            self.references.append(Reference(os.path.normpath(value), "python", is_started=name == "run_path"))
        else:
            self._report_unresolved(node)

    def _report_unresolved(self, node: ast.Call | ast.AugAssign) -> None:
        self.unresolved.add((node.lineno, ast.unparse(node)[:200]))

    def _modules(self, places: Sequence[str], words: Sequence[str]) -> None:
        """Note a module and all packages that contain it, in each of `places`. Files that do not exist now are
        ignored."""
        for place in places:
            path = place
            for word in words:
                path = os.path.join(path, word)
                self.references.append(Reference(path, "python", is_module=True))

    def _value(self, node: ast.expr) -> str | None:
        """The path that an expression stands for, if it uses one of the usual ways in which scripts find their own
        directory; None if haft cannot tell."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self._values.get(name)
            case ast.BinOp(left=left, op=ast.Div() | ast.Add() as joining, right=right):
                one, two = self._value(left), self._value(right)
                if one is None or two is None:
                    return None
                return os.path.join(one, two) if isinstance(joining, ast.Div) else one + two
            case ast.Attribute(value=inner, attr="parent"):
                found = self._value(inner)
                return None if found is None else os.path.dirname(found)
            case ast.Subscript(value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int(above))):
                found = self._value(inner)
                for _ in range(min(above, 50) + 1):
                    found = None if found is None else os.path.dirname(found)
                return found
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name) as function, args=args):
                return self._called(name, function, args)
            case _:
                return None

    def _called(self, name: str, function: ast.expr, args: Sequence[ast.expr]) -> str | None:
        is_method = isinstance(function, ast.Attribute) and not args
        values = [self._value(function.value)] if is_method else [self._value(each) for each in args]  # type: ignore[attr-defined]  # by the line above
        if not values or any(value is None for value in values):
            return None
        known = [value for value in values if value is not None]
        if name in _SAME and len(known) == 1:
            return known[0]
        if name in _REAL and len(known) == 1:
            return self._script.real(known[0])
        if name == "dirname":
            return os.path.dirname(known[0])
        return os.path.join(*known) if name in ("join", "Path") else None


def files_of(module: str) -> Iterator[str]:
    """Yield the paths of the files that may belong to a module's path: its source, a compiled file, or the `__init__`
    of a package."""
    yield f"{module}.py"
    yield os.path.join(module, "__init__.py")
    folder, name = os.path.split(module)
    try:
        found = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (os.path.join(folder, each) for each in found if each.startswith(f"{name}.") and each.endswith(".so"))
