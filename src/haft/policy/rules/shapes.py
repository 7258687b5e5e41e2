"""Facts about tools that are needed to check rules before any call: the names of a tool's arguments, and which of them
are command lines or paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from haft.contracts import ToolSpec
from haft.policy.rules.names import name_matches


@dataclass(frozen=True, slots=True)
class Shape:
    """The kind of one tool, and facts about its arguments."""

    kind: str
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    arguments: frozenset[str] | None = None
    """The names of all arguments that the tool accepts; None if it accepts any."""


Shapes = Mapping[str, Shape]
"""The shape of each tool, by its name."""

KNOWN: Final[Shapes] = {"shell": Shape("builtin", commands=("command",), paths=("cwd",))}
"""The shapes that haft knows before it has loaded any tools."""


def shapes_of(specs: Iterable[ToolSpec]) -> dict[str, Shape]:
    """The shape of each tool, by the tool's name: the kind of the tool, and facts about its arguments."""
    return {spec.name: shape_of(spec) for spec in specs}


def shape_of(spec: ToolSpec) -> Shape:
    """The shape of one tool, made from its spec: the kind of the tool, and facts about its arguments."""
    properties = spec.input_schema.get("properties")
    closed = spec.input_schema.get("additionalProperties") is False
    known = frozenset(properties) if closed and isinstance(properties, Mapping) else None
    return Shape(spec.kind, spec.commands, spec.paths, known)


def matching_tools(pattern: str, shapes: Shapes) -> list[tuple[str, Shape]]:
    """The tools in `shapes` whose names match a pattern, each with its shape."""
    return [(name, shape) for name, shape in shapes.items() if name_matches(pattern, name, shape.kind)]


def command_arguments(pattern: str, shapes: Shapes) -> tuple[str, ...]:
    """The names of arguments that are command lines in at least one tool that matches the pattern."""
    found = [name for _, shape in matching_tools(pattern, shapes) for name in shape.commands]
    return tuple(dict.fromkeys(found))


def path_arguments(pattern: str, shapes: Shapes) -> tuple[str, ...]:
    """The names of arguments that are paths in at least one tool that matches the pattern."""
    found = [name for _, shape in matching_tools(pattern, shapes) for name in shape.paths]
    return tuple(dict.fromkeys(found))
