"""What rules must know of tools before any call: which arguments there are, and which are commands or paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from haft.contracts import ToolSpec
from haft.policy.rules.names import name_fits


@dataclass(frozen=True, slots=True)
class Shape:
    """Of one tool."""

    kind: str
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    arguments: frozenset[str] | None = None
    """All that it takes; None where it takes any."""


Shapes = Mapping[str, Shape]
"""By name."""

KNOWN: Final[Shapes] = {"shell": Shape("builtin", commands=("command",), paths=("cwd",))}
"""What is known where no tools were looked up."""


def shapes_of(specs: Iterable[ToolSpec]) -> dict[str, Shape]:
    """Of the tools there are."""
    return {spec.name: shape_of(spec) for spec in specs}


def shape_of(spec: ToolSpec) -> Shape:
    """Of one tool, as it describes itself."""
    properties = spec.input_schema.get("properties")
    closed = spec.input_schema.get("additionalProperties") is False
    known = frozenset(properties) if closed and isinstance(properties, Mapping) else None
    return Shape(spec.kind, spec.commands, spec.paths, known)


def meant(pattern: str, shapes: Shapes) -> list[tuple[str, Shape]]:
    """The tools that a pattern means, of those that are known."""
    return [(name, shape) for name, shape in shapes.items() if name_fits(pattern, name, shape.kind)]


def command_arguments(pattern: str, shapes: Shapes) -> tuple[str, ...]:
    """The arguments that are command lines, in any tool that a pattern means."""
    found = [name for _, shape in meant(pattern, shapes) for name in shape.commands]
    return tuple(dict.fromkeys(found))


def path_arguments(pattern: str, shapes: Shapes) -> tuple[str, ...]:
    """The arguments that are paths, in any tool that a pattern means."""
    found = [name for _, shape in meant(pattern, shapes) for name in shape.paths]
    return tuple(dict.fromkeys(found))
