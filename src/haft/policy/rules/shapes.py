"""Facts about tools that rules need before any call: the arguments, and which of them are command lines or paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from haft.contracts import ToolSpec
from haft.policy.rules.names import name_matches


@dataclass(frozen=True, slots=True)
class Shape:
    """The arguments of one tool."""

    kind: str
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    arguments: frozenset[str] | None = None
    """Every argument that the tool accepts; None if it accepts any."""


Shapes = Mapping[str, Shape]
"""The shape of each tool, by its name."""

KNOWN: Final[Shapes] = {"shell": Shape("builtin", commands=("command",), paths=("cwd",))}
"""The shapes that are known without a lookup of the tools."""


def shapes_of(specs: Iterable[ToolSpec]) -> dict[str, Shape]:
    """The shapes of these tools."""
    return {spec.name: shape_of(spec) for spec in specs}


def shape_of(spec: ToolSpec) -> Shape:
    """The shape of one tool, from its description."""
    properties = spec.input_schema.get("properties")
    closed = spec.input_schema.get("additionalProperties") is False
    known = frozenset(properties) if closed and isinstance(properties, Mapping) else None
    return Shape(spec.kind, spec.commands, spec.paths, known)


def matching_tools(pattern: str, shapes: Shapes) -> list[tuple[str, Shape]]:
    """The known tools that match a pattern."""
    return [(name, shape) for name, shape in shapes.items() if name_matches(pattern, name, shape.kind)]


def command_arguments(pattern: str, shapes: Shapes) -> tuple[str, ...]:
    """The arguments that are command lines in any tool that matches a pattern."""
    found = [name for _, shape in matching_tools(pattern, shapes) for name in shape.commands]
    return tuple(dict.fromkeys(found))


def path_arguments(pattern: str, shapes: Shapes) -> tuple[str, ...]:
    """The arguments that are paths in any tool that matches a pattern."""
    found = [name for _, shape in matching_tools(pattern, shapes) for name in shape.paths]
    return tuple(dict.fromkeys(found))
