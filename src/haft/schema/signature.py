"""Makes the JSON Schema of a Python function's signature, converts JSON arguments for a call, and converts the result
to JSON.

`sources.python` uses this module. pydantic does the work, with one private model for each function. The fields of the
model are `p0`, `p1`, … with the parameters' names as aliases, because a parameter may have a name that a model field
may not have (`json`, `_x`, `model_config`). The function is inspected once; a call only runs `bind`.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from haft.contracts import BadConfig, ToolContext
from haft.schema.docstring import read_docstring
from haft.schema.text import in_backticks, place, quoted, shortened

Parameter = inspect.Parameter

_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_STREAMS: Final = ("Generator", "Iterator", "Iterable", "AsyncGenerator", "AsyncIterator", "AsyncIterable")


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that a call of the function needs, computed in advance."""

    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    takes_context: bool
    bind: Callable[[Mapping[str, Any], Any], tuple[list[Any], dict[str, Any]]]
    """Converts JSON arguments and the context to positional and keyword arguments. If it raises a ValueError,
    `problems_of` turns that into sentences."""
    dump: Callable[[Any], Any] | None
    """Converts the result to JSON as the return annotation says; None if the result needs no conversion."""


def read_signature(function: Callable[..., Any], *, injected: type = ToolContext) -> Signature:
    """Read a function's parameters, docstring and return annotation. Raises `BadConfig` if the function cannot be a
    tool."""
    label = in_backticks(_name(function))
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError, NameError) as error:
        raise BadConfig(f"{label} cannot be a tool: {error}") from error
    annotations = _Annotations(function, injected, label)
    documented = read_docstring(inspect.getdoc(_code_of(function)) if not isinstance(function, type) else None)

    context: Parameter | None = None
    plain: list[Parameter] = []
    extra: Parameter | None = None
    for parameter in parameters:
        if parameter.kind is Parameter.VAR_POSITIONAL:
            raise BadConfig(
                f"{label} cannot be a tool: it takes `*{parameter.name}`, and a tool's arguments have names",
                hint=f"take one list instead: `{parameter.name}: list[…]`",
            )
        if parameter.kind is Parameter.VAR_KEYWORD:
            extra = parameter
        elif annotations.is_injected(parameter):
            if context is not None:
                raise BadConfig(f"{label} cannot be a tool: it takes the context twice")
            context = parameter
        else:
            plain.append(parameter)

    model = _model(label, plain, extra, annotations)
    schema = _input_schema(label, model, documented.parameters)
    output_schema, dump = _output(function, annotations)
    return Signature(
        description=documented.description,
        input_schema=schema,
        output_schema=output_schema,
        takes_context=context is not None,
        bind=_binder(model, parameters, plain, context, extra is not None),
        dump=dump,
    )


def problems_of(error: ValueError) -> list[str]:
    """The errors of `bind`, as sentences like those of `explain`."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return [shortened(str(error), 300)]
    return [
        f"{place(problem['loc'])}: {shortened(problem['msg'], 200)}, not {quoted(problem['input'])}"
        for problem in error.errors(include_url=False, include_context=False)[:10]
    ]


class _Annotations:
    """A function's annotations, resolved one by one, so that an error can name the one that fails."""

    def __init__(self, function: Callable[..., Any], injected: type, label: str) -> None:
        self._globals = getattr(inspect.unwrap(_code_of(function)), "__globals__", {})
        self._injected = injected
        self._label = label

    def is_injected(self, parameter: Parameter) -> bool:
        annotation = parameter.annotation
        if isinstance(annotation, str):
            # The type of the context is often imported only for type checkers, so that only its name is known here.
            bare = annotation.split("|")[0].strip().strip("'\"")
            if bare.rpartition(".")[2] == self._injected.__name__ and bare.partition(".")[0] not in self._globals:
                return True
        annotation = self.of(parameter)
        return annotation is self._injected or self._injected in typing.get_args(annotation)

    def of(self, parameter: Parameter) -> Any:
        if parameter.annotation is Parameter.empty:
            return Any
        return self.resolve(parameter.annotation, f"the annotation of {in_backticks(parameter.name)}")

    def resolve(self, annotation: Any, what: str) -> Any:
        def holder() -> None: ...

        holder.__annotations__ = {"it": annotation}
        try:
            return typing.get_type_hints(holder, self._globals, include_extras=True)["it"]
        except Exception as error:
            raise BadConfig(
                f"{self._label} cannot be a tool: {what}, `{annotation}`, cannot be resolved: {error}",
                hint="names in annotations must be defined in the function's module",
            ) from error


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(_code_of(function), "__qualname__", type(function).__name__))


def _code_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a partial or a callable object. Only this function has the docstring and the globals."""
    while hasattr(function, "func") and hasattr(function, "keywords"):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    return type(function).__call__


def _model(label: str, plain: list[Parameter], extra: Parameter | None, annotations: _Annotations) -> Any:
    from pydantic import BaseModel, ConfigDict, Field, create_model
    from pydantic.errors import PydanticUserError
    from pydantic.fields import FieldInfo

    fields: dict[str, Any] = {}
    for index, parameter in enumerate(plain):
        name, annotation = parameter.name, annotations.of(parameter)
        default = ... if parameter.default is Parameter.empty else parameter.default
        if isinstance(default, FieldInfo):
            annotation, default = typing.Annotated[annotation, default], _default_of(default)
        fields[f"p{index}"] = (
            annotation,
            Field(default, alias=name, validation_alias=name, serialization_alias=name)
            if default is not _FACTORY
            else Field(alias=name, validation_alias=name, serialization_alias=name),
        )
    namespace: dict[str, Any] = {"model_config": ConfigDict(extra="forbid" if extra is None else "allow")}
    each = Any if extra is None else annotations.of(extra)
    if each is not Any and typing.get_origin(each) is not typing.Unpack:
        namespace["__annotations__"] = {"__pydantic_extra__": types.GenericAlias(dict, (str, each))}
    try:
        base = type("Arguments", (BaseModel,), {"__module__": __name__, **namespace})
        return create_model("Arguments", __base__=base, __module__=__name__, **fields)
    except (PydanticUserError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise BadConfig(f"{label} cannot be a tool: its parameters have no JSON form: {first}") from error


_FACTORY: Final = object()


def _default_of(field: Any) -> Any:
    """The default of a parameter `x: int = Field(…)`: the value in the `Field`, `...` if it has none, or `_FACTORY` if
    it has a `default_factory`."""
    from pydantic_core import PydanticUndefined

    if field.default_factory is not None:
        return _FACTORY
    return ... if field.default is PydanticUndefined else field.default


def _binder(
    model: Any, parameters: list[Parameter], plain: list[Parameter], context: Parameter | None, open_ended: bool
) -> Callable[[Mapping[str, Any], Any], tuple[list[Any], dict[str, Any]]]:
    validate = model.__pydantic_validator__.validate_python
    count = sum(parameter.kind in _POSITIONAL for parameter in plain)
    keywords = [parameter.name for parameter in plain[count:]]
    slot = parameters.index(context) if context is not None and context.kind in _POSITIONAL else None

    def bind_plain(arguments: Mapping[str, Any], given: Any) -> tuple[list[Any], dict[str, Any]]:
        # The fields of a model have the order of their definition, which is the order of the parameters.
        return list(validate(arguments).__dict__.values()), {}

    def bind(arguments: Mapping[str, Any], given: Any) -> tuple[list[Any], dict[str, Any]]:
        validated = validate(arguments)
        values = list(validated.__dict__.values())
        named_values = dict(zip(keywords, values[count:], strict=True))
        positional = values[:count]
        if open_ended:
            named_values.update(validated.__pydantic_extra__ or {})
        if context is not None:
            if context.name in named_values:
                raise ValueError(f"{in_backticks(context.name)} is not a parameter")
            if slot is None:
                named_values[context.name] = given
            else:
                positional.insert(slot, given)
        return positional, named_values

    return bind_plain if context is None and not keywords and not open_ended else bind


@functools.cache
def _json_schema_generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class WithoutTitles(GenerateJsonSchema):
        """Leaves out titles, which only repeat the parameter's name."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as pydantic declares it

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return WithoutTitles


def _input_schema(label: str, model: Any, descriptions: Mapping[str, str]) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    try:
        schema: dict[str, Any] = model.model_json_schema(by_alias=True, schema_generator=_json_schema_generator())
    except PydanticUserError as error:
        first = str(error).splitlines()[0]
        raise BadConfig(f"{label} cannot be a tool: its parameters have no JSON form: {first}") from error
    schema.pop("title", None)
    schema.setdefault("properties", {})
    for name, described in schema["properties"].items():
        if descriptions.get(name):
            described.setdefault("description", descriptions[name])
    return schema


def _output(
    function: Callable[..., Any], annotations: _Annotations
) -> tuple[dict[str, Any] | None, Callable[[Any], Any] | None]:
    """The schema of the result, and the function that converts the result to JSON. Each is None if the return
    annotation does not determine it."""
    annotation = getattr(_code_of(function), "__annotations__", {}).get("return")
    if annotation is None:
        return None, None
    annotation = annotations.resolve(annotation, "its return annotation")
    origin = typing.get_origin(annotation) or annotation
    if annotation in (Any, type(None), typing.NoReturn, typing.Never) or getattr(origin, "__name__", "") in _STREAMS:
        return None, None
    from pydantic import TypeAdapter

    try:
        adapter: Any = TypeAdapter(annotation)
        schema = adapter.json_schema(mode="serialization", by_alias=True, schema_generator=_json_schema_generator())
    except Exception:  # A valid annotation without a JSON form is not an error of the tool.
        return None, None
    if annotation in (str, int, float, bool):
        return schema, None
    to_python = adapter.serializer.to_python

    def dump(value: Any) -> Any:
        return to_python(value, mode="json", by_alias=True, warnings=False, fallback=str)

    return schema, dump
