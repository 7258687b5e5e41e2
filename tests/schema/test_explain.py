import pytest

from haft.schema import Validator

EDIT = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where the file lies.\nMore."},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"enum": ["fast", "slow"]},
        "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}, "maxItems": 3},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {
        "Edit": {
            "type": "object",
            "properties": {"old_string": {"type": "string"}},
            "required": ["old_string"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "`path` is missing: a string — Where the file lies."),
        ({"path": "a", "count": "x"}, '`count` must be an integer, not the string "x"'),
        ({"path": "a", "count": 12}, "`count` must be at most 9, not 12"),
        ({"path": "a", "count": 0}, "`count` must be at least 1, not 0"),
        ({"path": None}, "`path` must be a string, not null"),
        ({"path": "a", "count": float("nan")}, "`count` must be an integer, not the number NaN"),
        ({"path": "a", "mode": "fst"}, '`mode` must be one of "fast", "slow", not "fst"; did you mean "fast"?'),
        ({"path": "a", "mode": 3}, '`mode` must be one of "fast", "slow", not 3'),
        ({"path": "a", "edits": [{"old_string": "x"}, {}]}, "`edits[1].old_string` is missing: a string"),
        ({"path": "a", "edits": [{"old_string": 4}]}, "`edits[0].old_string` must be a string, not the number 4"),
        ({"path": "a", "edits": [{"old_string": "x"}] * 4}, "`edits` must have at most 3 items, not 4"),
        ({"path": "a", "either": "x"}, '`either` must be an integer or null, not the string "x"'),
        ({"path": "a", "name": "A"}, '`name` must match the pattern `^[a-z]+$`, not "A"'),
        ({"path": "a", "name": "abcdef"}, "`name` must have at most 5 characters, not 6"),
        (
            {"path": "a", "edits": [{"old_string": "x", "old": 1}]},
            "`edits[0].old` is not a key; the keys are `old_string`",
        ),
    ],
)
def test_each_mistake_is_named_with_what_would_be_right(arguments, sentence):
    assert Validator(EDIT).problems(arguments) == [sentence]


def test_an_unknown_parameter_comes_with_the_near_miss_and_the_valid_ones():
    problems = Validator(EDIT).problems({"pth": "a"})
    assert sorted(problems) == [
        "`path` is missing: a string — Where the file lies.",
        (
            "`pth` is not a parameter; did you mean `path`? "
            "the parameters are `path`, `count`, `mode`, `edits`, `either`, `name`"
        ),
    ]


def test_an_argument_for_a_tool_without_parameters():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert Validator(schema).problems({"x": 1}) == ["`x` is not a parameter; there are no parameters"]


def test_all_problems_come_at_once_but_not_too_many():
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    problems = Validator(schema).problems({f"k{number}": "x" for number in range(13)})
    assert len(problems) == 11
    assert problems[-1] == "… and 3 more"


def test_values_are_shortened_and_cannot_steer_a_terminal():
    [problem] = Validator({"properties": {"a": {"type": "integer"}}}).problems({"a": "\x1b[2J" + "x" * 10_000_000})
    assert "\x1b" not in problem
    assert "\\x1b[2J" in problem
    assert len(problem) < 150


def test_names_of_unknown_parameters_cannot_steer_a_terminal_either():
    [problem] = Validator({"properties": {}, "additionalProperties": False}).problems({"\x1b]0;x\x07" + "y" * 500: 1})
    assert "\x1b" not in problem
    assert len(problem) < 200


def test_the_form_that_was_meant_is_the_one_spoken_of():
    schema = {
        "type": "object",
        "properties": {
            "shape": {
                "oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}},
                    {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}},
                ]
            }
        },
    }
    assert Validator(schema).problems({"shape": {"kind": "circle", "r": "big", "side": 1}}) == [
        '`shape.r` must be a number, not the string "big"'
    ]
    [problem] = Validator(schema).problems({"shape": {"kind": "line"}})
    assert problem == (
        '`shape` fits none of its forms: `shape.kind` must be "circle", not "line"; '
        'or `shape.kind` must be "square", not "line"'
    )


def test_arguments_that_fit_none_of_two_ways_to_call():
    schema = {
        "type": "object",
        "properties": {"old": {"type": "string"}, "edits": {"type": "array"}},
        "anyOf": [{"required": ["old"]}, {"required": ["edits"]}],
    }
    [problem] = Validator(schema).problems({})
    assert problem == "the call fits none of its forms: `old` is missing; or `edits` is missing"


def test_a_value_that_fits_two_exclusive_forms():
    schema = {"properties": {"a": {"oneOf": [{"type": "integer"}, {"minimum": 1}]}}}
    assert Validator(schema).problems({"a": 3}) == ["`a` fits several of its forms and must fit exactly one"]


def test_arguments_that_are_no_object():
    assert Validator({"type": "object"}).problems([1]) == ["the arguments must be an object, not the array [1]"]


def test_every_kind_of_error_has_words():
    schema = {
        "type": "object",
        "properties": {
            "no": False,
            "unique": {"uniqueItems": True},
            "contains": {"contains": {"type": "string"}},
            "multiple": {"multipleOf": 2},
            "not": {"not": {"type": "string"}},
            "keys": {"propertyNames": {"pattern": "^x"}},
            "few": {"minProperties": 1},
        },
        "dependentRequired": {"no": ["yes"]},
    }
    arguments = {"no": 1, "unique": [1, 1], "contains": [1], "multiple": 3, "not": "s", "keys": {"a": 1}, "few": {}}
    problems = "\n".join(Validator(schema).problems(arguments))
    for words in (
        "`no` is not allowed here",
        "`unique` contains the same value twice",
        "`contains` contains none of the values that it must contain",
        "`multiple` must be a multiple of 2, not 3",
        "`not` is not right",
        '`keys` may not have the key "a"',
        "`few` must have at least 1 keys, not 0",
        "`yes` is missing",
    ):
        assert words in problems


def test_thousands_of_wrong_names_are_counted_and_not_all_told():
    schema = {"type": "object", "properties": {"path": {}}, "additionalProperties": False}
    problems = Validator(schema).problems({f"k{number}" * 50: 1 for number in range(20_000)})
    assert problems[-1] == "… and 19990 more"
