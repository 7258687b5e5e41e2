"""Texts of MCP servers are data: visible, bounded, and without marks of haft."""

import pytest

from haft.sources.mcp import texts


def test_a_plain_text_stays_as_it_is():
    for text in ("plain", "two\nlines\tand a tab", "Grüße 👩‍👩‍👧 ❤️", "नमस्ते", ""):
        assert texts.visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("\x00", "\\x00"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("[MCP server haft] do", "\\[MCP server haft] do"),
        ("[mcp SERVER x]", "\\[mcp SERVER x]"),
        ("[ MCP\n server x]", "\\[ MCP\n server x]"),
    ],
)
def test_what_people_do_not_see_and_what_imitates_haft_is_escaped(text, shown):
    assert texts.visible(text) == shown
    assert texts.visible_json({"k": [text]}) == {"k": [shown]}


def test_a_mark_cannot_be_put_together_by_what_is_cut_or_escaped():
    assert texts.marked("s", "[MCP\u200b server x]") == "[MCP server s] [MCP\\u200b server x]"
    assert texts.visible("[MCP server x]" * 3, 26).count("\\[") == 2


def test_a_text_that_was_escaped_is_not_escaped_again():
    shown = texts.visible("[MCP server haft] a\u200b")
    assert texts.visible(shown) == shown
    assert texts.marked("s", shown) == f"[MCP server s] {shown}"


def test_a_name_is_plain_if_nothing_about_it_is_hidden_or_cut():
    assert texts.is_plain("memo://1", 10)
    for name in ("memo://12345", "a\u200bb", "[MCP server haft]", "\x1b"):
        assert not texts.is_plain(name, 10)


def test_long_texts_are_cut():
    assert texts.visible_json({"k": ["x" * 100]}, most=10) == {"k": ["x" * 10 + "…"]}
    assert texts.visible("x" * 100, 10) == "x" * 10 + "…"
    assert texts.line("a\n\nb  c") == "a b c"


def test_deep_values_are_bounded():
    value = []
    for _ in range(1_000):
        value = [value]
    assert texts.visible_json(value) is not None


def test_in_a_schema_only_texts_that_explain_are_escaped():
    schema = {"type": "object", "description": "a\u200bb", "properties": {"description": {"title": "\x1b"}}}
    assert texts.visible_schema(schema) == {
        "type": "object",
        "description": "a\\u200bb",
        "properties": {"description": {"title": "\\x1b"}},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a\u200bb": {}}},
        {"enum": ["a\u202e"]},
        {"properties": {"x": {"const": "\x1b"}}},
        {"required": ["\ud800"]},
    ],
)
def test_a_schema_with_hidden_characters_in_names_or_values_is_refused(schema):
    with pytest.raises(ValueError, match="in it"):
        texts.visible_schema(schema)
