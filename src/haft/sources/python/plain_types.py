"""Decides whether a call can reach its function without pydantic: a worker process without pydantic starts much faster.

`isolated` uses this module. A call can do without pydantic if the annotations of its function are only types that JSON
has. The host then binds the arguments, and no code of the tool's author runs for that.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Final

from haft.schema import Signature

_SCALARS: Final = (str, int, float, bool, types.NoneType, None, Any)


def is_plain_function(function: Callable[..., Any], signature: Signature) -> bool:
    """Whether the annotations of the result, and of all parameters except the context, are types that JSON has. A
    missing annotation counts as such a type."""
    try:
        found = inspect.signature(function)
        parameters = [each for each in found.parameters.values() if not _is_context(each, signature)]
        annotations = [each.annotation for each in (*parameters,)]
        if signature.dump is not None:
            annotations.append(found.return_annotation)
        return all(
            each is inspect.Parameter.empty or _is_plain_annotation(_resolved(each, function)) for each in annotations
        ) and not any(type(each.default).__name__ == "FieldInfo" for each in parameters)
    except Exception:  # an annotation that cannot be understood here is left to pydantic
        return False


def is_plain_value(value: Any) -> bool:
    """Whether a value is unchanged after encoding and decoding it as JSON."""
    kind = type(value)
    if kind is list:
        return all(is_plain_value(item) for item in value)
    if kind is dict:
        return all(type(key) is str and is_plain_value(item) for key, item in value.items())
    return kind in (str, int, float, bool, types.NoneType)


def _is_context(parameter: inspect.Parameter, signature: Signature) -> bool:
    named = parameter.name in signature.input_schema.get("properties", {})
    return signature.takes_context and not named and parameter.kind is not parameter.VAR_KEYWORD


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    names = getattr(inspect.unwrap(function), "__globals__", {})
    return typing.get_type_hints(holder, names, include_extras=True)["it"]


def _is_plain_annotation(annotation: Any) -> bool:
    if annotation in _SCALARS:
        return True
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _is_plain_annotation(inner[0]) and all(isinstance(each, str) for each in inner[1:])
    if origin is typing.Literal:
        return all(is_plain_value(each) for each in inner)
    if (origin or annotation) in (list, dict, typing.Union, types.UnionType):
        return all(_is_plain_annotation(each) for each in inner)
    return False
