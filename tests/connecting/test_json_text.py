"""Changes in the text of JSON files."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.connecting.json_text import (
    BrokenJson,
    parse,
    value_at,
    with_item,
    with_value,
    without_items,
    without_value,
)
from haft.contracts import BadConfig

ENTRY = {"command": "haft", "args": ["serve", "mcp"]}
KEYS = ("mcpServers", "haft")

SHAPES = {
    "two-spaces": '{\n  "mcpServers": {\n    "a": {"command": "x"}\n  },\n  "b": [1, 2]\n}\n',
    "four-spaces": '{\n    "mcpServers": {\n        "a": {}\n    }\n}\n',
    "tabs": '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}\n',
    "one-line": '{"mcpServers":{"a":{}},"z":0}',
    "line-comment-after-last": '{\n  "mcpServers": {\n    "a": {} // mine\n  }\n}\n',
    "block-comment": '{\n  "mcpServers": {\n    /* first */ "a": {} /* last */\n  }\n}\n',
    "trailing-commas": '{\n  "mcpServers": {\n    "a": {},\n  },\n}\n',
    "comment-after-trailing-comma": '{\n  "mcpServers": {\n    "a": {}, // mine\n    // nothing follows\n  },\n}\n',
    "windows-line-ends": '{\r\n  "mcpServers": {\r\n    "a": {} // x\r\n  }\r\n}\r\n',
    "byte-order-mark": '\ufeff{\n  "mcpServers": {\n    "a": {}\n  }\n}',
    "no-newline-at-the-end": '{\n  "mcpServers": {\n    "a": {}\n  }\n}',
    "comments-around": '// top\n{\n  // before\n  "mcpServers": {\n    "a": {"x": "// no comment"}\n  }\n}\n// end\n',
    "inner-one-line": '{\n  "mcpServers": {"a": {"x": "}"}},\n  "b": 1\n}\n',
    "unicode-and-escapes": '{\n  "mcpServers": {\n    "ä\\u00e9\\"": {"x": "\\ud83d\\ude00 …"}\n  }\n}\n',
}


@pytest.mark.parametrize("name", SHAPES)
def test_an_entry_goes_in_and_out_again_without_a_trace(name):
    text = SHAPES[name]
    changed = with_value(text, KEYS, ENTRY)
    assert value_at(changed, KEYS) == ENTRY
    assert value_at(changed, ("mcpServers",)).keys() == {*value_at(text, ("mcpServers",)), "haft"}
    assert without_value(changed, KEYS) == text


@pytest.mark.parametrize("name", SHAPES)
def test_every_other_line_stays_as_it_was_written(name):
    text = SHAPES[name]
    changed = with_value(text, KEYS, ENTRY)
    for piece in ("// mine", "/* last */", "// top", "// end", "// nothing follows", "\\u00e9", "\ufeff", "\r\n"):
        assert changed.count(piece) >= text.count(piece)
    assert ("\n" in changed.replace("\r\n", "")) == ("\n" in text.replace("\r\n", ""))


@pytest.mark.parametrize("name", SHAPES)
def test_setting_the_same_value_again_changes_nothing(name):
    changed = with_value(SHAPES[name], KEYS, ENTRY)
    assert with_value(changed, KEYS, ENTRY) == changed


def test_the_indentation_is_that_of_the_file():
    assert '\n\t\t"haft": {\n\t\t\t"command"' in with_value(SHAPES["tabs"], KEYS, ENTRY)
    assert '\n        "haft": {\n            "command"' in with_value(SHAPES["four-spaces"], KEYS, ENTRY)
    assert "\n" not in with_value(SHAPES["one-line"], KEYS, ENTRY)


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "{}", "{ }\n", "{\n}\n", "{\n  // only a comment\n}\n"])
def test_an_empty_file_gets_the_entry(text):
    changed = with_value(text, KEYS, ENTRY)
    assert parse(changed).value == {"mcpServers": {"haft": ENTRY}}
    assert ("// only" in changed) == ("// only" in text)


def test_an_entry_that_is_there_is_replaced_in_its_place():
    text = '{\n  "mcpServers": {\n    "haft": {"command": "old"}, // why\n    "b": {}\n  }\n}\n'
    changed = with_value(text, KEYS, ENTRY)
    assert value_at(changed, KEYS) == ENTRY
    assert changed.index('"haft"') < changed.index("// why") < changed.index('"b"')


def test_of_a_key_that_is_written_twice_the_last_counts():
    text = '{"mcpServers": {"haft": {"a": 1}, "haft": {"b": 2}}}'
    assert value_at(text, KEYS) == {"b": 2}
    assert value_at(with_value(text, KEYS, ENTRY), KEYS) == ENTRY
    assert "haft" not in without_value(text, KEYS)


@pytest.mark.parametrize("name", SHAPES)
def test_items_of_a_list_go_in_and_out_again(name):
    text = with_value(SHAPES[name], ("hooks",), {"before": ["mine"]})
    one = with_item(text, ("hooks", "before"), {"hooks": [1]})
    two = with_item(one, ("hooks", "before"), "second")
    assert value_at(two, ("hooks", "before")) == ["mine", {"hooks": [1]}, "second"]
    assert without_items(two, ("hooks", "before"), ["second"]) == one
    assert value_at(without_items(two, ("hooks", "before"), ["mine"]), ("hooks", "before")) == [
        {"hooks": [1]},
        "second",
    ]
    assert without_items(two, ("hooks", "before"), ["second", {"hooks": [1]}]) == text


def test_what_is_no_object_is_not_overwritten():
    with pytest.raises(BadConfig):
        with_value('{"mcpServers": []}', KEYS, ENTRY)
    with pytest.raises(BadConfig):
        with_item('{"hooks": {}}', ("hooks",), 1)
    with pytest.raises(BadConfig):
        with_value("[1]", KEYS, ENTRY)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3: `,` or `}` is expected"),
        ('{\n  "a": [1,\n', "the text ends early"),
        ("{'a': 1}", "a key in double quotes is expected"),
        ('{"a": nothing}', "a value is expected before `nothing}`"),
        ('{"a": 1} x', "there is more text"),
        ('{"a" 1}', "`:` is expected after `a`"),
        ('{"a": "\\x"}', "escape"),
        ("[" * 300, "nested too deeply"),
        ("{/* never closed", "a key in double quotes"),
    ],
)
def test_a_broken_file_is_an_error_that_names_the_line(text, words):
    with pytest.raises(BrokenJson) as error:
        parse(text)
    assert words in error.value.message
    assert error.value.message.startswith("line ")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=4), values, max_size=4)
blanks = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "/* , } */", " // ] \n", "\n// x\n"])


@st.composite
def written(draw, value):
    """A value as any person could write it."""

    def gap():
        return draw(blanks)

    if isinstance(value, dict):
        inner = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{draw(written(each))}{gap()}" for key, each in value.items()]
        comma = draw(st.sampled_from(["", f",{gap()}"])) if inner else ""
        return "{" + ",".join(inner) + comma + (gap() if not inner else "") + "}"
    if isinstance(value, list):
        inner = [f"{gap()}{draw(written(each))}{gap()}" for each in value]
        return "[" + ",".join(inner) + (draw(st.sampled_from(["", f",{gap()}"])) if inner else "") + "]"
    return json.dumps(value)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_whatever_a_person_wrote_only_the_entry_changes(data):
    before = data.draw(objects)
    text = data.draw(written(before))
    assert parse(text).value == before
    keys = data.draw(st.lists(st.text(max_size=3), min_size=1, max_size=2).map(tuple))
    entry = data.draw(values.filter(lambda value: value is not None))
    if len(keys) == 2 and not isinstance(before.get(keys[0], {}), dict):
        return
    changed = with_value(text, keys, entry)
    assert value_at(changed, keys) == entry
    if len(keys) == 1:
        assert parse(changed).value == {**before, keys[0]: entry}
        rest = {key: value for key, value in before.items() if key != keys[0]}
        assert parse(without_value(changed, keys)).value == rest
    items = with_item(with_value(text, ("list",), [1, 2]), ("list",), entry)
    assert value_at(items, ("list",)) == [1, 2, entry]
    assert value_at(without_items(items, ("list",), [2]), ("list",)) in ([1, entry], [1])
