"""Makes a few arguments for a tool from its schema: always the same, all of them valid.

It understands what tools mostly use. Where it does not, it makes fewer arguments, and never invalid ones. `haft tools
fuzz` makes many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from haft.schema import validator_for

_ODD_TEXTS: Final = ("", "--x", "ü b'\"$(exit 7)`exit 8`;&|*", "two\nlines/../..")
"""Texts that scripts often take for something else."""
_DEEPEST: Final = 5


def sample_arguments(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments with only what is required, with everything, and with each odd text."""
    is_valid = validator_for(schema).is_valid
    seen: list[dict[str, Any]] = []
    for text, is_whole in (("text", False), ("text", True), *((odd, True) for odd in _ODD_TEXTS)):
        made = _object(schema, _fitting(text), schema, is_whole=is_whole)
        if made not in seen and is_valid(made):
            seen.append(made)
            yield made


Texts = Callable[[Callable[[str], bool]], str]
"""A function that returns a text that fits, if it has one."""


def _fitting(text: str) -> Texts:
    return lambda fits: text if fits(text) else "text"


def _object(schema: Mapping[str, Any], texts: Texts, root: Mapping[str, Any], *, is_whole: bool) -> dict[str, Any]:
    required = schema.get("required", ())
    found = schema.get("properties") or {}
    return {name: _value(each, texts, root, 0) for name, each in found.items() if is_whole or name in required}


def _value(schema: Any, texts: Texts, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    if "$ref" in schema:
        return _value(_referenced(schema["$ref"], root), texts, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _value(schema[key][0], texts, root, depth + 1)
    kind = schema.get("type", "string")
    return _of_type(kind[0] if isinstance(kind, list) and kind else kind, schema, texts, root, depth)


def _of_type(kind: Any, schema: Mapping[str, Any], texts: Texts, root: Mapping[str, Any], depth: int) -> Any:
    if kind in ("integer", "number"):
        lowest = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return min(lowest, schema.get("maximum", lowest))
    if kind == "boolean":
        return True
    if kind == "array":
        item = _value(schema.get("items", {"type": "string"}), texts, root, depth + 1)
        return [item] * max(1, schema.get("minItems", 1))
    if kind == "object":
        return {
            name: _value(each, texts, root, depth + 1)
            for name, each in (schema.get("properties") or {}).items()
            if name in schema.get("required", ())
        }
    return None if kind == "null" else texts(validator_for(schema).is_valid)


def _referenced(reference: Any, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in str(reference).removeprefix("#/").split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
