"""Converts the parameter classes of a template: the fields of a pydantic model, of its bases, and of the models inside.

The classes are read, not imported, by pydantic's rules: a later field replaces an earlier one, names with `_` and class
variables are not fields, and `model_config` may forbid extra names.
"""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from haft.sources.agent_studio.annotations import Annotations, TypeMeaning
from haft.sources.agent_studio.constants import Constants
from haft.sources.agent_studio.field_info import FieldInfo, FieldInfoReader, with_missing_limits
from haft.sources.agent_studio.model_config import Config, read_config
from haft.sources.agent_studio.scope import Budget, Scope, TooComplex
from haft.sources.agent_studio.template import UNKNOWN, Parameter, Parameters, Unknown

MODELS: Final = ("pydantic.BaseModel", "pydantic.BaseSettings", "pydantic_settings.BaseSettings")
_SILENT_BASES: Final = (*MODELS, "typing.Generic", "typing.Protocol", "abc.ABC", "builtins.object")
MOST_BASES: Final = 40
"""The most classes in one chain of inheritance."""


@dataclass(frozen=True, slots=True)
class _Written:
    annotation: ast.expr
    value: ast.expr | None
    line: int
    below: ast.expr | None
    """The expression on the next line, which may be a text about the field."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    meaning: TypeMeaning
    info: FieldInfo
    line: int


@dataclass(frozen=True, slots=True)
class _Shape:
    """A class with everything it inherits."""

    fields: Mapping[str, _Field] = field(default_factory=dict)
    config: Config = field(default_factory=Config)
    is_whole: bool = True
    """Whether the whole class was read. It was not if, for example, a base is in another file."""


class Models:
    """Reads one class of a module and the classes that it refers to."""

    def __init__(self, scope: Scope, budget: Budget) -> None:
        self._scope = scope
        self._budget = budget
        self._constants = Constants(scope, budget)
        self._field_infos = FieldInfoReader(scope, self._constants)
        self._types = Annotations(scope, budget, self._define)
        self._shapes: dict[ast.ClassDef, _Shape] = {}
        self._named: dict[ast.ClassDef, str] = {}
        self._waiting: list[ast.ClassDef] = []
        self._roots: set[ast.ClassDef] = set()

    def parameters(self, node: ast.ClassDef | None) -> Parameters:
        """The parameters of a class; empty if the class is missing."""
        if node is None:
            return Parameters()
        shape = self._shape(node)
        fields = tuple(_parameter(one, shape.config) for one in shape.fields.values())
        schema = _schema(fields, [one.key for one in fields if one.required], shape)
        definitions: dict[str, Any] = {}
        while self._waiting:
            inner = self._waiting.pop()
            definitions[self._named[inner]] = self._inner_schema(inner)
        if definitions:
            schema["$defs"] = dict(sorted(definitions.items()))
        return Parameters(schema, fields, node.lineno)

    def is_model(self, node: ast.ClassDef, depth: int = 0) -> bool:
        """Whether a class inherits from a pydantic model, directly or through another class of the file."""
        self._budget.spend()
        if depth > MOST_BASES:
            return False
        bases = [_without_arguments(base) for base in node.bases]
        if any(self._scope.is_named(base, *MODELS) for base in bases):
            return True
        above = [self._scope.class_of(base) for base in bases]
        return any(self.is_model(each, depth + 1) for each in above if each is not None and each is not node)

    def _define(self, node: ast.ClassDef) -> TypeMeaning | None:
        """The meaning of a class as the type of a field; None if the class is not a pydantic model."""
        for base in node.bases:
            if isinstance(base, ast.Subscript) and self._scope.is_named(base.value, "pydantic.RootModel"):
                return self._root(node, base.slice)
        if not self.is_model(node):
            return None
        if node not in self._named:
            taken = set(self._named.values())
            name = next(name for name in _candidates(node.name) if name not in taken)
            self._named[node] = name
            self._waiting.append(node)
        return TypeMeaning({"$ref": f"#/$defs/{self._named[node]}"})

    def _root(self, node: ast.ClassDef, inner: ast.expr) -> TypeMeaning | None:
        """The meaning of a root model, which is the meaning of the one value in the model. None if the model contains
        itself."""
        if node in self._roots:
            return None
        self._roots.add(node)
        meaning = self._types.meaning(inner, {})
        self._roots.discard(node)
        return meaning

    def _inner_schema(self, node: ast.ClassDef) -> dict[str, Any]:
        """The schema of a model inside another. For a missing optional parameter of the tool itself, haft sends null.
        For a missing field of an inner model, haft sends nothing, so each field without a default is required there."""
        shape = self._shape(node)
        fields = [_parameter(one, shape.config) for one in shape.fields.values()]
        needed = [one.key for one in fields if one.required or one.null_when_absent]
        return _schema(fields, needed, shape)

    def _shape(self, node: ast.ClassDef, depth: int = 0) -> _Shape:
        if node in self._shapes:
            return self._shapes[node]
        if depth > MOST_BASES:
            raise TooComplex
        fields: dict[str, _Field] = {}
        config, is_whole = Config(), True
        for base in reversed(node.bases):
            above = self._scope.class_of(_without_arguments(base))
            if above is not None and above is not node:
                inherited = self._shape(above, depth + 1)
                fields |= inherited.fields
                config, is_whole = config.then(inherited.config), is_whole and inherited.is_whole
            elif not self._is_silent(base):
                is_whole = False
        config = config.then(read_config(node, self._scope, self._constants))
        fields |= {one.name: one for one in self._own_fields(node, config)}
        blocks = any(isinstance(each, ast.If | ast.Try | ast.For | ast.While | ast.With) for each in node.body)
        shape = _Shape(fields, config, is_whole and not blocks)
        self._shapes[node] = shape
        return shape

    def _is_silent(self, base: ast.expr) -> bool:
        """Whether a base class is one of the known classes without fields."""
        return self._scope.is_named(_without_arguments(base), *_SILENT_BASES)

    def _own_fields(self, node: ast.ClassDef, config: Config) -> Iterator[_Field]:
        own = {each.name: each for each in node.body if isinstance(each, ast.ClassDef)}
        for name, written in _written_fields(node).items():
            meaning = self._types.meaning(written.annotation, own)
            if meaning.is_class_variable or (meaning.is_final and written.value is not None):
                continue
            info = meaning.info.then(self._field_infos.assigned(written.value))
            if config.docstrings and info.description is None and written.below is not None:
                text = self._constants.text(written.below)
                info = replace(info, description=None if text is None else inspect.cleandoc(text))
            yield _Field(
                name, replace(meaning, schema=with_missing_limits(meaning.schema, info.limits)), info, written.line
            )


def _written_fields(node: ast.ClassDef) -> dict[str, _Written]:
    """The fields that a class itself has, in the order of their first mention."""
    found: dict[str, _Written] = {}
    for at, statement in enumerate(node.body):
        below = node.body[at + 1] if at + 1 < len(node.body) else None
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if is_field_name(name):
                before = found.get(name)
                text = below.value if isinstance(below, ast.Expr) else None
                kept = value if value is not None or before is None else before.value
                found[name] = _Written(annotation, kept, statement.lineno, text)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in found:
                found[name] = replace(found[name], value=value)
            case _:
                pass
    return found


def _without_arguments(base: ast.expr) -> ast.expr:
    """A base class without its type arguments: `Base` for `Base[int]`."""
    return base.value if isinstance(base, ast.Subscript) else base


def is_field_name(name: str) -> bool:
    """Whether pydantic treats an annotated name as a field."""
    return not name.startswith("_") and name != "model_config"


def _candidates(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))


def _parameter(one: _Field, config: Config) -> Parameter:
    info = one.info
    alias = info.alias if config.by_alias else None
    is_hidden = isinstance(alias, Unknown) or (alias is None and config.renames)
    key = alias if isinstance(alias, str) else one.name
    description = info.description or info.title or ""
    schema: dict[str, Any] = {"description": description} if description else {}
    schema = {**one.meaning.schema, **schema}
    if not isinstance(info.default, Unknown):
        schema["default"] = info.default
    if info.examples:
        schema["examples"] = info.examples
    is_open = info.has_default or is_hidden
    return Parameter(
        name=one.name,
        key=key,
        schema=schema,
        required=not is_open and not one.meaning.is_optional,
        null_when_absent=one.meaning.is_optional and not is_open,
        default=info.default if info.has_default else UNKNOWN,
        description=description,
        line=one.line,
        is_known=one.meaning.is_known and not is_hidden,
    )


def _schema(fields: tuple[Parameter, ...] | list[Parameter], needed: list[str], shape: _Shape) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {one.key: one.schema for one in fields}}
    if needed:
        schema["required"] = list(dict.fromkeys(needed))
    if shape.config.extra == "forbid" and shape.is_whole and not shape.config.renames:
        schema["additionalProperties"] = False
    return schema
