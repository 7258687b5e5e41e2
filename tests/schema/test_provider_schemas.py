"""Schemas as model providers accept them: they have nothing that providers refuse, and every value that fitted fits."""

import jsonschema_rs
import pytest

from haft.schema import for_providers

AT_THE_TOP = {"allOf", "anyOf", "oneOf", "not", "enum", "const", "$ref"}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/node"}}, "name": {"type": "string"}},
            "required": ["name"],
        }
    },
}
EITHER = {
    "type": "object",
    "properties": {"line": {"type": "integer"}},
    "anyOf": [
        {"properties": {"path": {"type": "string"}, "at": {"type": "string"}}, "required": ["path", "line"]},
        {"properties": {"url": {"type": "string"}, "at": {"type": "integer"}}, "required": ["url", "line"]},
    ],
}
CASES = [
    ({}, [{}, {"a": 1}], []),
    ({"type": ["object", "null"]}, [{"a": 1}], []),
    (TREE, [{"name": "a", "of": [{"name": "b"}]}], [{"of": []}, {"name": "a", "of": [{}]}]),
    (EITHER, [{"path": "a", "line": 1, "at": "x"}, {"url": "u", "line": 1, "at": 1}], [{"path": "a"}, {"line": "x"}]),
    (
        {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["b"]}]},
        [{"a": "x", "b": 1}],
        [{"a": "x"}, {"a": 1, "b": 1}],
    ),
    (
        {"properties": {"a": {}}, "additionalProperties": False, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{"a": 1}],
        [{"b": 1}],
    ),
    ({"properties": {"l": {"type": "array"}, "m": {"type": ["array", "null"]}}}, [{"l": [1, "a"], "m": None}], []),
    (
        {"properties": {"t": {"type": "array", "items": [{"type": "string"}], "additionalItems": False}}},
        [{"t": ["a"]}, {"t": []}],
        [{"t": [1]}, {"t": ["a", "b"]}],
    ),
    ({"properties": {"n": {"minimum": 3, "exclusiveMinimum": True}, "any": True}}, [{"n": 4, "any": []}], [{"n": 3}]),
    ({"not": {"required": ["a"]}, "unevaluatedProperties": False, "properties": {"b": True}}, [{"b": 1}], []),
    ({"enum": [{"a": 1}]}, [{"a": 1}], []),
]


def refused(schema, top=True):
    """What a provider would refuse in a schema."""
    if isinstance(schema, list):
        return [each for one in schema for each in refused(one, top=False)]
    if not isinstance(schema, dict):
        return []
    found = [f"{key} at the top" for key in AT_THE_TOP & schema.keys() if top]
    found += ["no type"] if top and schema.get("type") != "object" else []
    found += ["no properties"] if top and "properties" not in schema else []
    types = schema.get("type")
    if types == "array" or (isinstance(types, list) and "array" in types):
        found += [] if isinstance(schema.get("items"), dict | bool) else ["no items"]
    found += ["a property that is no table" for each in schema.get("properties", {}).values() if each is True]
    return found + [each for one in schema.values() for each in refused(one, top=False)]


@pytest.mark.parametrize(("schema", "fitting", "others"), CASES)
def test_what_fitted_still_fits_and_providers_take_the_schema(schema, fitting, others):
    made, _rest = for_providers(schema)
    assert refused(made) == []
    check = jsonschema_rs.Draft202012Validator(made)
    for value in fitting:
        check.validate(value)
    assert [value for value in others if check.is_valid(value)] == []


def test_conditions_that_no_provider_takes_are_returned():
    made, rest = for_providers({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})
    assert made == {"type": "object", "properties": {}}
    assert rest == '{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}'
    assert for_providers({"type": "object", "properties": {"a": {"anyOf": [{}, {}]}}})[1] == ""


def test_a_long_condition_is_only_named():
    many = [{"required": [f"name{number}"]} for number in range(100)]
    assert for_providers({"anyOf": many})[1] == '{"anyOf": "…"}'


def test_values_that_look_like_schemas_stay_as_they_are():
    schema = {"type": "object", "properties": {"a": {"default": {"type": "array"}, "enum": [{"items": [1]}, True]}}}
    assert for_providers(schema)[0] == schema
