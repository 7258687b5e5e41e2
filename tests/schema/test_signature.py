from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from haft.contracts import BadConfig, ToolContext
from haft.schema import problems_of, read_signature


class Point(BaseModel):
    x: int
    children: list[Point] = []


@dataclasses.dataclass
class Size:
    width: int = 1


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def properties(function):
    return read_signature(function).input_schema["properties"]


def test_plain_annotations_become_a_closed_object():
    def add(a: int, b: float = 2.5) -> float: ...

    signature = read_signature(add)
    assert signature.input_schema == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "number", "default": 2.5}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert signature.output_schema == {"type": "number"}


def test_no_parameters_at_all():
    def ping() -> None: ...

    signature = read_signature(ping)
    assert signature.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert signature.output_schema is None
    assert signature.bind({}, None) == ([], {})


def test_literals_enums_and_optionals():
    def paint(colour: Colour, mode: Literal["fast", "slow"] = "fast", note: Optional[str] = None): ...  # noqa: UP045

    signature = read_signature(paint)
    assert signature.input_schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
    assert signature.input_schema["properties"]["mode"]["enum"] == ["fast", "slow"]
    assert {"type": "null"} in signature.input_schema["properties"]["note"]["anyOf"]
    assert signature.bind({"colour": "blue"}, None) == ([Colour.BLUE, "fast", None], {})


def test_models_and_dataclasses_arrive_as_objects():
    def draw(point: Point, size: Size): ...

    [point, size], _ = read_signature(draw).bind(
        {"point": {"x": 1, "children": [{"x": 2}]}, "size": {"width": 3}}, None
    )
    assert point == Point(x=1, children=[Point(x=2)])
    assert size == Size(3)


def test_a_single_model_stays_a_named_parameter():
    def draw(point: Point): ...

    assert list(properties(draw)) == ["point"]


def test_annotated_fields_bring_constraints_and_words():
    def take(n: Annotated[int, Field(description="how many", ge=1)], m: int = Field(4, le=9)):
        """Take.

        Args:
            n: not this one
            m: the other
        """

    found = properties(take)
    assert found["n"] == {"type": "integer", "minimum": 1, "description": "how many"}
    assert found["m"] == {"type": "integer", "maximum": 9, "default": 4, "description": "the other"}
    assert read_signature(take).bind({"n": 1}, None) == ([1, 4], {})


def test_a_parameter_without_annotation_takes_anything():
    def echo(value): ...

    assert properties(echo) == {"value": {}}
    assert read_signature(echo).bind({"value": [None]}, None) == ([[None]], {})


def test_star_args_are_refused_with_the_way_out():
    def join(*parts: str): ...

    with pytest.raises(BadConfig, match=r"takes `\*parts`") as raised:
        read_signature(join)
    assert "list" in raised.value.hint


def test_keyword_arguments_open_the_object():
    def put(name: str, **values: int): ...

    def any_of_them(**values): ...

    signature = read_signature(put)
    assert signature.input_schema["additionalProperties"] == {"type": "integer"}
    assert signature.bind({"name": "a", "p0": 1, "z": "2"}, None) == (["a"], {"p0": 1, "z": 2})
    assert read_signature(any_of_them).input_schema["additionalProperties"] is True


def test_positional_only_and_keyword_only_parameters():
    def mixed(a: int, /, b: int, *, c: int, d: int = 4): ...

    assert read_signature(mixed).bind({"a": 1, "b": 2, "c": 3}, None) == ([1, 2], {"c": 3, "d": 4})


def test_parameters_may_be_called_what_a_model_may_not():
    def odd(json: int, _x: int, model_config: int, copy: int, self_: int, p0: int): ...

    arguments = {"json": 1, "_x": 2, "model_config": 3, "copy": 4, "self_": 5, "p0": 6}
    assert read_signature(odd).bind(arguments, None) == ([1, 2, 3, 4, 5, 6], {})


@pytest.mark.parametrize("place", ["first", "middle", "keyword", "optional", "hidden"])
def test_the_context_is_injected_and_not_in_the_schema(place):
    def first(context: ToolContext, a: int): ...
    def middle(a: int, context: ToolContext, b: int = 2): ...
    def keyword(a: int, *, context: ToolContext): ...
    def optional(a: int, context: ToolContext | None = None): ...
    def hidden(a: int, context: ToolContext): ...

    hidden.__annotations__["context"] = "contracts.ToolContext"
    function = locals()[place]
    signature = read_signature(function)
    assert signature.takes_context
    assert "context" not in signature.input_schema["properties"]
    positional, named = signature.bind({"a": 1}, "CONTEXT")
    assert "CONTEXT" in [*positional, *named.values()]
    function(*positional, **named)


def test_nobody_can_pass_the_context_by_name():
    def put(context: ToolContext, **values: Any): ...

    with pytest.raises(ValueError, match="`context` is not a parameter"):
        read_signature(put).bind({"context": 1}, "CONTEXT")


def test_another_type_may_be_the_injected_one():
    def draw(point: Point, a: int): ...

    assert list(read_signature(draw, injected=Point).input_schema["properties"]) == ["a"]


def test_wrong_arguments_are_told_by_parameter():
    def draw(point: Point): ...

    with pytest.raises(ValueError) as raised:
        read_signature(draw).bind({"point": {"x": "big"}}, None)
    [problem] = problems_of(raised.value)
    assert problem.startswith("`point.x`: ")
    assert problem.endswith('not "big"')


def test_an_annotation_that_cannot_be_resolved_is_named():
    def broken(a: NoSuchThing): ...  # noqa: F821

    with pytest.raises(BadConfig, match=r"annotation of `a`, `NoSuchThing`"):
        read_signature(broken)


def test_a_parameter_without_json_form_is_refused():
    class Handle: ...

    def broken(handle): ...

    broken.__annotations__["handle"] = Handle
    with pytest.raises(BadConfig, match="no JSON form"):
        read_signature(broken)


def test_a_default_without_json_form_is_left_out_of_the_schema():
    marker = object()

    def with_marker(a=marker): ...

    assert properties(with_marker) == {"a": {}}
    assert read_signature(with_marker).bind({}, None) == ([marker], {})


def test_partials_and_callable_objects():
    def add(a: int, b: int) -> int:
        """Add."""

    class Adder:
        def __call__(self, a: int) -> int:
            """Add one."""

    assert read_signature(functools.partial(add, b=3)).bind({"a": 1}, None) == ([1], {"b": 3})
    assert read_signature(Adder()).description == "Add one."
    assert list(properties(Adder())) == ["a"]


@pytest.mark.parametrize("annotation", [Iterator[str], AsyncIterator[int], None, Any, "None", "Iterator[bytes]"])
def test_streams_and_nothing_have_no_output_schema(annotation):
    def give(): ...

    give.__annotations__["return"] = annotation
    assert read_signature(give).output_schema is None


def test_returned_values_are_written_as_their_annotation_says():
    def when() -> list[datetime.date]: ...

    signature = read_signature(when)
    assert signature.output_schema == {"type": "array", "items": {"type": "string", "format": "date"}}
    assert signature.dump([datetime.date(2026, 1, 2)]) == ["2026-01-02"]


def test_a_return_annotation_without_json_form_is_no_obstacle():
    class Handle: ...

    def give(): ...

    give.__annotations__["return"] = Handle
    assert read_signature(give).output_schema is None
