"""Finds the stages of a pipe, if each stage is one simple command without redirections. Only a redirection of errors to
/dev/null is accepted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.text.source import Source

if TYPE_CHECKING:
    from tree_sitter import Node

_QUIET: Final = regex(r"2>\s*/dev/null")
_CANNOT_FAIL: Final = regex(r"(?:[12]?>{1,2}\s*|&>{1,2}\s*|0?<\s*)/dev/null|[12]?>&\s*[12]")
_OUTPUT: Final = frozenset((">", ">>", "&>", "&>>", ">&", ">|"))


def stages_before(source: Source, node: Node) -> list[Node] | None:
    """The stages of a pipe before a statement; None if they are not simple commands."""
    stage, parent = node, node.parent
    if parent is not None and parent.type == "redirected_statement":
        stage, parent = parent, parent.parent
    if parent is None or parent.type != "pipeline":
        return None
    before: list[Node] = []
    for child in parent.children:
        if child.id == stage.id:
            return before or None
        command = _simple(source, child) if child.is_named else None
        if command is not None:
            before.append(command)
        elif child.type != "|":
            return None
    return None


def stages_of(source: Source, substitution: Node) -> list[Node] | None:
    """The stages of the only pipe, or the only command, in a substitution; None if there is anything else in it."""
    inside = substitution.named_children
    if len(inside) != 1:
        return None
    if inside[0].type != "pipeline":
        command = _simple(source, inside[0])
        return None if command is None else [command]
    if any(child.type != "|" for child in inside[0].children if not child.is_named):
        return None
    found = [_simple(source, child) for child in inside[0].named_children]
    stages = [each for each in found if each is not None]
    return stages if len(stages) == len(found) else None


def _simple(source: Source, node: Node) -> Node | None:
    if node.type == "redirected_statement":
        rest = node.named_children[1:]
        is_quiet = len(rest) == 1 and _QUIET.fullmatch(source.raw(rest[0])) is not None
        return _simple_command(node.named_children[0]) if is_quiet else None
    return _simple_command(node)


def _simple_command(node: Node) -> Node | None:
    if node.type != "command":
        return None
    is_plain = not any(
        child.type.endswith("_redirect") or child.type == "variable_assignment" for child in node.children
    )
    return node if is_plain else None


def is_input(redirect: Node) -> bool:
    """Whether a redirection may replace the pipe as the input of a command."""
    sign = next((child.type for child in redirect.children if not child.is_named), "")
    return redirect.type != "file_redirect" or sign not in _OUTPUT


def cannot_fail(source: Source, redirect: Node) -> bool:
    """Whether a redirection only uses /dev/null, or joins output streams that the shell always has."""
    return redirect.type == "file_redirect" and _CANNOT_FAIL.fullmatch(source.raw(redirect)) is not None


def line_variable(source: Source, condition: Node) -> str | None:
    """The variable in the `read -r NAME` of a loop, with or without `IFS=`; None if the condition is anything else."""
    found = re.fullmatch(r"(?:IFS= )?read(?: -r)? ([a-z][a-z0-9_]*)", source.raw(condition))
    return found[1] if found and condition.type == "command" else None
