"""Patterns of values and of names."""

import pytest

from haft.policy.rules.names import check_name_pattern, covers, name_matches
from haft.policy.rules.patterns import escaped, glob_matches, glob_occurs, regex_of, text_matches, value_matches


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("", "", True),
        ("", "a", False),
        ("a", "a", True),
        ("a", "ab", False),
        ("*", "", True),
        ("*", "any\nthing\0", True),
        ("a*", "a", True),
        ("*a", "ba", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("*ab*ab*", "ab", False),
        ("*ab*ab*", "abab", True),
        ("a**b", "ab", True),
        ("a[b]?", "a[b]?", True),
        ("a[b]?", "abx", False),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        (r"a\\*", "a\\x", True),
        (r"a\b", "a\\b", True),
        (r"\/a/", "/a/", True),
        ("A", "a", False),
    ],
)
def test_a_star_is_anything_and_everything_else_is_itself(pattern, text, fits):
    assert glob_matches(pattern, text) is fits


@pytest.mark.parametrize("text", ["", "*", "\\", "a*b\\*c", "\\*", "/x/", "plain"])
def test_an_escaped_text_fits_itself_alone(text):
    assert glob_matches(escaped(text), text)
    assert not glob_matches(escaped(text), text + "x")
    assert not glob_matches(escaped(text), text.replace("*", "y") + "z")


def test_a_pattern_occurs_anywhere():
    assert glob_occurs("rm -rf *", "echo; rm -rf / && x")
    assert not glob_occurs("rm -rf", "rm -f")


def test_hostile_patterns_meet_hostile_texts_and_come_to_an_end():
    assert not glob_matches("*a" * 200 + "b", "a" * 200_000)
    assert not regex_of("(a*)*b")("a" * 200_000)
    assert not regex_of("^(a|a|aa)+$")("a" * 50_000 + "!")


def test_a_regular_expression_is_searched_anywhere_unless_it_is_anchored():
    assert text_matches("/b+/", "abbbc")
    assert not text_matches("/^b+$/", "abbbc")
    assert text_matches("/(?i)HELLO/", "say hello")
    assert text_matches("/x/", "\udcff x"), "bytes that are no UTF-8"
    assert text_matches("/", "/") and text_matches("//", "//"), "too short to be one"


@pytest.mark.parametrize("expression", ["(", "(?=a)", r"(a)\1", "a{1000}{1000}{1000}", "[z-a]", "*"])
def test_an_expression_that_the_linear_engine_cannot_match_is_refused(expression):
    with pytest.raises(ValueError, match="is not a regular expression that haft accepts: "):
        regex_of(expression)


@pytest.mark.parametrize(
    ("matcher", "value", "fits"),
    [
        (True, True, True),
        (True, 1, False),
        (1, True, False),
        (0, False, False),
        (1, 1, True),
        (1.5, 1.5, True),
        (1, "1", False),
        ("1", 1, False),
        ("a*", "abc", True),
        (("x", "a*"), "abc", True),
        (["x", 3], 3, True),
        (["x", "y"], "z", False),
        ({"a": "x*"}, {"a": "xy", "b": 1}, True),
        ({"a": "x*"}, {"b": "xy"}, False),
        ({"a": {"b": [1, 2]}}, {"a": {"b": 2}}, True),
        ({"a": "x"}, "x", False),
        ("*", None, False),
        ("*", ["x"], False),
    ],
)
def test_values_fit_by_their_kind(matcher, value, fits):
    assert value_matches(matcher, value) is fits


def test_names_fit_by_name_and_by_kind():
    assert name_matches("mcp:*", "mcp__git__log", "mcp")
    assert not name_matches("mcp:*", "mcp__git__log", "python")
    assert name_matches("mcp__*", "mcp__git__log", "mcp")
    assert name_matches("builtin:read_*", "read_file", "builtin")
    assert not name_matches("builtin:read_*", "write_file", "builtin")


@pytest.mark.parametrize("pattern", ["*", "shell", "mcp:*", "tb__*", "amp-toolbox:*_x", "a" * 64 + "*"])
def test_patterns_that_a_name_can_fit(pattern):
    check_name_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "letters, digits"),
        ("mpc:*", "did you mean `mcp:*`?"),
        ("tool:x", "the kinds are builtin"),
        ("Bash(npm *)", "letters, digits"),
        ("a b", "letters, digits"),
        ("mcp:", "letters, digits"),
        ("a" * 65, "at most 64"),
    ],
)
def test_patterns_that_no_name_can_fit(pattern, says):
    with pytest.raises(ValueError, match="can match no tool") as caught:
        check_name_pattern(pattern)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("wide", "narrow", "does"),
    [
        ("*", "shell", True),
        ("*", "mcp:*", True),
        ("mcp:*", "mcp:git*", True),
        ("mcp:*", "*", False),
        ("mcp:*", "python:*", False),
        ("tb__*", "tb__a*", True),
        ("tb__a*", "tb__*", False),
        ("shell", "shell", True),
    ],
)
def test_a_wider_pattern_covers_a_narrower_one(wide, narrow, does):
    assert covers(wide, narrow) is does
