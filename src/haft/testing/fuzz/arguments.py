"""Makes arguments from the JSON Schema of a tool: a hypothesis strategy for each keyword, or the keyword's name among
those that cannot be followed.

A strategy may make values that do not fit: for `not`, `oneOf`, `contains` with a largest number, `unevaluated…` and
the like, values are made without the keyword. The caller checks every value with haft's own validator, discards
those that do not fit, and counts them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from haft.testing.fuzz.merging import TYPES, References, Schema, merged, types_of
from haft.testing.fuzz.texts import integers, numbers, texts

_FOLLOWED: Final = frozenset(
    (
        *("type", "enum", "const", "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if"),
        *("then", "else", "not", "dependentSchemas", "dependentRequired", "dependencies", "properties"),
        *("required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"),
        *("maxProperties", "items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains"),
        *("minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "format", "minimum"),
        *("maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "examples", "example", "default"),
        *("nullable", "unevaluatedProperties", "unevaluatedItems"),
    )
)
_WITHOUT_EFFECT: Final = frozenset(
    (
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"),
        *("$defs", "definitions", "title", "description", "deprecated", "readOnly", "writeOnly"),
        *("contentEncoding", "contentMediaType", "contentSchema", "discriminator"),
    )
)
"""Keywords that no value can break."""
_BRANCHES: Final = ("anyOf", "oneOf")
_OF_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "object": (
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"),
        *("maxProperties", "dependentRequired", "unevaluatedProperties"),
    ),
    "array": ("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_MOST_SCHEMAS: Final = 3_000
_MOST_ITEMS: Final = 6
_MOST_DRAWN: Final = 50
"""How many different items a long list has at most; then they repeat. hypothesis cannot make many."""
_MOST_UNIQUE: Final = 500
_MOST_PARTS: Final = 100_000
"""Longer lists, and texts, are not made."""
_MOST_NESTED: Final = 30
_DEEPEST: Final = 3
"""Below this depth, lists and maps are as short as they may be, so that schemas that contain themselves end."""
_MOST_DEPENDENT: Final = 4

ANY_SCALAR: Final = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=20),
)  # fmt: skip
ANY_VALUE: Final = st.recursive(
    ANY_SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=5,
)


class Arguments:
    """The strategies for one schema."""

    def __init__(self, schema: Mapping[str, Any], names: Sequence[str] = ()) -> None:
        """`names` are paths that exist where the tool runs."""
        self._references = References(schema)
        self._names = names
        self._made: dict[str, SearchStrategy[Any]] = {}
        self._depth = 0
        self.not_followed: dict[str, None] = dict.fromkeys(unknown_keywords(schema))
        """The keywords that have no effect on what is made."""
        self.valid = self._strategy(schema)

    def _miss(self, what: str) -> None:
        self.not_followed[what] = None

    def _strategy(self, schema: Schema) -> SearchStrategy[Any]:
        if schema is True or schema == {}:
            return ANY_VALUE
        if isinstance(schema, bool):
            return st.nothing()
        key = json.dumps(schema, sort_keys=True, default=str)
        if key not in self._made:
            if len(self._made) >= _MOST_SCHEMAS:
                self._miss(f"more than {_MOST_SCHEMAS:,} combinations of its parts")
                return st.nothing()
            self._made[key] = st.deferred(lambda: self._build(schema))
        return self._made[key]

    def _build(self, given: Mapping[str, Any]) -> SearchStrategy[Any]:
        schema, lost = self._references.followed(given)
        for each in lost:
            self._miss(f"$ref {each!r}")
        if isinstance(schema, bool):
            return ANY_VALUE if schema else st.nothing()
        base = self._branched(schema)
        shown = [*_list(schema.get("examples")), *(schema[key] for key in ("default", "example") if key in schema)]
        return st.one_of(base, st.sampled_from(shown)) if shown else base

    def _branched(self, schema: Mapping[str, Any]) -> SearchStrategy[Any]:
        """A strategy for a schema that may have alternatives."""
        for key in _BRANCHES:
            if isinstance(schema.get(key), list):
                rest = _without(schema, key)
                return st.one_of([self._strategy(merged((rest, each))) for each in schema[key]] or [st.nothing()])
        if "if" in schema:
            rest = _without(schema, "if", "then", "else")
            then = merged((rest, schema["if"], schema.get("then", True)))
            return st.one_of(self._strategy(then), self._strategy(merged((rest, schema.get("else", True)))))
        older = {key: each for key, each in (schema.get("dependencies") or {}).items() if not isinstance(each, list)}
        dependent = {**older, **(schema.get("dependentSchemas") or {})}
        if dependent:
            name = next(iter(dependent))
            left = dict(list(dependent.items())[1:_MOST_DEPENDENT])
            rest = {**_without(schema, "dependentSchemas"), **({"dependentSchemas": left} if left else {})}
            if older:
                rest["dependencies"] = _without(schema["dependencies"], *older)
            with_it = merged((rest, {"type": "object", "required": [name]}, dependent[name]))
            without = merged((rest, {"properties": {name: False}}))
            return st.one_of(self._strategy(with_it), self._strategy(without))
        if "const" in schema:
            return st.just(schema["const"])
        if isinstance(schema.get("enum"), list):
            return st.sampled_from(schema["enum"]) if schema["enum"] else st.nothing()
        nullable = [st.none()] if schema.get("nullable") is True else []
        return st.one_of(*(self._of_type(each, schema) for each in _types(schema)), *nullable)

    def _of_type(self, name: str, schema: Mapping[str, Any]) -> SearchStrategy[Any]:
        match name:
            case "null":
                return st.none()
            case "boolean":
                return st.booleans()
            case "integer":
                return integers({**schema, "type": "integer"})
            case "number":
                return numbers({**schema, "type": "number"})
            case "string":
                return texts(schema, self._names, self._miss)
            case "array":
                return self._array(schema)
            case "object":
                return self._object(schema)
            case _:
                return st.nothing()

    def _array(self, schema: Mapping[str, Any]) -> SearchStrategy[Any]:
        items, first = schema.get("items", schema.get("unevaluatedItems", True)), schema.get("prefixItems")
        if isinstance(items, list):  # Until draft 2019-09.
            first, items = items, schema.get("additionalItems", True)
        heads = [self._strategy(each) for each in first or ()]
        least = _count(schema, "minItems", 0)
        most = min(_count(schema, "maxItems", least + _MOST_ITEMS), max(least, len(heads)) + _MOST_ITEMS)
        if most < least:
            return st.nothing()
        is_unique = schema.get("uniqueItems") is True
        if least > (_MOST_UNIQUE if is_unique else _MOST_PARTS):
            self._miss(f"minItems {least}")
            return st.nothing()
        tail = st.nothing() if items is False else self._strategy(items)
        wanted = _count(schema, "minContains", 1) if "contains" in schema else 0
        if wanted > _MOST_DRAWN:
            self._miss(f"minContains {wanted}")
            return st.nothing()
        inside = self._strategy(schema.get("contains", True)) if wanted else None

        def made(draw: Callable[[SearchStrategy[Any]], Any]) -> list[Any]:
            largest = most if self._depth <= 1 else min(most, max(least, len(heads)) + _DEEPEST - self._depth)
            size = draw(st.integers(least, max(least, largest))) if items is not False else min(len(heads), most)
            values = [draw(each) for each in heads[:size]]
            left = size - len(values)
            if is_unique and left:
                values += draw(st.lists(tail, min_size=max(0, least - len(heads)), max_size=left, unique_by=_written))
            else:
                more = [draw(tail) for _at in range(min(left, _MOST_DRAWN))]
                values += itertools.islice(itertools.cycle(more), left)
            for at in range(wanted if inside is not None else 0):
                place = len(heads) + at
                assert inside is not None
                values[place : place + 1] = [draw(inside)]
            return _unique(values) if is_unique else values

        return self._nested(made)

    def _object(self, schema: Mapping[str, Any]) -> SearchStrategy[Any]:
        named = schema.get("properties", {})
        required = [each for each in schema.get("required", ()) if isinstance(each, str)]
        patterns = schema.get("patternProperties", {})
        other = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
        values = {name: self._strategy(each) for name, each in named.items()}
        rest = self._strategy(other)
        for name in required:
            values.setdefault(name, rest)
        optional = [name for name in values if name not in required and named.get(name) is not False]
        least = _count(schema, "minProperties", 0)
        if least > len(values) + _MOST_DRAWN:
            self._miss(f"minProperties {least}")
            return st.nothing()
        most = _count(schema, "maxProperties", len(values) + _MOST_ITEMS)
        keys = self._names_of(schema)
        more = [(texts({"pattern": each}, (), self._miss), self._strategy(value)) for each, value in patterns.items()]
        more += [(keys, rest)] if other is not False else []
        needs = {key: each for key, each in _dependent(schema).items() if isinstance(each, list)}

        def made(draw: Callable[[SearchStrategy[Any]], Any]) -> dict[str, Any]:
            found = {name: draw(values[name]) for name in required}
            for name in optional:
                if len(found) < most and self._depth <= _DEEPEST and draw(st.booleans()):
                    found[name] = draw(values[name])
            for name in [each for key, needed in needs.items() if key in found for each in needed]:
                if name not in found:
                    found[name] = draw(values.get(name, rest))
            # A map always has further keys; an object with properties has few, because they mean nothing to most tools.
            extra = draw(st.integers(0, 3)) if not values else max(0, draw(st.integers(-8, 1)))
            wanted = min(max(extra + len(found), least), most)
            for _try in range(2 * max(0, wanted - len(found)) if more else 0):  # A name may be there already.
                if len(found) >= wanted:
                    break
                key, value = draw(st.sampled_from(more))
                name = draw(key)
                if name not in values:
                    found[name] = draw(value)
            return found

        return self._nested(made)

    def _nested(self, made: Callable[[Callable[[SearchStrategy[Any]], Any]], Any]) -> SearchStrategy[Any]:
        """A strategy for values that contain others, which knows how deep they are."""

        def nested(draw: Callable[[SearchStrategy[Any]], Any]) -> Any:
            self._depth += 1
            try:
                return made(draw) if self._depth <= _MOST_NESTED else draw(st.nothing())
            finally:
                self._depth -= 1

        return st.composite(nested)()

    def _names_of(self, schema: Mapping[str, Any]) -> SearchStrategy[str]:
        """The names of further properties."""
        names = schema.get("propertyNames")
        if isinstance(names, Mapping) and names:
            return self._strategy(merged(({"type": "string"}, names)))
        return st.from_regex(r"[a-z_]{1,8}", fullmatch=True)


def _types(schema: Mapping[str, Any]) -> list[str]:
    """The types of a schema; without `type`, those whose keywords it has, or all."""
    if "type" in schema:
        named = types_of(schema["type"])
        return [each for each in TYPES if each in named]
    denied = schema.get("not")
    if isinstance(denied, Mapping) and [*denied] == ["type"]:
        return [each for each in TYPES if each not in types_of(denied["type"])] or ["none"]
    meant = [name for name, keys in _OF_TYPE.items() if any(key in schema for key in keys)]
    return [*meant, *(["integer"] if "number" in meant else [])] or list(TYPES)


def _dependent(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {**(schema.get("dependencies") or {}), **(schema.get("dependentRequired") or {})}


def _unique(values: Sequence[Any]) -> list[Any]:
    return list({_written(each): each for each in values}.values())


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _without(schema: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in keys}


def _count(schema: Mapping[str, Any], key: str, otherwise: int) -> int:
    value = schema.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else otherwise


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE: Final = (
    *("items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties"),
)


def unknown_keywords(schema: Any) -> list[str]:
    """The keywords of a schema, at any depth, that are neither followed nor without effect."""
    found: dict[str, None] = {}
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Mapping):
            continue
        for key, value in one.items():
            if key not in _FOLLOWED and key not in _WITHOUT_EFFECT and not key.startswith("x-"):
                found[key] = None
            if key in _MAPS and isinstance(value, Mapping):
                waiting += value.values()
            elif key in _LISTS and isinstance(value, list):
                waiting += value
            elif key in _SINGLE:
                waiting.append(value)
    return [*found]
