"""Limits the size of schemas, because a small untrusted schema can expand without end.

A reference is short, but validation follows it at every occurrence: thirty lines that each refer twice to the next one
make a thousand million checks of one value. So haft counts the checks of one value before it compiles a schema. A
circular reference counts once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

MAX_DEPTH: Final = 100
MAX_NODES: Final = 20_000
MAX_CHECKS: Final = 2_000
"""How many subschemas may apply to one value."""

_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
_IN_PLACE_ONE: Final = ("not", "if", "then", "else")
ENDLESS: Final = 1_000_000
"""A number of parts that no value has, unless it contains itself."""
MAX_PATTERNS: Final = 50
LONGEST_PATTERN: Final = 1_000
MAX_REPEAT: Final = 1_000
"""How often a regular expression may repeat its parts in total: `(a{90}){90}` repeats `a` 8,100 times. The compiled
expression grows with this number."""
_REPEAT: Final = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def why_too_large(schema: Mapping[str, Any]) -> str | None:
    """Why a schema is too large to use; None if it is not."""
    count = 0
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    inner: list[Mapping[str, Any]] = []
    patterns: list[str] = []
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            return f"it is nested more than {MAX_DEPTH} deep"
        if count > MAX_NODES:
            return f"it has more than {MAX_NODES:_} parts"
        if isinstance(value, Mapping):
            inner.append(value)
            patterns += _patterns(value)
            waiting += [(each, depth + 1) for each in value.values()]
        elif isinstance(value, list | tuple):
            waiting += [(each, depth + 1) for each in value]
    if (why := _too_much(patterns)) is not None:
        return why
    unfolding = _Unfolding(schema, inner)
    if any(unfolding.size(each) > MAX_CHECKS for each in inner):
        return f"its references expand to more than {MAX_CHECKS:_} checks of one value"
    return None


def checks_of(schema: Mapping[str, Any], value: Any) -> int:
    """An estimate of how many checks it takes to find every error in a value. Each part of the value is checked against
    the expanded schema for that part. If the schema has references, which may be circular, the estimate grows
    exponentially with the depth of the value."""
    inner: list[Mapping[str, Any]] = []
    refers = False
    left: list[Any] = [schema]
    while left and len(inner) < MAX_NODES:
        one = left.pop()
        if isinstance(one, Mapping):
            inner.append(one)
            refers = refers or any(key in one for key in _REFERENCES)
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
    unfolding = _Unfolding(schema, inner)
    widest = max((unfolding.size(each) for each in inner), default=1)
    parts, deepest = 0, 1
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting and parts < ENDLESS:
        one, depth = waiting.pop()
        parts, deepest = parts + 1, max(deepest, depth)
        if isinstance(one, dict):
            waiting += [(each, depth + 1) for each in one.values()]
        elif isinstance(one, list):
            waiting += [(each, depth + 1) for each in one]
    return int(min(parts * widest ** (min(deepest, 64) if refers else 1), ENDLESS**2))


def _patterns(schema: Mapping[str, Any]) -> list[str]:
    """The regular expressions of one subschema."""
    own, named = schema.get("pattern"), schema.get("patternProperties")
    return [*([own] if isinstance(own, str) else []), *(map(str, named) if isinstance(named, Mapping) else [])]


def _too_much(patterns: list[str]) -> str | None:
    """Why the regular expressions are too large to compile; None if they are not."""
    if len(patterns) > MAX_PATTERNS:
        return f"it has more than {MAX_PATTERNS} patterns"
    for pattern in patterns:
        times = 1
        for least, most in _REPEAT.findall(pattern):
            times *= max(int(least), int(most or 0), 1)
        if len(pattern) > LONGEST_PATTERN or times > MAX_REPEAT:
            return "one of its patterns is too long, or repeats too often"
    return None


class _Unfolding:
    """Counts the subschemas that apply to one value, with every reference followed."""

    def __init__(self, root: Mapping[str, Any], inner: list[Mapping[str, Any]]) -> None:
        self._root = root
        self._sizes: dict[int, int] = {}
        self._named: dict[str, Mapping[str, Any]] = {}
        for each in inner:
            for key in ("$anchor", "$dynamicAnchor", "$id"):
                if isinstance(name := each.get(key), str):
                    self._named[name if key == "$id" else f"#{name}"] = each

    def size(self, start: Mapping[str, Any]) -> int:
        """The number of subschemas that apply to one value of the schema `start`. Counts from the leaves up, without
        recursion. A circular reference counts as one."""
        begun: set[int] = set()
        stack = [start]
        while stack:
            node = stack[-1]
            if id(node) in self._sizes:
                stack.pop()
                continue
            children = list(self._children(node))
            fresh = [child for child in children if id(child) not in self._sizes and id(child) not in begun]
            begun.add(id(node))
            if fresh:
                stack += fresh
                continue
            stack.pop()
            self._sizes[id(node)] = min(1 + sum(self._sizes.get(id(child), 1) for child in children), MAX_CHECKS * 2)
        return self._sizes[id(start)]

    def _children(self, node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for key in _IN_PLACE:
            options = node.get(key)
            if isinstance(options, list):
                yield from (each for each in options if isinstance(each, Mapping))
        for key in _IN_PLACE_ONE:
            if isinstance(each := node.get(key), Mapping):
                yield each
        if isinstance(dependent := node.get("dependentSchemas"), Mapping):
            yield from (each for each in dependent.values() if isinstance(each, Mapping))
        for key in _REFERENCES:
            target = self._target(node.get(key))
            if target is not None:
                yield target

    def _target(self, reference: Any) -> Mapping[str, Any] | None:
        if not isinstance(reference, str):
            return None
        if reference in self._named:
            return self._named[reference]
        place, _hash, pointer = reference.partition("#")
        value: Any = self._named.get(place, self._root)
        for part in pointer.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list):
                at = int(part) if part.isascii() and part.isdecimal() and len(part) < 9 else len(value)
                value = value[at] if at < len(value) else None
            else:
                value = value.get(part) if isinstance(value, Mapping) else None
        return value if isinstance(value, Mapping) else None
