"""Reads Python source code without running it, for the checks of Python tools."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Collection, Iterator
from typing import Final

from haft.sources.checks.files import InspectedFile
from haft.sources.checks.findings import Finding

MOST_PARSED: Final = 200_000
LONGEST_LINE: Final = 20_000
"""The most bytes of a line. Python needs quadratic time for a line with many `{…}`."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def parse(inspected: InspectedFile) -> ast.Module | Finding:
    """The parsed module, or a finding if it cannot be parsed."""
    if len(inspected.content) > MOST_PARSED:
        return Finding("python-parse", f"it has more than {MOST_PARSED:_} bytes", "split it", path=inspected.path)
    if max(map(len, inspected.content.splitlines()), default=0) > LONGEST_LINE:
        what = f"it has a line of more than {LONGEST_LINE:_} bytes"
        return Finding("python-parse", what, "break it", path=inspected.path)
    try:
        return _module(inspected.content)
    except SyntaxError as error:
        return Finding("python-parse", f"it is not valid Python: {error.msg}", None, error.lineno, inspected.path)
    except (ValueError, RecursionError, MemoryError) as error:
        return Finding("python-parse", f"it cannot be parsed: {error}", None, None, inspected.path)


@functools.lru_cache(maxsize=4)
def _module(source: bytes) -> ast.Module:
    """Parse the source code of a file. The result is cached, because a file is parsed twice: to recognize its format,
    and to check it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def aliases(module: ast.Module, package: str, name: str) -> set[str]:
    """The local names of `package.name` in a module, from `from package import name as x` and `import package as y`.
    Imports inside functions are not read."""
    found = set()
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == package:
            found |= {each.asname or each.name for each in node.names if each.name == name}
            if any(each.name == "*" for each in node.names):
                found.add(name)
        elif isinstance(node, ast.Import):
            found |= {f"{each.asname or package}.{name}" for each in node.names if each.name.split(".")[0] == package}
    return found


def dotted(node: ast.expr) -> str | None:
    """The text of an expression such as `a.b.c`; None for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def has_description_in(node: ast.AST | None) -> bool:
    """Whether an annotation or default has a description: `Field(description=…)`, or a text in `Annotated`."""
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Call) and any(word.arg in ("description", "title") for word in inner.keywords):
            return True
        if isinstance(inner, ast.Subscript) and (dotted(inner.value) or "").rpartition(".")[2] == "Annotated":
            words = inner.slice.elts[1:] if isinstance(inner.slice, ast.Tuple) else []
            if any(isinstance(word, ast.Constant) and isinstance(word.value, str) for word in words):
                return True
    return False


def mentions(annotation: ast.expr | None, words: Collection[str]) -> bool:
    """Whether one of these names occurs in an annotation, which may be written as a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return False
    for inner in ast.walk(annotation) if annotation is not None else ():
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in words:
                return True
            case _:
                pass
    return False


def functions(module: ast.Module) -> Iterator[Function]:
    """The functions of a module and of its classes, without functions inside functions."""
    waiting: list[ast.stmt] = module.body[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            waiting += node.body[::-1]
        elif isinstance(node, ast.If | ast.Try):
            waiting += [*node.body, *node.orelse][::-1]
