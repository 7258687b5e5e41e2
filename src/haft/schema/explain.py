"""Turns validation errors into sentences that name each wrong argument and what would be right.

`validate` calls this module for values that failed; a model or a person reads the result and makes a better call. So
every sentence names the place, the expected value and the actual value, and a similar name if there is one.
jsonschema-rs finds the errors; this module only words them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import near_miss
from haft.schema.text import (
    choices,
    expected,
    in_backticks,
    place,
    quoted,
    shortened,
    step_into,
    type_words,
    value_with_type,
)

MAX_PROBLEMS: Final = 10

Sentences = Iterator[str]


class _Subject:
    """One error, with its schema and its value."""

    __slots__ = ("error", "kind", "path", "root", "value")

    def __init__(self, error: Any, root: Mapping[str, Any], arguments: Any) -> None:
        self.error = error
        self.kind = error.kind
        self.root = root
        self.path: Sequence[str | int] = error.instance_path
        # The value is taken from the arguments. The copy in the error went through JSON, and has null in place of NaN.
        self.value = step_into(arguments, self.path)

    @property
    def where(self) -> str:
        return place(self.path)

    @property
    def whole(self) -> str:
        return self.where if self.path else "the call"

    def beside(self) -> Mapping[str, Any]:
        """The subschema that contains the keyword that failed."""
        found = step_into(self.root, self.error.schema_path[:-1])
        return found if isinstance(found, Mapping) else {}

    def inner(self, name: str) -> str:
        return place([*self.path, name])


def explain(root: Mapping[str, Any], arguments: Any, errors: Iterable[Any]) -> list[str]:
    """A sentence for each error, for at most ten errors."""
    found: dict[str, None] = {}
    more = 0
    for error in errors:
        for sentence in _sentences(_Subject(error, root, arguments), arguments):
            if len(found) < MAX_PROBLEMS:
                found[sentence] = None
            elif sentence not in found:
                more += 1
    return [*found, f"… and {more} more"] if more else list(found)


def foreign_values(value: Any, path: tuple[str | int, ...] = ()) -> list[str]:
    """The parts of `value` that are not JSON: a Python object, a key that is not a string, text that is not Unicode."""
    if value is None or isinstance(value, bool | int | float):
        return []
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return [f"{place(path)} contains text that is not valid Unicode"]
        return []
    if len(path) > 100:
        return [f"{place(path)} is nested too deeply"]
    if isinstance(value, list | tuple):
        return _first_problems(foreign_values(item, (*path, index)) for index, item in enumerate(value))
    if isinstance(value, dict):
        return _first_problems(
            foreign_values(item, (*path, key))
            if isinstance(key, str)
            else [f"{place(path)} has the key {quoted(key)}, which is not a string"]
            for key, item in value.items()
        )
    return [f"{place(path)} must be a JSON value, not {value_with_type(value)}"]


def _first_problems(parts: Iterable[list[str]]) -> list[str]:
    found: list[str] = []
    for part in parts:
        found += part
        if len(found) >= MAX_PROBLEMS:
            break
    return found[:MAX_PROBLEMS]


def _sentences(subject: _Subject, arguments: Any) -> Sentences:
    word = type(subject.kind).__name__
    if word in ("AnyOf", "OneOfNotValid"):
        yield from _no_form_fits(subject, arguments)
    elif word in _WORDINGS:
        yield from _WORDINGS[word](subject)
    else:
        yield f"{subject.where} is not right: {shortened(subject.error.message, 200)}"


def _missing(subject: _Subject) -> Sentences:
    name = subject.kind.property
    schema = step_into(subject.beside(), ("properties", name))
    sentence = f"{subject.inner(name)} is missing"
    if isinstance(schema, Mapping):
        sentence += f": {expected(schema, subject.root)}"
        description = schema.get("description")
        if isinstance(description, str) and description.strip():
            sentence += f" — {shortened(description.strip().splitlines()[0], 120)}"
    yield sentence


def _unknown(subject: _Subject) -> Sentences:
    properties = subject.beside().get("properties")
    known = list(properties) if isinstance(properties, Mapping) else []
    thing = "key" if subject.path else "parameter"
    for position, name in enumerate(subject.kind.unexpected):
        sentence = f"{subject.inner(name)} is not a {thing}"
        # Searching for a similar name takes time, and there may be thousands of wrong names, or one of several
        # megabytes.
        near = near_miss(name[:200], known) if position < MAX_PROBLEMS else None
        if near is not None:
            sentence += f"; did you mean {in_backticks(near)}?"
        if position == 0 and known:
            listed = ", ".join(in_backticks(other) for other in known[:30])
            sentence += f"{'' if near else ';'} the {thing}s are {listed}{', …' if len(known) > 30 else ''}"
        elif not known:
            sentence += f"; there are no {thing}s"
        yield sentence


def _wrong_type(subject: _Subject) -> Sentences:
    yield f"{subject.where} must be {type_words(subject.kind.types)}, not {value_with_type(subject.value)}"


def _no_choice(subject: _Subject) -> Sentences:
    options = subject.kind.options
    sentence = f"{subject.where} must be one of {choices(options)}, not {quoted(subject.value)}"
    if isinstance(subject.value, str):
        near = near_miss(subject.value[:200], (option for option in options if isinstance(option, str)))
        if near is not None:
            sentence += f"; did you mean {quoted(near)}?"
    yield sentence


def _not_constant(subject: _Subject) -> Sentences:
    yield f"{subject.where} must be {quoted(subject.kind.expected_value)}, not {quoted(subject.value)}"


def _no_key(subject: _Subject) -> Sentences:
    inner = subject.kind.error
    yield f"{subject.where} may not have the key {quoted(inner.instance)}: {shortened(inner.message, 200)}"


def _several_fit(subject: _Subject) -> Sentences:
    yield f"{subject.whole} fits several of its forms and must fit exactly one"


def _not_checked(subject: _Subject) -> Sentences:
    yield f"{subject.where} could not be checked: its pattern takes too many steps on {quoted(subject.value)}"


def _bound(template: str, *, counted: str = "") -> Callable[[_Subject], Sentences]:
    """A function that words the error of a keyword with one limit, such as `maximum`: the limit goes into the template,
    and the actual value follows."""

    def sentences(subject: _Subject) -> Sentences:
        came = f"{len(subject.value)}" if counted else quoted(subject.value)
        limit = shortened(str(subject.kind.value), 80)
        yield f"{subject.where} must {template.format(limit)}{counted}, not {came}"

    return sentences


def _plain(sentence: str) -> Callable[[_Subject], Sentences]:
    def sentences(subject: _Subject) -> Sentences:
        yield f"{subject.where} {sentence}"

    return sentences


def _no_form_fits(subject: _Subject, arguments: Any) -> Sentences:
    """The sentences for a value that fits none of several forms (`anyOf`, `oneOf`). If the value shows which form was
    meant, the sentences explain why that form does not fit."""
    forms: list[list[Any]] = subject.kind.context
    types: list[str] = []
    meant: list[list[Any]] = []
    for errors in forms:
        other_type = next((error for error in errors if _is_about_type(error, subject.path)), None)
        if other_type is None:
            meant.append(errors)
        else:
            types += other_type.kind.types
    if not meant:
        yield f"{subject.where} must be {type_words(types)}, not {value_with_type(subject.value)}"
        return
    # A form that requires another constant, as in `{"kind": "circle"}`, was not meant either.
    meant = [errors for errors in meant if not any(_is_constant(error) for error in errors)] or meant
    told = [
        [sentence for error in errors for sentence in _sentences(_Subject(error, subject.root, arguments), arguments)]
        for errors in meant
    ]
    if len(told) == 1:
        yield from told[0]
    else:
        alternatives = "; or ".join(" and ".join(sentences[:3]) for sentences in told[:5])
        yield f"{subject.whole} fits none of its forms: {alternatives}"


def _is_about_type(error: Any, path: Sequence[str | int]) -> bool:
    return type(error.kind).__name__ == "Type" and len(error.instance_path) == len(path)


def _is_constant(error: Any) -> bool:
    return type(error.kind).__name__ == "Constant"


_WORDINGS: Final[dict[str, Callable[[_Subject], Sentences]]] = {
    "Required": _missing,
    "AdditionalProperties": _unknown,
    "UnevaluatedProperties": _unknown,
    "Type": _wrong_type,
    "Enum": _no_choice,
    "Constant": _not_constant,
    "PropertyNames": _no_key,
    "OneOfMultipleValid": _several_fit,
    "BacktrackLimitExceeded": _not_checked,
    "FalseSchema": _plain("is not allowed here"),
    "UniqueItems": _plain("contains the same value twice"),
    "Contains": _plain("contains none of the values that it must contain"),
    "Minimum": _bound("be at least {}"),
    "Maximum": _bound("be at most {}"),
    "ExclusiveMinimum": _bound("be greater than {}"),
    "ExclusiveMaximum": _bound("be less than {}"),
    "MultipleOf": _bound("be a multiple of {}"),
    "Pattern": _bound("match the pattern `{}`"),
    "Format": _bound("have the format `{}`"),
    "MinLength": _bound("have at least {}", counted=" characters"),
    "MaxLength": _bound("have at most {}", counted=" characters"),
    "MinItems": _bound("have at least {}", counted=" items"),
    "MaxItems": _bound("have at most {}", counted=" items"),
    "MinProperties": _bound("have at least {}", counted=" keys"),
    "MaxProperties": _bound("have at most {}", counted=" keys"),
}
"""The wording of each kind of error of jsonschema-rs."""
