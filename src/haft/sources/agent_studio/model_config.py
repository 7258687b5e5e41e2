"""Reads the configuration of a pydantic model: `model_config`, an inner `class Config`, or keywords after its bases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from haft.sources.agent_studio.constants import Constants
from haft.sources.agent_studio.scope import Scope
from haft.sources.agent_studio.template import UNKNOWN

_EXTRAS: Final = {f"pydantic.Extra.{word}": word for word in ("allow", "forbid", "ignore")}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings that decide which arguments a model accepts. None means that a setting is not set."""

    extra: Any = None
    by_name: bool | None = None
    by_alias_said: bool | None = None
    has_generator: bool | None = None
    docstrings_said: bool | None = None

    @property
    def by_alias(self) -> bool:
        return self.by_alias_said is not False

    @property
    def docstrings(self) -> bool:
        """Whether a text below a field is the field's description."""
        return self.docstrings_said is True

    @property
    def renames(self) -> bool:
        """Whether fields must be sent under names that an alias generator computes."""
        return self.has_generator is True and self.by_name is not True and self.by_alias

    def then(self, later: Config) -> Config:
        """This configuration and `later` combined. If both have a value for a setting, the value in `later` counts."""
        return Config(
            self.extra if later.extra is None else later.extra,
            self.by_name if later.by_name is None else later.by_name,
            self.by_alias_said if later.by_alias_said is None else later.by_alias_said,
            self.has_generator if later.has_generator is None else later.has_generator,
            self.docstrings_said if later.docstrings_said is None else later.docstrings_said,
        )


def read_config(node: ast.ClassDef, scope: Scope, constants: Constants) -> Config:
    """The configuration that a class itself has, without that of its bases."""
    words: dict[str, Any] = {}
    for name, value in _settings(node):
        known = next((_EXTRAS[each] for each in scope.names(value) if each in _EXTRAS), None)
        words[name] = known or constants.value(value)
    generator = words.get("alias_generator")
    return Config(
        words.get("extra"),
        _flag(words, "populate_by_name", "validate_by_name", "allow_population_by_field_name"),
        _flag(words, "validate_by_alias"),
        None if "alias_generator" not in words else generator is not None,
        _flag(words, "use_attribute_docstrings"),
    )


def _flag(words: dict[str, Any], *names: str) -> bool | None:
    values = [words[name] for name in names if isinstance(words.get(name, UNKNOWN), bool)]
    return any(values) if values else None


def _settings(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    yield from _words(node.keywords)
    for statement in node.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="model_config")], value=value)
                | ast.AnnAssign(target=ast.Name(id="model_config"), value=ast.expr() as value)
            ):
                yield from _inside(value)
            case ast.ClassDef(name="Config", body=body):
                for inner in body:
                    if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name):
                        yield inner.targets[0].id, inner.value
            case _:
                pass


def _inside(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, ast.Call):
        yield from _words(value.keywords)
    elif isinstance(value, ast.Dict):
        for key, held in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, held


def _words(keywords: list[ast.keyword]) -> Iterator[tuple[str, ast.expr]]:
    yield from ((word.arg, word.value) for word in keywords if word.arg is not None)
