import http.server
import threading

import pytest

from haft.contracts import BadConfig
from haft.schema import Validator, validator_for


def test_a_value_that_fits_has_no_problems():
    validator = Validator({"type": "object", "properties": {"a": {"type": "integer"}}})
    assert validator.is_valid({"a": 1})
    assert validator.problems({"a": 1}) == []


def test_a_schema_object_is_compiled_once():
    schema = {"type": "object"}
    assert validator_for(schema) is validator_for(schema)
    assert validator_for(dict(schema)) is not validator_for(schema)


def test_many_schemas_do_not_grow_the_table_without_end():
    from haft.schema import validate

    for number in range(validate._MOST_KEPT + 10):
        validator_for({"type": "object", "minProperties": number % 3})
    assert len(validate._compiled) <= validate._MOST_KEPT


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": "object", "properties": 5},
        {"$ref": "#/$defs/missing"},
        {"pattern": "["},
        {"$schema": "https://example.invalid/schema"},
        {"default": object()},
    ],
)
def test_a_schema_that_makes_no_sense_is_a_bad_config(schema):
    with pytest.raises(BadConfig, match="JSON Schema"):
        Validator(schema)


def test_a_remote_reference_is_refused_and_never_fetched():
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "string"}')

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with pytest.raises(BadConfig, match="disabled"):
                Validator({"$ref": f"http://127.0.0.1:{server.server_port}/schema.json"})
        finally:
            server.shutdown()
            thread.join()
    assert asked == []


def test_a_reference_to_a_file_is_refused_even_where_the_file_exists(tmp_path):
    (tmp_path / "schema.json").write_text('{"type": "string"}')
    with pytest.raises(BadConfig):
        Validator({"$ref": (tmp_path / "schema.json").as_uri()})


def test_a_catastrophic_pattern_is_answered_all_the_same():
    assert not Validator({"pattern": "^(a+)+$"}).is_valid("a" * 50_000 + "b")
    hard = Validator({"type": "object", "properties": {"x": {"pattern": r"^(a|a)*\1b$"}}})
    assert hard.problems({"x": "a" * 61}) == [
        '`x` could not be checked: its pattern takes too many steps on "' + "a" * 59 + '…"'
    ]


def test_patterns_with_look_around_work():
    assert Validator({"pattern": "^(?!tmp)"}).is_valid("x")
    assert not Validator({"pattern": "^(?!tmp)"}).is_valid("tmpx")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"a": {"b": [object()]}}, "`a.b[0]` must be a JSON value, not a Python `object`"),
        ({"a": {1: 2}}, "`a` has the key 1, which is not a string"),
        ({"a": "\ud800"}, "`a` contains text that is not valid Unicode"),
    ],
)
def test_what_is_no_json_is_named(value, problem):
    schema = {
        "type": "object",
        "properties": {
            "a": {
                "anyOf": [
                    {"type": "string", "minLength": 9},
                    {
                        "type": "object",
                        "additionalProperties": {"type": "array", "items": {"type": "string"}},
                    },
                ]
            }
        },
    }
    assert validator_for(schema).problems(value) == [problem]


def test_a_value_that_contains_itself_does_no_harm():
    value = {}
    value["a"] = value
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["b"]}
    assert Validator(schema).problems(value) != []
