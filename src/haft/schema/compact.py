"""Converts the compact forms, in which small tools describe their parameters, to JSON Schema.

The forms are `["string", "what it is"]` in JSON, and `string? what it is` in text. Authors of tools do not follow these
forms strictly, so this module accepts much: a parameter without a type is a string, and all its words are the
description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

TYPES: Final = {
    "string": "string",
    "boolean": "boolean",
    "bool": "boolean",
    "number": "number",
    "float": "number",
    "integer": "integer",
    "int": "integer",
    "array": "array",
    "object": "object",
}


def from_compact(args: Mapping[str, Any]) -> dict[str, Any]:
    """The input schema of `{name: [type, description]}`. No parameter is required, since this form cannot express that.
    Raises `ValueError` with an explanation if the form is wrong."""
    properties: dict[str, Any] = {}
    for name, said in args.items():
        match said:
            case str():
                properties[name] = _property(*_split(said)[:2])
            case [str(word), *rest] if len(rest) <= 1 and all(isinstance(each, str) for each in rest):
                kind, described, _optional = _split(word)
                properties[name] = _property(kind, " ".join(filter(None, [described, *rest])))
            case Mapping():
                properties[name] = dict(said)
            case _:
                raise ValueError(f'`args.{name}` must be ["type", "description"]')
    return {"type": "object", "properties": properties, "additionalProperties": False}


def from_words(parameters: Mapping[str, str]) -> dict[str, Any]:
    """The input schema of `name: type description` lines. A parameter that is not marked as optional is required."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, words in parameters.items():
        kind, described, optional = _split(words)
        properties[name] = _property(kind, described)
        if not optional:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return schema if required else {name: value for name, value in schema.items() if name != "required"}


def _property(kind: str, described: str) -> dict[str, Any]:
    return {"type": kind, **({"description": described} if described else {})}


def _split(words: str) -> tuple[str, str, bool]:
    """The type, the description, and whether the parameter is marked as optional. There are three ways to mark it."""
    words = words.strip()
    first, rest = (*words.split(None, 1), "", "")[:2]
    kind = TYPES.get(first.removesuffix("?"))
    described = words if kind is None else rest.strip()
    optional = kind is not None and first.endswith("?")
    optional = optional or described.lower().startswith(("optional", "(optional)"))
    return kind or "string", described, optional
