"""Converts the annotation of a field to JSON Schema.

An annotation that is not understood becomes `{}`, which accepts every value, and is marked as unknown. If the
annotation names a class of the same file, `models` converts that class, and calls this module again for its fields.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from haft.sources.agent_studio.constants import Constants
from haft.sources.agent_studio.field_info import FieldInfo, FieldInfoReader, with_limits
from haft.sources.agent_studio.known_types import (
    ANYTHING,
    CONSTRAINED,
    CONSTRAINED_LISTS,
    COUNTERS,
    LISTS,
    OBJECTS,
    SETS,
    SIMPLE,
    TUPLES,
)
from haft.sources.agent_studio.parse import parse_expression
from haft.sources.agent_studio.scope import Budget, Scope
from haft.sources.agent_studio.template import Unknown

MOST_DEPTH: Final = 40
MOST_OPTIONS: Final = 200
"""The most types in one union. Each of them is compared with all others."""
_TYPE_NAMES: Final = {str: "string", bool: "boolean", int: "integer", type(None): "null"}


@dataclass(frozen=True, slots=True)
class TypeMeaning:
    """The meaning of an annotation: its JSON Schema, and what it says about the field."""

    schema: Mapping[str, Any]
    is_optional: bool = False
    """Whether the annotation is `Optional[T]` or `T | None`."""
    is_known: bool = True
    info: FieldInfo = field(default_factory=FieldInfo)
    """What the metadata of a surrounding `Annotated` says about the field."""
    is_class_variable: bool = False
    is_final: bool = False


_UNREAD: Final = TypeMeaning({}, is_known=False)


class Annotations:
    """Converts the type annotations of one module to JSON Schema."""

    def __init__(self, scope: Scope, budget: Budget, define: Callable[[ast.ClassDef], TypeMeaning | None]) -> None:
        self._scope = scope
        self._budget = budget
        self._constants = Constants(scope, budget)
        self._field_infos = FieldInfoReader(scope, self._constants)
        self._define = define

    def meaning(self, node: ast.expr | None, own: Mapping[str, ast.ClassDef], depth: int = 0) -> TypeMeaning:
        """The meaning of an annotation. `own` has the classes that are defined inside the class of the annotated
        field."""
        self._budget.spend()
        if depth > MOST_DEPTH:
            return _UNREAD
        match node:
            case ast.Constant(value=None):
                return TypeMeaning({"type": "null"})
            case ast.Constant(value=str(text)):
                return self.meaning(parse_expression(text), own, depth + 1)
            case ast.BinOp(op=ast.BitOr()):
                return self._union(_options(node), own, depth)
            case ast.Subscript(value=value, slice=inner):
                arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return self._generic(value, arguments, own, depth)
            case ast.Call():
                return self._made(node, own, depth)
            case ast.Name() | ast.Attribute():
                return self._named(node, own, depth)
            case _:
                return _UNREAD

    def _named(self, node: ast.Name | ast.Attribute, own: Mapping[str, ast.ClassDef], depth: int) -> TypeMeaning:
        defined = (own.get(node.id) if isinstance(node, ast.Name) else None) or self._scope.class_of(node)
        if defined is not None:
            return self._of_class(defined)
        if isinstance(node, ast.Name) and (assigned := self._scope.assigned(node.id)) is not None:
            return self.meaning(assigned, own, depth + 1)
        for name in self._scope.names(node):
            if name in SIMPLE:
                return TypeMeaning(SIMPLE[name])
            if name in ANYTHING:
                return TypeMeaning({})
            if name in LISTS or name in TUPLES:
                return TypeMeaning({"type": "array"})
            if name in SETS:
                return TypeMeaning({"type": "array", "uniqueItems": True})
            if name in OBJECTS:
                return TypeMeaning({"type": "object"})
            if name in COUNTERS:
                return TypeMeaning({"type": "object", "additionalProperties": {"type": "integer"}})
            if name in ("typing.ClassVar", "typing.Final"):
                return TypeMeaning({}, is_class_variable=name == "typing.ClassVar", is_final=name == "typing.Final")
        return _UNREAD

    def _of_class(self, node: ast.ClassDef) -> TypeMeaning:
        if self._constants.is_enum(node):
            members = self._constants.members(node)
            return _UNREAD if members is None else TypeMeaning(_one_of(list(members.values())))
        return self._define(node) or _UNREAD

    def _generic(
        self, value: ast.expr, arguments: list[ast.expr], own: Mapping[str, ast.ClassDef], depth: int
    ) -> TypeMeaning:
        if not arguments:
            return TypeMeaning(_tuple([], is_open=False)) if self._scope.is_named(value, *TUPLES) else _UNREAD
        for name in self._scope.names(value):
            if name in ("typing.Optional", "typing.Union"):
                none = [ast.Constant(None)] if name == "typing.Optional" else []
                return self._union([*arguments, *none], own, depth)
            if name == "typing.Annotated":
                return self._annotated(arguments, own, depth)
            if name == "typing.Literal":
                return self._literal(arguments, own, depth)
            if name == "typing.ClassVar":
                return TypeMeaning({}, is_class_variable=True)
            if name == "typing.Final":
                return replace(self.meaning(arguments[0], own, depth + 1), is_final=True)
            if name in SIMPLE:  # `Json[T]`, `Pattern[str]`, `PathLike[str]`
                return TypeMeaning(SIMPLE[name])
            if name in LISTS or name in SETS or name in OBJECTS or name in TUPLES or name in COUNTERS:
                return self._container(name, arguments, own, depth)
        return _UNREAD

    def _container(
        self, name: str, arguments: list[ast.expr], own: Mapping[str, ast.ClassDef], depth: int
    ) -> TypeMeaning:
        inner = [self.meaning(each, own, depth + 1) for each in arguments if not _is_dots(each)]
        known = all(each.is_known for each in inner)
        if name in TUPLES:
            return TypeMeaning(
                _tuple([each.schema for each in inner], is_open=len(inner) < len(arguments)), is_known=known
            )
        if not inner:
            return _UNREAD
        last = inner[-1].schema
        if name in OBJECTS:
            return TypeMeaning(_object([each.schema for each in inner]), is_known=known)
        if name in COUNTERS:
            return TypeMeaning({"type": "object", "additionalProperties": {"type": "integer"}}, is_known=known)
        return TypeMeaning(_array(last, unique=name in SETS), is_known=known)

    def _union(self, options: Sequence[ast.expr], own: Mapping[str, ast.ClassDef], depth: int) -> TypeMeaning:
        inner = [self.meaning(option, own, depth + 1) for option in options]
        schemas: list[Mapping[str, Any]] = []
        for each in inner:
            flat = each.schema["anyOf"] if each.schema.keys() == {"anyOf"} else [each.schema]
            schemas += [one for one in flat if one not in schemas]
            if len(schemas) > MOST_OPTIONS:
                return _UNREAD
        null = {"type": "null"}
        is_optional = null in schemas
        if is_optional:
            schemas = [*(one for one in schemas if one != null), null]
        schema = schemas[0] if len(schemas) == 1 else {} if {} in schemas else {"anyOf": schemas}
        return TypeMeaning(schema, is_optional, all(each.is_known for each in inner))

    def _annotated(self, arguments: list[ast.expr], own: Mapping[str, ast.ClassDef], depth: int) -> TypeMeaning:
        meaning = self.meaning(arguments[0], own, depth + 1)
        for note in arguments[1:]:
            info = self._field_infos.note(note)
            meaning = replace(meaning, schema=with_limits(meaning.schema, info.limits), info=meaning.info.then(info))
        return meaning

    def _literal(self, arguments: list[ast.expr], own: Mapping[str, ast.ClassDef], depth: int) -> TypeMeaning:
        values: list[Any] = []
        for each in arguments:
            value = self._constants.value(each) if not isinstance(each, ast.Name) else None
            if isinstance(each, ast.Name | ast.Subscript):  # one Literal inside another
                inner = self.meaning(each, own, depth + 1)
                values += inner.schema.get("enum", [])
                if "enum" not in inner.schema:
                    return _UNREAD
            elif isinstance(value, Unknown | list | dict):
                return _UNREAD
            else:
                values.append(value)
        return TypeMeaning(_one_of(values)) if values else _UNREAD

    def _made(self, node: ast.Call, own: Mapping[str, ast.ClassDef], depth: int) -> TypeMeaning:
        for name in self._scope.names(node.func):
            limits = self._field_infos.limits(node)
            if name in CONSTRAINED:
                return TypeMeaning(with_limits(CONSTRAINED[name], limits))
            if name in CONSTRAINED_LISTS and node.args:
                inner = self.meaning(node.args[0], own, depth + 1)
                return TypeMeaning(
                    with_limits(_array(inner.schema, unique=CONSTRAINED_LISTS[name]), limits), is_known=inner.is_known
                )
            if name == "typing.NewType" and len(node.args) == 2:
                return self.meaning(node.args[1], own, depth + 1)
        return _UNREAD


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _options(node: ast.expr) -> list[ast.expr]:
    """The types of a union that is written with `|`, as a flat list. `ast` makes a deep tree of a long union, so a loop
    walks the tree instead of a recursion."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def _one_of(values: list[Any]) -> dict[str, Any]:
    unique = {(type(value), value): value for value in values}
    kinds = {_TYPE_NAMES.get(kind) for kind, _value in unique}
    found = {"enum": list(unique.values())}
    return {"type": kinds.pop(), **found} if len(kinds) == 1 and None not in kinds else found


def _array(items: Mapping[str, Any], *, unique: bool) -> dict[str, Any]:
    return {"type": "array", **({"items": items} if items else {}), **({"uniqueItems": True} if unique else {})}


def _tuple(items: list[Mapping[str, Any]], *, is_open: bool) -> dict[str, Any]:
    if is_open:
        return _array(items[0] if items else {}, unique=False)
    first = {"prefixItems": items} if items else {}
    return {"type": "array", **first, "minItems": len(items), "maxItems": len(items)}


def _object(inner: list[Mapping[str, Any]]) -> dict[str, Any]:
    keys, values = (inner[0], inner[1]) if len(inner) > 1 else ({}, {})
    # JSON keys are texts, which pydantic converts, for example to numbers. So only limits for text keys apply.
    names = {"propertyNames": keys} if keys.get("type") == "string" and len(keys) > 1 else {}
    return {"type": "object", **names, **({"additionalProperties": values} if values else {})}
