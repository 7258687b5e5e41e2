"""Characters that nobody sees, and those that only look like it."""

import pytest

from haft.sources.checks.hidden import hidden_in, hidden_in_definition, hidden_in_source


@pytest.mark.parametrize(
    "text",
    [
        "a\u202eb",
        "a\u2066b",
        "a\u200bb",
        "a\u200db",
        "\ufeffa",
        "a\u00adb",
        "a\U000e0041b",
        "a\u3164b",
        "\x1b[31mred",
        "a\x9b31m",
        "a\x08b",
        "a\x00b",
        "a\ufe0fb",
        "a\u2028b",
        "a\u200d\u200db",
    ],
)
def test_what_hides_is_found(text):
    assert list(hidden_in(text))


@pytest.mark.parametrize(
    "text", ["plain", "tab\tand\nline\r\n", "👨‍👩‍👧", "❤️", "1️⃣", "می‌خواهم", "naïve ñ 日本語", "ש", "\x0c"]
)
def test_what_scripts_and_pictures_need_is_let_through(text):
    assert not list(hidden_in(text))


def test_the_source_is_read_line_by_line_and_not_without_end():
    found = list(hidden_in_source("\ufeff#!/bin/sh\necho a\u202e\u202e\nfine\n" + "\u200b\n" * 50))
    assert [finding.line for finding in found] == [2, *range(4, 13)]
    assert "direction" in found[0].message


def test_a_long_hostile_line_is_one_finding():
    assert len(list(hidden_in_source("\u200b" * 1_000_000))) == 1


def test_every_text_of_a_definition_is_looked_at():
    deep = {"properties": {"a": {"enum": ["x", "y\u200b"]}, "b\u202e": {"description": "z"}}}
    found = [finding.message for finding in hidden_in_definition("n\u200b", "d\x1b[1m", deep)]
    assert [message.split(" hold")[0] for message in found] == ["the name", "the description", "the parameters"]
    assert not list(hidden_in_definition("n", "d", {"properties": {"a": {"enum": [1, None, True]}}}))
