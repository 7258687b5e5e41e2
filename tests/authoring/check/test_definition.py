"""Names, parameters and schemas, whatever the format."""

import pytest

from haft.contracts import Listing, ToolSpec
from haft.sources.checks.definition import check_definition, check_listing

GOOD = "Run the tests of this project. Use it instead of a shell."
PATH = {"path": {"type": "string", "description": "which file"}}


def found(name="x", description=GOOD, schema=None, **options):
    return [finding.code for finding in check_definition(name, description, schema or {}, {"json"}, **options)]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (PATH, []),
        ({"a": {"enum": ["x"], "description": "d"}}, []),
        ({"a": {"$ref": "#/$defs/a", "description": "d"}}, []),
        ({"a": {"type": "string", "title": "d"}}, []),
        ({"a": {"type": "string", "description": " "}}, ["parameter-undescribed"]),
        ({"a": {"description": "d"}}, ["no-type"]),
        ({"a": {}}, ["parameter-undescribed", "no-type"]),
        ({"json": {"type": "string", "description": "d"}}, ["parameter-hidden"]),
        ({"a": {"type": "text", "description": "d"}}, ["schema-error"]),
    ],
)
def test_parameters(properties, expected):
    assert found(schema={"type": "object", "properties": properties, "$defs": {"a": {}}}) == expected


def test_a_schema_of_another_type_or_without_end_is_an_error():
    assert found(schema={"type": "array"}) == ["schema-error"]
    assert found(schema={"properties": []}) == ["schema-error"]
    nested = {}
    for _ in range(200):
        nested = {"not": nested}
    assert found(schema={"allOf": [nested]}) == ["schema-excess"]


@pytest.mark.parametrize(
    ("name", "longest", "expected"),
    [("x" * 64, 64, []), ("x" * 65, 64, ["bad-name"]), ("x" * 61, 60, ["bad-name"]), ("a b", 64, ["bad-name"])],
)
def test_names(name, longest, expected):
    assert found(name, longest=longest) == expected


def test_many_names_are_not_all_said():
    schema = {"properties": {f"p{number}": {"type": "string"} for number in range(20)}}
    (finding,) = check_definition("x", GOOD, schema, ())
    assert finding.message.endswith("`p7` and 12 more")


def test_a_loaded_tool_is_checked_by_what_it_is_said_to_be():
    spec = ToolSpec("x", "mcp", "A utility", {"type": "object", "properties": PATH})
    report = check_listing(Listing(spec), ())
    assert (report.target, report.kind, report.name, report.ok) == ("x", "mcp", "x", True)
    assert [finding.code for finding in report.findings] == ["vague-description"]
    broken = check_listing(Listing(spec, "broken", "no such module"), ())
    assert [(finding.code, "no such module" in finding.message) for finding in broken.findings] == [
        ("not-loaded", True)
    ]
    assert not broken.ok
