import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.schema import coerce


def tool(schema, **definitions):
    return {"type": "object", "properties": {"x": schema}, "$defs": definitions}


SCALARS = st.one_of(
    st.text().map(lambda value: ("string", value)),
    st.integers().map(lambda value: ("integer", value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: ("number", value)),
    st.booleans().map(lambda value: ("boolean", value)),
    st.none().map(lambda value: ("null", value)),
)


@given(SCALARS)
def test_reading_is_the_inverse_of_writing_scalars_as_text(scalar):
    kind, value = scalar
    text = value if isinstance(value, str) else json.dumps(value)
    assert coerce(tool({"type": kind}), "x", [text]) == value


@given(st.lists(st.integers()))
def test_a_repeated_parameter_is_an_array(values):
    schema = tool({"type": "array", "items": {"type": "integer"}})
    assert coerce(schema, "x", [str(value) for value in values]) == values
    assert coerce(schema, "x", [json.dumps(values)]) == values


@given(st.text())
def test_no_text_breaks_any_schema(text):
    for schema in (
        {},
        {"type": ["integer", "null"]},
        {"type": "array"},
        {"anyOf": [{"type": "object"}, {"enum": [1]}]},
    ):
        with contextlib.suppress(ValueError):
            coerce(tool(schema), "x", [text])


@pytest.mark.parametrize(
    ("schema", "texts", "value"),
    [
        ({"type": "string"}, ["12"], "12"),
        ({"type": "string"}, [""], ""),
        ({"type": "integer"}, ["+7"], 7),
        ({"type": "integer"}, ["1e3"], 1000),
        ({"type": "number"}, ["3"], 3),
        ({"type": "number"}, [".5"], 0.5),
        ({"type": "boolean"}, ["Yes"], True),
        ({"type": "boolean"}, ["0"], False),
        ({"type": ["boolean", "null"]}, ["no"], False),
        ({"type": ["boolean", "integer"]}, ["1"], 1),
        ({"type": ["boolean", "string"]}, ["yes"], "yes"),
        ({"type": ["boolean", "string"]}, ["true"], True),
        ({"type": ["string", "null"]}, ["null"], None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ["5"], 5),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ["5x"], "5x"),
        ({"type": "array", "items": {"type": "string"}}, ["a"], ["a"]),
        ({"type": "array", "items": {"type": "string"}}, ["[draft] x"], ["[draft] x"]),
        ({"type": "array", "items": {"type": "string"}}, ['["a", "b"]'], ["a", "b"]),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, ["1", "2"], [1, "2"]),
        ({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}, ["4"], [4]),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, ["a", "b"], ["a", "b"]),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, ["a"], "a"),
        ({"type": "object"}, ['{"a": [1]}'], {"a": [1]}),
        ({"enum": ["a", 1, None]}, ["1"], 1),
        ({"enum": ["a", 1, None]}, ["null"], None),
        ({"const": True}, ["true"], True),
        ({"anyOf": [{"enum": ["auto"]}, {"type": "integer"}]}, ["auto"], "auto"),
        ({"$ref": "#/$defs/Count"}, ["3"], 3),
        ({"type": "array", "items": {"$ref": "#/$defs/Count"}}, ["3", "4"], [3, 4]),
        ({"allOf": [{"$ref": "#/$defs/Count"}]}, ["3"], 3),
        ({}, ["3"], 3),
        ({}, ["plain"], "plain"),
        ({"$ref": "#/$defs/Loop"}, ["3"], 3),
    ],
)
def test_text_becomes_what_the_schema_asks_for(schema, texts, value):
    read = coerce(tool(schema, Count={"type": "integer"}, Loop={"$ref": "#/$defs/Loop"}), "x", texts)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("schema", "texts", "sentence"),
    [
        ({"type": "integer"}, ["x"], '`x` must be an integer, not "x"'),
        ({"type": "integer"}, ["1.5"], '`x` must be an integer, not "1.5"'),
        ({"type": "integer"}, ["1_000"], '`x` must be an integer, not "1_000"'),
        ({"type": "number"}, ["nan"], '`x` must be a number, not "nan"'),
        ({"type": "number"}, ["1e999"], '`x` must be a number, not "1e999"'),
        ({"type": "boolean"}, ["maybe"], '`x` must be true or false, not "maybe"'),
        ({"type": "string"}, [], "`x` needs a value: a string"),
        ({"type": "string"}, ["a", "b"], "`x` takes one value, but is given 2 times"),
        ({"enum": ["a", "b"]}, ["c"], '`x` must be one of "a", "b", not "c"'),
        ({"type": "object"}, ["[1]"], '`x` must be an object, such as {"key": "value"}, not "[1]"'),
        ({"type": "array", "items": {"type": "integer"}}, ["1", "b"], '`x`: item 2 must be an integer, not "b"'),
        ({"type": "null"}, ["x"], '`x` must be null, not "x"'),
    ],
)
def test_text_that_fits_nothing_is_told_in_a_sentence(schema, texts, sentence):
    with pytest.raises(ValueError) as raised:
        coerce(tool(schema), "x", texts)
    assert str(raised.value) == sentence


def test_a_huge_number_and_deep_json_are_refused_not_fatal():
    with pytest.raises(ValueError, match="must be an integer"):
        coerce(tool({"type": "integer"}), "x", ["9" * 10_000])
    with pytest.raises(ValueError, match="must be an object"):
        coerce(tool({"type": "object"}), "x", ['{"a":' * 200_000])


def test_a_parameter_the_schema_does_not_know_is_left_to_validation():
    assert coerce({"type": "object", "properties": {}, "additionalProperties": False}, "y", ["5"]) == 5
    assert coerce({"type": "object", "additionalProperties": {"type": "string"}}, "y", ["5"]) == "5"
