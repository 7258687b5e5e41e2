"""Reads `Field(…)` of a field, and applies its limits to a JSON Schema.

A limit is left out if its value is not known, or if JSON Schema interprets it differently: pydantic checks each limit
anyway, and the schema must not reject a value that the template accepts.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from haft.schema import why_too_large
from haft.sources.agent_studio.constants import Constants
from haft.sources.agent_studio.scope import Scope
from haft.sources.agent_studio.template import UNKNOWN, Unknown

_NUMBERS: Final = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_SIZES: Final = {"string": "Length", "array": "Items", "object": "Properties"}
_OLD: Final = {"min_items": "min_length", "max_items": "max_length"}
_LIMITS: Final = (*_NUMBERS, "multiple_of", "min_length", "max_length", "pattern")
_SINGLE: Final = {
    "annotated_types.Ge": "ge", "annotated_types.Gt": "gt", "annotated_types.Le": "le", "annotated_types.Lt": "lt",
    "annotated_types.MultipleOf": "multiple_of", "annotated_types.MinLen": "min_length",
    "annotated_types.MaxLen": "max_length",
}  # fmt: skip
_SEVERAL: Final = ("annotated_types.Interval", "annotated_types.Len", "pydantic.StringConstraints")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = frozenset("dwsDWSnrtbB.\\/()[]{}*+?|^$-")
_ELSEWHERE: Final = re.compile(r"\(\?(?!:)|\[[^\]]*(?:\[|&&|--|~~)|\[\^?\]|[*+?}]\+|\{(?!\d+(?:,\d*)?\})")
"""Constructs that other regular-expression engines interpret differently from pydantic, or reject."""


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """What `Field(…)`, `Annotated` and the assigned value say about one field."""

    has_default: bool = False
    default: Any = UNKNOWN
    description: str | None = None
    title: str | None = None
    alias: str | Unknown | None = None
    """`UNKNOWN` if the field has an alias that cannot be read."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The limits by pydantic's names, such as `ge`."""
    examples: list[Any] | None = None

    def then(self, later: FieldInfo) -> FieldInfo:
        """This information and `later` combined; `later` overrides. Only the limits of `later` are kept, because the
        schema already has the earlier ones."""
        return FieldInfo(
            self.has_default or later.has_default,
            later.default if later.has_default else self.default,
            self.description if later.description is None else later.description,
            self.title if later.title is None else later.title,
            self.alias if later.alias is None else later.alias,
            later.limits,
            self.examples if later.examples is None else later.examples,
        )


class FieldInfoReader:
    """Reads the `FieldInfo` of fields from the expressions of one module."""

    def __init__(self, scope: Scope, constants: Constants) -> None:
        self._scope = scope
        self._constants = constants

    def assigned(self, node: ast.expr | None) -> FieldInfo:
        """What the expression after the `=` of a field says."""
        if node is None or _is_dots(node):
            return FieldInfo()
        if isinstance(node, ast.Call) and self._scope.is_named(node.func, "pydantic.Field"):
            return self._field(node)
        return FieldInfo(True, self._constants.value(node))

    def note(self, node: ast.expr) -> FieldInfo:
        """What one metadata expression of an `Annotated` says."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return FieldInfo(description=self._constants.text(node))
        if not isinstance(node, ast.Call):
            return FieldInfo()
        names = self._scope.names(node.func)
        if "pydantic.Field" in names:
            return self._field(node)
        single = next((_SINGLE[name] for name in names if name in _SINGLE), None)
        if single is not None and node.args:
            return FieldInfo(limits={single: self._constants.value(node.args[0])})
        return FieldInfo(limits=self.limits(node)) if any(name in _SEVERAL for name in names) else FieldInfo()

    def limits(self, node: ast.Call) -> dict[str, Any]:
        """The limits among the keywords of a call."""
        words = {_OLD.get(word.arg, word.arg): word.value for word in node.keywords if word.arg is not None}
        return {name: self._constants.value(words[name]) for name in _LIMITS if name in words}

    def _field(self, node: ast.Call) -> FieldInfo:
        words = {word.arg: word.value for word in node.keywords if word.arg is not None}
        examples = self._constants.value(words.get("examples"))
        info = FieldInfo(
            description=self._constants.text(words.get("description")),
            title=self._constants.text(words.get("title")),
            alias=self._alias(words.get("validation_alias", words.get("alias"))),
            limits=self.limits(node),
            examples=examples if isinstance(examples, list) else None,
        )
        first = node.args[0] if node.args else words.get("default")
        if any(word.arg is None for word in node.keywords) or isinstance(first, ast.Starred):
            return replace(info, has_default=True)
        if "default_factory" in words:
            return replace(info, has_default=True, default=self._constants.made_by(words["default_factory"]))
        if first is None or _is_dots(first) or self._scope.is_named(first, "pydantic.PydanticUndefined"):
            return info
        return replace(info, has_default=True, default=self._constants.value(first))

    def _alias(self, node: ast.expr | None) -> str | Unknown | None:
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return None
        if isinstance(node, ast.Call) and self._scope.is_named(node.func, "pydantic.AliasChoices") and node.args:
            node = node.args[0]
        text = self._constants.text(node)
        return UNKNOWN if text is None else text


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def with_limits(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with the limits that apply to its type. These replace limits that the schema already has, as the
    metadata of an `Annotated` does in pydantic."""
    if not limits:
        return dict(schema)
    if isinstance(options := schema.get("anyOf"), list):
        return {**schema, "anyOf": [with_limits(option, limits) for option in options]}
    return {**schema, **_limits_of(schema, limits)}


def with_missing_limits(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with all `limits` added for which the schema has no value yet: limits of the type override limits of
    the assigned `Field`."""
    if not limits:
        return dict(schema)
    if isinstance(options := schema.get("anyOf"), list):
        return {**schema, "anyOf": [with_missing_limits(option, limits) for option in options]}
    return {**schema, **{word: held for word, held in _limits_of(schema, limits).items() if word not in schema}}


def _limits_of(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return _of_number(kind, limits)
    if kind not in _SIZES or "prefixItems" in schema:
        return {}
    if kind == "string" and schema.get("format", "password") != "password":
        return {}
    found = _of_size(_SIZES[kind], limits)
    if kind == "string" and is_pattern(limits.get("pattern")):
        found["pattern"] = limits["pattern"]
    return found


def _of_number(kind: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    found = {word: limits[name] for name, word in _NUMBERS.items() if type(limits.get(name)) in (int, float)}
    step = limits.get("multiple_of")
    # For fractions, validators disagree about what a multiple is.
    if type(step) is int and step > 0 and kind == "integer":
        found["multipleOf"] = step
    return found


def _of_size(what: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    words = (("min_length", f"min{what}"), ("max_length", f"max{what}"))
    return {word: limits[name] for name, word in words if type(limits.get(name)) is int and limits[name] >= 0}


def is_pattern(pattern: Any) -> bool:
    """Whether a regular expression means the same to pydantic and to the validator of the schema."""
    if not isinstance(pattern, str) or not pattern.isascii() or why_too_large({"pattern": pattern}) is not None:
        return False
    if not _ESCAPES.issuperset(_ESCAPE.findall(pattern)) or _ELSEWHERE.search(_ESCAPE.sub("", pattern)):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
