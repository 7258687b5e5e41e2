"""Reading Python source without running it: what the checks of Python tools and of templates share."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator
from typing import Final

from haft.sources.checks.files import Looked
from haft.sources.checks.findings import Finding

MOST_PARSED: Final = 200_000
LONGEST_LINE: Final = 20_000
"""Bytes. Python reads a line of many `{…}` in a time that grows with the square of its length."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def parse(looked: Looked) -> ast.Module | Finding:
    """The module, or why it cannot be read."""
    if len(looked.content) > MOST_PARSED:
        return Finding("python-parse", f"it has more than {MOST_PARSED:_} bytes", "split it", path=looked.path)
    if max(map(len, looked.content.splitlines()), default=0) > LONGEST_LINE:
        what = f"it has a line of more than {LONGEST_LINE:_} bytes"
        return Finding("python-parse", what, "break it", path=looked.path)
    try:
        return _module(looked.content)
    except SyntaxError as error:
        return Finding("python-parse", f"it is not valid Python: {error.msg}", None, error.lineno, looked.path)
    except (ValueError, RecursionError, MemoryError) as error:
        return Finding("python-parse", f"it cannot be parsed: {error}", None, None, looked.path)


@functools.lru_cache(maxsize=4)
def _module(source: bytes) -> ast.Module:
    """What a file is, and what is in it, is asked one after the other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def aliases(module: ast.Module, room: str, name: str) -> set[str]:
    """What `room.name` is called in a module: `from room import name as x` and `import room as y`. Imports inside
    functions are not looked at."""
    found = set()
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == room:
            found |= {each.asname or each.name for each in node.names if each.name == name}
            if any(each.name == "*" for each in node.names):
                found.add(name)
        elif isinstance(node, ast.Import):
            found |= {f"{each.asname or room}.{name}" for each in node.names if each.name.split(".")[0] == room}
    return found


def dotted(node: ast.expr) -> str | None:
    """`a.b.c`, where that is what a node says."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def said_in(node: ast.AST | None) -> bool:
    """Whether an annotation or default describes what it is for: `Field(description=…)`, or a text in `Annotated`."""
    for inner in ast.walk(node) if node is not None else ():
        if isinstance(inner, ast.Call) and any(word.arg in ("description", "title") for word in inner.keywords):
            return True
        if isinstance(inner, ast.Subscript) and (dotted(inner.value) or "").rpartition(".")[2] == "Annotated":
            words = inner.slice.elts[1:] if isinstance(inner.slice, ast.Tuple) else []
            if any(isinstance(word, ast.Constant) and isinstance(word.value, str) for word in words):
                return True
    return False


def mentions(node: ast.AST | None, word: str) -> bool:
    """Whether a name stands somewhere in a node, also in an annotation that is written as text."""
    for inner in ast.walk(node) if node is not None else ():
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name == word:
                return True
            case ast.Constant(value=str(text)) if word in text:
                return True
            case _:
                pass
    return False


def functions(module: ast.Module) -> Iterator[Function]:
    """The functions of a module and of its classes, not those inside functions."""
    waiting: list[ast.stmt] = module.body[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            waiting += node.body[::-1]
        elif isinstance(node, ast.If | ast.Try):
            waiting += [*node.body, *node.orelse][::-1]
