"""Input schemas as model providers accept them.

Providers refuse the whole request if one schema has `anyOf` or the like at its top, or an array without `items`. haft
validates the arguments of each call itself, so the schemas made here may accept more than the tool does, never less.
What had to be taken out is returned beside the schema, so that it can be said in words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_REFUSED: Final = (*_COMBINED, "not", "enum", "const", "if", "then", "else")
"""Keywords that providers refuse at the top of a schema, or that say nothing there once the others are gone."""
_TABLES: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMAS: Final = ("items", "contains", "propertyNames", "not", "if", "then", "else", "additionalProperties")
_DEEPEST: Final = 100
LONGEST_REST: Final = 1_000


def for_providers(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The schema of a tool's arguments as providers accept it; and the conditions that it lost, as one line of JSON
    Schema. That line is empty if the schema accepts the same as before."""
    whole = _inner(_without_reference(schema), 0)
    rest = {key: whole.pop(key) for key in _REFUSED if key in whole}
    for key in ("$schema", *(("unevaluatedProperties",) if rest else ())):
        whole.pop(key, None)
    properties = dict(whole.get("properties") or {})
    required = list(whole.get("required") or ())
    # Properties that only an alternative has are refused anyway if the whole refuses all that it does not name.
    if whole.get("additionalProperties") is not False:
        for name, each in _properties_of(rest, whole, 0):
            properties.setdefault(name, each)
    required += [name for name in _required_of(rest, whole, 0) if name not in required]
    whole |= {"type": "object", "properties": properties}
    whole.pop("required", None)
    if required:
        whole["required"] = required
    return whole, _line_of(rest)


def _line_of(rest: Mapping[str, Any]) -> str:
    if not rest:
        return ""
    line = json.dumps(rest, ensure_ascii=False)
    return line if len(line) <= LONGEST_REST else json.dumps(dict.fromkeys(rest, "…"), ensure_ascii=False)


def _without_reference(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the definition that it refers to as a whole in place of the reference."""
    whole = dict(schema)
    for _ in range(_DEEPEST):
        target = _target(whole, schema)
        if target is None:
            break
        whole.pop("$ref")
        whole = {**target, **whole}
    return whole


def _target(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _parts(schema: Mapping[str, Any], root: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    for key in keys:
        for each in schema.get(key) or ():
            if isinstance(each, Mapping):
                yield _target(each, root) or each


def _properties_of(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    """The properties in the parts of a schema. If several parts have a property, each of its schemas is an
    alternative."""
    found: dict[str, list[Any]] = {}
    for part in _parts(schema, root, _COMBINED) if depth < _DEEPEST else ():
        own = part.get("properties")
        for name, each in (own if isinstance(own, Mapping) else {}).items():
            found.setdefault(name, []).append(each)
        for name, each in _properties_of(part, root, depth + 1):
            found.setdefault(name, []).append(each)
    for name, schemas in found.items():
        different = [each for at, each in enumerate(schemas) if each not in schemas[:at]]
        yield name, different[0] if len(different) == 1 else {"anyOf": different}


def _required_of(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> list[str]:
    """The properties that every value needs: those that each part of `allOf` requires, or all alternatives do."""
    if depth >= _DEEPEST:
        return []
    needed: list[str] = []
    for part in _parts(schema, root, ("allOf",)):
        needed += [*(part.get("required") or ()), *_required_of(part, root, depth + 1)]
    for key in ("anyOf", "oneOf"):
        if all(isinstance(each, Mapping) for each in schema.get(key) or ()):
            each_needs = [
                {*(part.get("required") or ()), *_required_of(part, root, depth + 1)}
                for part in _parts(schema, root, (key,))
            ]
            needed += sorted(set.intersection(*each_needs)) if each_needs else []
    return list(dict.fromkeys(needed))


def _inner(schema: Any, depth: int) -> Any:
    """A schema whose inner schemas are as providers accept them. It accepts the same values."""
    if schema is True:
        return {}
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return schema
    copy = _in_current_form(schema)
    for key in _TABLES:
        if isinstance(table := copy.get(key), Mapping):
            copy[key] = {name: _inner(each, depth + 1) for name, each in table.items()}
    for key in _LISTS:
        if isinstance(several := copy.get(key), list):
            copy[key] = [_inner(each, depth + 1) for each in several]
    for key in _SCHEMAS:
        if key in copy and not (key == "additionalProperties" and isinstance(copy[key], bool)):
            copy[key] = _inner(copy[key], depth + 1)
    types = copy.get("type")
    if "items" not in copy and (types == "array" or (isinstance(types, list) and "array" in types)):
        copy["items"] = {}
    return copy


def _in_current_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a schema without the keywords that JSON Schema wrote differently in earlier drafts."""
    copy = dict(schema)
    if isinstance(each := copy.get("items"), list):
        copy |= {"prefixItems": each, "items": copy.pop("additionalItems", True)}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(copy.get(exclusive), bool) and copy.pop(exclusive) and bound in copy:
            copy[exclusive] = copy.pop(bound)
    return copy
