"""Checks values against one JSON Schema, compiled once.

The pipeline calls `is_valid` for every call, so this method must be fast: it calls jsonschema-rs once. For the first
value of a plain schema (see `plain`), jsonschema-rs is not even loaded. Only a value that failed is checked again, to
explain its errors. Schemas are not trusted: a reference is never fetched from the network or a file, and a regular
expression that cannot be matched in linear time runs under a limit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from haft.contracts import BadConfig
from haft.schema.bounds import checks_of
from haft.schema.plain import fits, is_plain
from haft.schema.text import shortened

BACKTRACK_LIMIT: Final = 20_000
"""The step limit for patterns with look-around or back-references. Other patterns are matched in linear time."""

MAX_ERRORS: Final = 100
"""How many errors of one value are read at most."""
MAX_CHECKED: Final = 1_000_000
"""If finding every error takes more checks than this, only the first error is searched."""
_MOST_KEPT: Final = 1_024

_compiled: dict[int, tuple[Mapping[str, Any], Validator]] = {}


class Validator:
    """Checks values against one schema. Raises `BadConfig` if the schema is not valid."""

    __slots__ = ("_compiled", "_is_untouched", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._is_untouched = is_plain(schema)
        """Whether no value was checked yet, and the schema is so simple that `fits` may check the first one."""
        self._compiled = None if self._is_untouched else _compile(schema)

    def is_valid(self, value: Any) -> bool:
        """Whether the value fits the schema. A value that is not JSON does not fit."""
        if self._is_untouched:
            self._is_untouched = False
            if fits(self.schema, value):
                return True
        try:
            return bool(self._ready().is_valid(value))
        except ValueError:
            return False

    def _ready(self) -> Any:
        if self._compiled is None:
            self._compiled = _compile(self.schema)
        return self._compiled

    def _errors(self, value: Any) -> Iterable[Any]:
        """All errors; or only the first, if finding all could take too long."""
        import jsonschema_rs

        if checks_of(self.schema, value) <= MAX_CHECKED:
            return itertools.islice(self._ready().iter_errors(value), MAX_ERRORS)
        try:
            self._ready().validate(value)
        except jsonschema_rs.ValidationError as error:
            return (error,)
        return ()

    def problems(self, value: Any) -> list[str]:
        """The errors of a value, one sentence for each. A sentence names the wrong argument. Empty if the value
        fits."""
        if self.is_valid(value):
            return []
        from haft.schema.explain import explain, foreign_values

        try:
            found = explain(self.schema, value, self._errors(value))
        except ValueError:
            found = foreign_values(value)
        # The value does not fit, so the list must not be empty: a caller may not have used `is_valid` before.
        return found or ["the arguments do not fit the schema"]


def _compile(schema: Mapping[str, Any]) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            dict(schema),
            offline=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
        )
    except jsonschema_rs.ValidationError as error:
        raise BadConfig(f"this JSON Schema is not valid: {_complaint(error)}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise BadConfig(f"this JSON Schema is not JSON: {shortened(str(error), 200)}") from error


def why_not_json(value: Any) -> str | None:
    """Why a value cannot be written as standard JSON; None if it can. A command line may contain bytes that are not
    text, and a program may pass any Python object."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if not (one.isascii() or _encodes(one)):
                return "a value holds bytes that are not UTF-8 (a lone surrogate), which JSON cannot carry"
        elif isinstance(one, float):
            if not math.isfinite(one):
                return f"a number is {one}, which JSON cannot carry"
        elif isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif one is not None and not isinstance(one, int):
            return f"a value is a Python `{type(one).__name__}`, which JSON cannot carry"
    return None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def validator_for(schema: Mapping[str, Any]) -> Validator:
    """The validator of this schema object, compiled at its first use.

    Validators are cached by the schema object, not by its content, because comparing contents would cost more than
    validating. So a schema must not be changed after its first use.
    """
    key = id(schema)
    held = _compiled.get(key)
    # The key is the schema's `id()`. The table keeps a reference to the schema, so that no other object can get the
    # same id.
    if held is not None and held[0] is schema:
        return held[1]
    validator = Validator(schema)
    while len(_compiled) >= _MOST_KEPT:
        _compiled.pop(next(iter(_compiled)), None)
    _compiled[key] = (schema, validator)
    return validator


def _complaint(error: Any) -> str:
    where = "/".join(str(part) for part in error.instance_path)
    sentence = shortened(str(error.message), 300)
    return f"at `{shortened(where, 100)}`: {sentence}" if where else sentence
