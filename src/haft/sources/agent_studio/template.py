"""The facts about a template that its source code states. `template_reader` makes these objects; listing, running and
checking use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


class Unknown:
    """The value of an expression that cannot be known without running the file."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()
"""The only `Unknown`. None cannot take its place, because None is a value that an expression may have."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a template's source code."""

    code: str
    """The code of the finding that reports this problem, such as `studio-main`."""
    message: str
    cure: str | None = None
    line: int | None = None
    """The number of the line, counted from 1."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of `UserParameters` or `ToolParameters`."""

    name: str
    """The name in the class."""
    key: str
    """The name to send: the alias, if there is one."""
    schema: Mapping[str, Any]
    """The JSON Schema of the field, with its description and default."""
    required: bool
    """Whether a caller must give a value: not if the field has a default or may be None."""
    null_when_absent: bool = False
    """Whether the field may be None and has no default. pydantic then requires a value, so haft sends null if a caller
    gives none."""
    default: Any = UNKNOWN
    """The default as JSON; `UNKNOWN` if there is none, or if it is computed."""
    description: str = ""
    line: int = 1
    is_known: bool = True
    """Whether the whole type was understood. A part that was not understood is `{}` in the schema, which accepts every
    value."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The fields of one of the two classes, `UserParameters` and `ToolParameters`."""

    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """The JSON Schema of all fields. It accepts what the class accepts. It also accepts that an optional value is
    missing, which haft then sends as null."""
    fields: tuple[Parameter, ...] = ()
    line: int = 1

    @property
    def required(self) -> tuple[str, ...]:
        """The keys that a call must give."""
        return tuple(one.key for one in self.fields if one.required)

    @property
    def null_when_absent(self) -> tuple[str, ...]:
        """The keys that haft sends as null if a call gives no value for them."""
        return tuple(one.key for one in self.fields if one.null_when_absent)

    @property
    def renamed(self) -> dict[str, str]:
        """The fields that are sent under another name: a mapping from the name in the class to the alias."""
        return {one.name: one.key for one in self.fields if one.name != one.key}

    def sent(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for the class: aliases instead of names, and null for missing values without a default."""
        return sent_as(given, {one.name: one.key for one in self.fields}, self.null_when_absent)


def sent_as(given: Mapping[str, Any], keys: Mapping[str, str], nulls: Iterable[str]) -> dict[str, Any]:
    """The arguments as a class expects them. `keys` maps the names of the fields to their aliases. `nulls` has the keys
    that get null if they are missing."""
    taken = set(keys.values())
    renamed = {name: key for name, key in keys.items() if name not in taken and key not in given}
    called = {renamed.get(name, name): value for name, value in given.items()}
    return called | {key: None for key in nulls if key not in called}


@dataclass(frozen=True, slots=True)
class Template:
    """What a `tool.py` states about its tool."""

    description: str
    """The docstring of the module, cleaned; empty if there is none."""
    user: Parameters
    tool: Parameters
    output_key: str | None
    imports: tuple[str, ...]
    """The modules that the file imports, in order."""
    breaches: tuple[Problem, ...] = ()
    """Why the file cannot be used as a template; empty if it can."""
    remarks: tuple[Problem, ...] = ()
    """Problems that do not prevent the use of the template."""
    is_strict: bool = False
    """Whether the file tells pydantic anywhere to convert no values."""
