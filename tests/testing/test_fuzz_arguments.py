"""Arguments made from JSON Schemas: they fit, they are varied, and what is not followed is named."""

import datetime
import decimal
import enum
import json
import uuid
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from pydantic import BaseModel, Field

from haft.schema import validator_for, why_not_json
from haft.testing.fuzz.arguments import Arguments, unknown_keywords
from haft.testing.fuzz.invalid import broken
from haft.testing.fuzz.merging import References, merged

pytestmark = pytest.mark.takes_turns

OLD = ("divisibleBy", "disallow", "extends")
"""Keywords of draft 3, which later drafts no longer have."""


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Node(BaseModel):
    value: int = Field(gt=3, le=9)
    below: "Node | None" = None


class Everything(BaseModel):
    """What pydantic writes."""

    number: int
    real: float | None = None
    word: Literal["x", "y"]
    nodes: list[Node] = []
    table: dict[str, int] = {}
    pair: tuple[int, str]
    unique: set[int]
    moment: datetime.datetime
    day: datetime.date | None = None
    identifier: uuid.UUID
    colour: Colour
    code: Annotated[str, Field(pattern=r"^[a-z]+\d$", max_length=5)]
    price: decimal.Decimal
    data: bytes
    either: Node | int
    anything: Any = None
    sevens: Annotated[int, Field(multiple_of=7, gt=0)] = 7


def made(strategy, count=60):
    found = []

    @seed(7)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def one(value):
        found.append(value)

    one()
    return found


def of(properties=None, **keywords):
    return {"type": "object", **({"properties": properties} if properties is not None else {}), **keywords}


def required(**properties):
    return of(properties, required=[*properties], additionalProperties=False)


TREE = {"type": "object", "required": ["v"], "properties": {"v": {"type": "integer"}}, "additionalProperties": False}
TREE["properties"]["kids"] = {"type": "array", "items": {"$ref": "#/$defs/tree"}}
SCHEMAS = {
    "pydantic": Everything.model_json_schema(),
    "minimum": required(n={"type": "integer", "minimum": 3, "maximum": 5}),
    "exclusive": required(n={"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}),
    "exclusive, draft 4": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        **required(n={"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 4}),
    },
    "multipleOf": required(n={"type": "number", "multipleOf": 0.5, "minimum": -2, "maximum": 2}),
    "const": required(n={"const": {"a": [1, None]}}),
    "enum": required(n={"enum": [1, "a", None, {"b": 2}]}),
    "nullable": required(n={"type": "string", "nullable": True, "maxLength": 2}),
    "types": required(n={"type": ["integer", "null", "array"]}),
    "no type": required(n={"minLength": 2}),
    "length": required(s={"type": "string", "minLength": 2, "maxLength": 4}),
    "pattern": required(s={"type": "string", "pattern": "^(ab|cd){2}$"}),
    "unanchored": required(s={"type": "string", "pattern": "[0-9]{3}"}),
    "format": required(s={"type": "string", "format": "ipv4"}, t={"type": "string", "format": "date-time"}),
    "items": required(a={"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3}),
    "prefixItems": required(a={"type": "array", "prefixItems": [{"type": "null"}, {"const": 1}], "items": False}),
    "tuple, draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **required(a={"type": "array", "items": [{"type": "null"}], "additionalItems": {"const": 2}}),
    },
    "contains": required(a={"type": "array", "contains": {"const": 5}, "minContains": 2, "items": {"type": "integer"}}),
    "unevaluatedItems": required(a={"type": "array", "prefixItems": [{"const": 1}], "unevaluatedItems": False}),
    "uniqueItems": required(a={"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True}),
    "patternProperties": of(patternProperties={"^x-[a-z]$": {"type": "integer"}}, additionalProperties=False),
    "propertyNames": of(propertyNames={"pattern": "^[ab]{2}$"}, additionalProperties={"const": 1}, minProperties=1),
    "maxProperties": of({"a": {}, "b": {}, "c": {}}, maxProperties=1),
    "dependentRequired": of({"a": {"const": 1}, "b": {"const": 2}}, dependentRequired={"a": ["b"]}),
    "dependentSchemas": of({"a": {"const": 1}}, dependentSchemas={"a": {"required": ["b"]}}),
    "dependencies": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **of({"a": {"const": 1}}, dependencies={"a": {"required": ["b"]}, "b": ["c"]}),
    },
    "allOf": of(allOf=[{"properties": {"a": {"minimum": 3}}}, required(a={"type": "integer", "maximum": 5})]),
    "anyOf": of(anyOf=[required(a={"type": "integer"}), required(b={"type": "string"})]),
    "oneOf": of(oneOf=[required(k={"const": 1}, a={"type": "integer"}), required(k={"const": 2})]),
    "if": of(
        {"k": {"enum": [1, 2]}, "a": {"type": "string"}},
        required=["k"],
        **{"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["a"]}, "else": {"required": ["b"]}},
    ),
    "not": required(n={"not": {"type": ["string", "object"]}}),
    "lookaheads": required(s={"type": "string", "pattern": "^(?=.*[0-9])(?!.*x)[a-z0-9]{4,6}$"}),
    "a long text": required(s={"type": "string", "minLength": 20_000, "maxLength": 20_001}),
    "a long list": required(a={"type": "array", "minItems": 20_000, "items": {"type": "boolean"}}),
    "a named group": required(s={"type": "string", "pattern": "^(?<year>[0-9]{4})$"}),
    "huge numbers": required(n={"type": "number", "maximum": 10**400}, i={"type": "integer", "minimum": -(10**400)}),
    "tiny steps": required(n={"type": "number", "multipleOf": 1e-9, "minimum": -1e300, "maximum": 1e300}),
    "many different items": required(
        a={"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 60}
    ),
    "a tree": of({"tree": {"$ref": "#/$defs/tree"}}, required=["tree"], **{"$defs": {"tree": TREE}}),
    "anchor": of({"n": {"$ref": "#small"}}, required=["n"], **{"$defs": {"x": {"$anchor": "small", "maximum": 3}}}),
    "unevaluatedProperties": of(allOf=[required(a={"const": 1})], unevaluatedProperties=False),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_made_fits_and_no_keyword_is_left_out(name):
    schema = SCHEMAS[name]
    arguments = Arguments(schema)
    found = made(arguments.valid)
    fitting = [each for each in found if validator_for(schema).is_valid(each)]
    assert len(fitting) > 0.7 * len(found), [each for each in found if each not in fitting][:3]
    assert not [each for each in found if why_not_json(each)]
    assert not arguments.not_followed


def test_alternatives_and_bounds_are_all_reached():
    def values(name, key):
        found = made(Arguments(SCHEMAS[name]).valid)
        return {json.dumps(each[key], sort_keys=True) for each in found if key in each}

    assert values("minimum", "n") == {"3", "4", "5"}
    assert values("exclusive", "n") == {"4"}
    assert values("enum", "n") == {"1", '"a"', "null", '{"b": 2}'}
    assert values("oneOf", "k") == {"1", "2"} and values("if", "k") == {"1", "2"}
    kinds = {type(each["n"]) for each in made(Arguments(SCHEMAS["types"]).valid)}
    assert kinds == {int, type(None), list}
    assert {"b" in each for each in made(Arguments(SCHEMAS["anyOf"]).valid)} == {True, False}


def test_what_nobody_would_write_is_among_the_texts_and_files_that_exist():
    found = [each["s"] for each in made(Arguments(required(s={"type": "string"}), ["here.txt"]).valid, 200)]
    assert "here.txt" in found and "" in found and any("\x00" in each for each in found)


def test_examples_and_defaults_of_a_schema_are_used():
    schema = required(n={"type": "string", "minLength": 30, "examples": ["e" * 33], "default": "d" * 40})
    assert {"e" * 33, "d" * 40} <= {each["n"] for each in made(Arguments(schema).valid)}


def test_what_cannot_be_followed_is_named():
    schema = required(
        a={"type": "string", "pattern": r"^\p{Greek}+$"},
        b={"type": "string", "format": "zip-code"},
        c={"strange": 1, "x-own": 2, "description": "no restriction"},
        d={"$ref": "#/$defs/missing"},
        strange={"type": "null"},
    )
    arguments = Arguments(schema)
    made(arguments.valid, 30)
    assert [*arguments.not_followed] == [
        "strange",
        *("pattern '^\\\\p{Greek}+$'", "format 'zip-code'", "$ref '#/$defs/missing'"),
    ]


def test_a_schema_that_nothing_fits_makes_nothing():
    never = {"type": "object", "required": ["on"], "properties": {"on": {"$ref": "#"}}}
    for schema in (required(a=False), required(n={"type": "integer", "minimum": 3, "maximum": 2}), never):
        with pytest.raises(Unsatisfiable):
            made(Arguments(schema).valid)


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "string", "minLength": 10**7}, "minLength 10000000"),
        ({"type": "array", "minItems": 10**7}, "minItems 10000000"),
        ({"type": "array", "contains": {"const": 1}, "minContains": 10**7}, "minContains 10000000"),
        ({"type": "object", "minProperties": 10**7}, "minProperties 10000000"),
    ],
)
def test_values_that_would_be_too_large_are_not_made(schema, named):
    arguments = Arguments(required(n=schema))
    with pytest.raises(Unsatisfiable):
        made(arguments.valid)
    assert named in arguments.not_followed


def test_every_keyword_of_every_draft_is_known():
    registry = pytest.importorskip("jsonschema_specifications").REGISTRY
    every = [registry[uri].contents for uri in registry]
    for each in every:
        schema = {name: True for name in each.get("properties", {}) if name not in OLD}
        assert unknown_keywords(schema) == []
    assert len(every) > 10 and unknown_keywords(dict.fromkeys(OLD, True)) == [*OLD]


def test_a_wrong_example_in_a_schema_is_left_as_it_is():
    assert "wrong" in made(broken(Arguments({**SCHEMAS["minimum"], "default": "wrong"}).valid))


@pytest.mark.parametrize("name", ["pydantic", "minimum", "a tree", "enum"])
def test_broken_arguments_mostly_break_the_schema(name):
    schema = SCHEMAS[name]
    found = made(broken(Arguments(schema).valid))
    wrong = [each for each in found if not validator_for(schema).is_valid(each)]
    assert len(wrong) > 0.4 * len(found)
    assert not [each for each in found if why_not_json(each)]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([{"type": ["integer", "null"]}, {"type": "number"}], {"type": ["integer"]}),
        ([{"minimum": 1, "maximum": 9}, {"minimum": 3, "maximum": 5}], {"minimum": 3, "maximum": 5}),
        ([{"enum": [1, 2, 3]}, {"enum": [3, 2]}], {"enum": [2, 3]}),
        ([{"required": ["a"]}, {"required": ["a", "b"]}], {"required": ["a", "b"]}),
        ([{"multipleOf": 4}, {"multipleOf": 6}], {"multipleOf": 12}),
        ([{"items": {"minimum": 1}}, {"items": {"maximum": 2}}], {"items": {"minimum": 1, "maximum": 2}}),
        ([True, {"type": "null"}], {"type": "null"}),
        ([{"type": "null"}, False], False),
        ([{"anyOf": [1]}, {"anyOf": [2]}], {"anyOf": [1], "allOf": [{"anyOf": [2]}]}),
    ],
)
def test_merged_schemas_say_what_their_parts_say(parts, expected):
    assert merged(parts) == expected


def test_references_are_followed_to_every_kind_of_target():
    root = {"$defs": {"a/b": {"const": 1}, "c": {"$anchor": "here", "const": 2}, "d": [{"const": 3}]}}
    references = References(root)
    targets = ["#/$defs/a~1b", "#here", "#/$defs/d/0", "#"]
    assert [references.target(each) for each in targets] == [{"const": 1}, root["$defs"]["c"], {"const": 3}, root]
    assert references.followed({"$ref": "#/$defs/none"}) == ({}, {"#/$defs/none"})
    circle = References({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})
    assert circle.followed({"$ref": "#/$defs/a"})[0] is not None, "it ends"
