"""Values are found to fit a plain schema only where jsonschema-rs finds so too, and every plain schema is one."""

import sys

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.schema.plain import fits, is_plain
from haft.schema.validate import Validator

NAMES = st.sampled_from(["a", "b", "é", ""])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 1.5, -2.5, 2**53, -(2**60)])
SAID = {"title": st.just("t"), "description": st.just("d"), "default": st.none() | NUMBERS | st.just("x")}
BOUNDS = dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS)
LENGTHS = {name: st.integers(-1, 3) for name in ("minLength", "maxLength")}


def of(kind, **optional):
    return st.fixed_dictionaries({"type": st.just(kind)}, optional={**SAID, **optional})


SCALARS = of("string", **LENGTHS) | of("integer", **BOUNDS) | of("number", **BOUNDS) | of("boolean")
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: (
        of("array", items=inner)
        | of(
            "object",
            properties=st.dictionaries(NAMES, inner, max_size=3),
            required=st.lists(NAMES, max_size=2),
            additionalProperties=st.booleans() | inner,
        )
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "abcd", "é", "\ud800", float("nan")]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_what_fits_is_valid(schema, value):
    if is_plain(schema):
        peer = jsonschema_rs.validator_for(schema)
        if fits(schema, value):
            assert peer.is_valid(value)
        first, second = Validator(schema), Validator(schema)
        second.is_valid(0)
        assert first.is_valid(value) == second.is_valid(value), "whether it is the first value or a later one"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "a"},
        {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}},
        {"type": ["string", "null"]},
        {"type": "string", "minLength": -1},
        {"type": "string", "minLength": True},
        {"type": "object", "required": ["a", "a"]},
        {"type": "object", "properties": []},
        {"type": "integer", "minimum": "1"},
        {"$ref": "#/a"},
        {},
        True,
    ],
)
def test_what_says_more_or_is_wrong_is_not_plain(schema):
    assert not is_plain(schema)


def test_the_first_value_of_a_plain_schema_loads_nothing(monkeypatch):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    validator = Validator(schema)
    assert validator.is_valid({"a": "x"})
    with pytest.raises(ImportError):
        validator.is_valid({"a": "x"})


def test_an_object_with_any_properties_loads_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert Validator({"type": "object"}).is_valid({"a": "x", "b": [1, None, {"c": True}]})


@pytest.mark.parametrize("value", [{"a": "é"}, {"é": 1}, {"a": {1: 2}}, {"a": float("nan")}, {"a": {1}}, {"a": b""}])
def test_what_may_be_no_json_is_not_certain_to_fit(value):
    assert not fits({"type": "object"}, value)
