"""Reads a template's `tool.py` without running it: its description, parameters and problems.

`source` makes tools of the result, and `check` reports the problems to the author. This module does not look at other
files of the folder, nor at what the functions do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from haft.schema import why_too_large
from haft.sources.agent_studio.constants import Constants
from haft.sources.agent_studio.models import Models
from haft.sources.agent_studio.parse import parse_source
from haft.sources.agent_studio.scope import Budget, Scope, TooComplex, statements
from haft.sources.agent_studio.structure import breaches_of, class_named, remarks_of
from haft.sources.agent_studio.template import Problem, Template

MOST_IMPORTS: Final = 500
_TOO_COMPLEX: Final = "its parameters are too complex"


def read_template(source: bytes) -> Template | Problem:
    """The template in the source code of a `tool.py`, or a `Problem` if the code cannot be read. Never raises, whatever
    the bytes are."""
    module = parse_source(source)
    if isinstance(module, Problem):
        return module
    try:
        return _read(module)
    except (TooComplex, RecursionError, MemoryError):
        return Problem("schema-excess", _TOO_COMPLEX, "describe them more simply")


def _read(module: ast.Module) -> Template | Problem:
    scope, budget = Scope(module), Budget()
    user = Models(scope, budget).parameters(class_named(module, "UserParameters"))
    tool = Models(scope, budget).parameters(class_named(module, "ToolParameters"))
    for parameters in (user, tool):
        if (why := why_too_large(parameters.schema)) is not None:
            return Problem("schema-excess", f"{_TOO_COMPLEX}: {why}", "describe them more simply", parameters.line)
    key = _output_key(module, Constants(scope, budget))
    template = Template(_description(module), user, tool, key, tuple(_imports(module)), breaches_of(module, scope))
    return replace(template, remarks=remarks_of(module, template), is_strict=any(map(_says_strict, ast.walk(module))))


def _says_strict(node: ast.AST) -> bool:
    """Whether a node asks for strict types: `strict=True`, `{"strict": True}`, `StrictInt`, `Strict()`."""
    match node:
        case ast.keyword(arg="strict") | ast.Constant(value="strict"):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name.startswith("Strict")
        case _:
            return False


def _description(module: ast.Module) -> str:
    text = (ast.get_docstring(module) or "").strip()
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


def _output_key(module: ast.Module, constants: Constants) -> str | None:
    """The text that is assigned to `OUTPUT_KEY`; None if it cannot be known. Only the last assignment counts. If the
    last assignment runs only sometimes, for example in an `if`, the text cannot be known."""
    found: str | None = None
    for node, where in statements(module):
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                targets = [target]
            case _:
                continue
        if not any(isinstance(part, ast.Name) and part.id == "OUTPUT_KEY" for one in targets for part in ast.walk(one)):
            continue
        is_plain = not isinstance(node, ast.AugAssign) and all(isinstance(one, ast.Name) for one in targets)
        found = constants.text(value) or None if is_plain and where in ("always", "main") else None
    return found


def _imports(module: ast.Module) -> Iterator[str]:
    found: dict[str, None] = {}
    for node, where in statements(module):
        if where in ("typing", "main"):
            continue
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module not in (None, "__future__"):
            found[str(node.module)] = None
    yield from list(found)[:MOST_IMPORTS]
