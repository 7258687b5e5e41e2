"""What is known of a template by its source alone. `reading` makes it; whoever lists, runs or checks one reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


class Unknown:
    """What a constant is that cannot be known without running the file."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()
"""None would not do: it is a value."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a source."""

    code: str
    """As in the table of the checks."""
    message: str
    cure: str | None = None
    line: int | None = None
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of `UserParameters` or `ToolParameters`."""

    name: str
    """As the class has it."""
    key: str
    """As it must be sent: the alias, where there is one."""
    schema: Mapping[str, Any]
    """With its description and default."""
    required: bool
    """Unless it has a default or may be None."""
    null_when_absent: bool = False
    """It may be None and has no default: pydantic rejects its absence, so it is sent as null."""
    default: Any = UNKNOWN
    """As JSON; `UNKNOWN` where there is none, or it is computed."""
    description: str = ""
    line: int = 1
    is_known: bool = True
    """Whether all of its type was understood. What was not is `{}` in the schema, which refuses nothing."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """One of the two classes."""

    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """Takes what the class takes, and the absence of what is then sent as null."""
    fields: tuple[Parameter, ...] = ()
    line: int = 1

    @property
    def required(self) -> tuple[str, ...]:
        """The keys that a caller must give."""
        return tuple(one.key for one in self.fields if one.required)

    @property
    def null_when_absent(self) -> tuple[str, ...]:
        """The keys that are sent as null where a caller gives none."""
        return tuple(one.key for one in self.fields if one.null_when_absent)

    @property
    def renamed(self) -> dict[str, str]:
        """The fields that are sent under another name: that of the class to that of the alias."""
        return {one.name: one.key for one in self.fields if one.name != one.key}

    def sent(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the class is called with, for what a caller gives: aliases in place of names, and null for what is
        absent and has no default."""
        return sent_as(given, {one.name: one.key for one in self.fields}, self.null_when_absent)


def sent_as(given: Mapping[str, Any], keys: Mapping[str, str], nulls: Iterable[str]) -> dict[str, Any]:
    """What a class is called with: `keys` are the aliases of its fields, `nulls` what must not be absent."""
    taken = set(keys.values())
    renamed = {name: key for name, key in keys.items() if name not in taken and key not in given}
    called = {renamed.get(name, name): value for name, value in given.items()}
    return called | {key: None for key in nulls if key not in called}


@dataclass(frozen=True, slots=True)
class Template:
    """What a `tool.py` says of itself."""

    description: str
    """The docstring of the module, cleaned; empty where there is none."""
    user: Parameters
    tool: Parameters
    output_key: str | None
    imports: tuple[str, ...]
    """Modules that are imported when the file is, in order."""
    breaches: tuple[Problem, ...] = ()
    """Why it cannot be used as a template."""
    remarks: tuple[Problem, ...] = ()
    """What is wrong and does not keep it from being used."""
    is_strict: bool = False
    """Whether it asks pydantic, anywhere, to convert nothing."""
