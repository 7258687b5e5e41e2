"""Rules that can never match are errors."""

import dataclasses

import pytest

from haft.contracts import BadConfig
from haft.policy.rules.rule import Rule
from haft.policy.rules.shapes import Shape
from haft.policy.rules.unmatchable import check_rules


def rule(tool="shell", action="allow", command=None, **more):
    matches = more.pop("matches", {} if command is None else {"command": command})
    return Rule(tool, action, matches, source=more.pop("source", "haft.toml:7"), **more)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("npm test && x", "`&&` separates commands"),
        ("a || b", "`||`"),
        ("a; b", "`;`"),
        ("a | b", "`|`"),
        ("npm test > x", "`>`"),
        ("cat < x", "`<`"),
        ("sleep 5 &", "`&`"),
        ("a\nb", "`\\n`"),
        ("> x && y", "`&&`"),
        (" npm test", "write `npm test`"),
        ("npm test ", "write `npm test`"),
        ("npm  test", "write `npm test`"),
        ("", "is empty"),
        ("   ", "is empty"),
        (("npm test", "a | b"), "`a | b`"),
        ("npm test:*", "write `npm test*`, or `npm test\\:*`"),
        ("echo don't", "not closed"),
        (True, "a command is text"),
        ({"a": "b"}, "a command is text"),
    ],
)
def test_a_pattern_that_no_simple_command_fits(command, says):
    for tool in ("shell", "*", "builtin:sh*"):
        with pytest.raises(BadConfig) as caught:
            check_rules([rule(tool, command=command)])
        assert caught.value.message.startswith("haft.toml:7: ")
        assert says in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    "command",
    [
        "npm test*",
        "> build/*",
        "2> log",
        ">> a.txt",
        "&> all.log",
        'grep "a|b" *',
        "grep 'a && b'",
        r"find . -exec x \;",
        r"npm run test\:*",
        'echo "  two"',
        "/a && b/",
        "curl *x?a=1&b=2*",
        "git commit -m ''",
    ],
)
def test_patterns_that_a_command_can_fit(command):
    check_rules([rule(command=command)])


def test_an_argument_that_is_no_command_may_hold_anything():
    check_rules([rule("write_file", matches={"content": " a && b "})])


@pytest.mark.parametrize("tool", ["Bash(npm)", "mpc:*", "", "a" * 65])
def test_a_name_that_no_tool_has(tool):
    with pytest.raises(BadConfig, match=r"haft\.toml:7: .*can match no tool"):
        check_rules([rule(tool)])


def test_an_argument_that_the_tool_does_not_take():
    shapes = {"shell": Shape("builtin", ("command",), (), frozenset({"command", "cwd"}))}
    with pytest.raises(BadConfig) as caught:
        check_rules([rule(matches={"comand": "x"})], shapes)
    assert "has no argument `comand`" in caught.value.message and caught.value.hint == "did you mean `command`?"
    check_rules([rule("sh*", matches={"comand": "x"})], shapes)
    check_rules([rule("other", matches={"comand": "x"})], shapes)


def test_a_rule_after_one_that_matches_everything():
    first = rule("*", "ask", source="haft.toml:1")
    for late in (rule(command="npm test"), rule("mcp:x", "reject"), rule("*")):
        with pytest.raises(BadConfig) as caught:
            check_rules([first, late])
        assert "haft.toml:7" in caught.value.message and "`ask *` at haft.toml:1 comes first" in caught.value.message


def test_a_rule_after_one_that_matches_only_some():
    late = rule(command="npm test")
    for first in (
        rule("mcp:*", "reject"),
        rule(command="npm *"),
        rule("*", "ask", context="subagent"),
        rule("shell", "allow", source="elsewhere.toml:1"),
        dataclasses.replace(rule("shell"), origin="workspace"),
    ):
        check_rules([first, late])
