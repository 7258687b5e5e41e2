"""Which rule means a call."""

import pytest

from haft.policy.rules.matching import CallFacts, first_match, reject_unparsed, rule_mismatch
from haft.policy.rules.rule import Rule


def ask(**more):
    return CallFacts("shell", "builtin", {"command": "x", **more.pop("arguments", {})}, commands=("command",), **more)


def test_the_first_rule_that_fits_is_found_and_the_others_say_why_not(of):
    rules = [
        Rule("mcp:*", "reject"),
        Rule("shell", "allow", {"command": "npm *"}),
        Rule("shell", "allow", context="subagent"),
        Rule("*", "ask"),
        Rule("shell", "reject"),
    ]
    found = first_match(rules, ask(), of["command"]("make all"))
    assert found.rule is rules[3]
    assert [why for _, why in found.passed] == [
        "it is for `mcp:*`",
        "`make all` does not match `npm *`",
        "it is for sub-agents only",
    ]
    assert first_match(rules[:2], ask(), of["command"]("make all")).rule is None


def test_a_rule_without_a_word_on_the_command_fits_every_part(of):
    rule = Rule("shell", "allow")
    for part in (of["command"]("$X", program=None), of["redirection"](">", "~/.bashrc"), of["unread"]("$(")):
        assert rule_mismatch(rule, ask(), part) is None


def test_a_rule_that_speaks_of_a_command_needs_one():
    assert rule_mismatch(Rule("*", "allow", {"command": "*"}), ask()) is not None


def test_every_argument_must_fit_and_a_missing_one_does_not(of):
    rule = Rule("shell", "allow", {"command": "make*", "cwd": "src*"})
    part = of["command"]("make")
    assert rule_mismatch(rule, ask(), part) == "the call has no `cwd`"
    assert rule_mismatch(rule, ask(arguments={"cwd": "src/a"}), part) is None
    assert rule_mismatch(rule, ask(arguments={"cwd": "doc"}), part) == "`cwd` does not match `src*`"


@pytest.mark.parametrize(
    ("action", "written", "leads", "fits"),
    [
        ("allow", "src/x", "src/x", True),
        ("allow", "src/../etc/x", "etc/x", False),
        ("try", "src/link", "etc/x", False),
        ("allow", "etc/link", "src/x", True),
        ("allow", "src/x", None, False),
        ("allow", "src/x", "\0", False),
        ("reject", "src/link", "etc/x", True),
        ("ask", "etc/link", "src/x", True),
        ("delegate", "src/x", None, True),
        ("reject", "doc/x", "doc/x", False),
    ],
)
def test_a_path_is_allowed_by_where_it_leads_and_forbidden_by_either_name(action, written, leads, fits):
    rule = Rule("write_file", action, {"path": "src/*"})
    question = CallFacts("write_file", "builtin", {"path": written}, paths={"path": leads})
    assert (rule_mismatch(rule, question) is None) is fits
    if leads is None and action == "allow":
        assert rule_mismatch(Rule("*", "allow", {"path": "*"}), question) is not None


def test_a_rule_for_a_thread_or_a_definition_holds_for_no_other():
    assert rule_mismatch(Rule("*", "allow", thread="T-1"), ask(thread="T-1")) is None
    assert rule_mismatch(Rule("*", "allow", thread="T-1"), ask()) is not None
    assert rule_mismatch(Rule("*", "allow", pin="abc"), ask(pin="abc")) is None
    assert rule_mismatch(Rule("*", "allow", pin="abc"), ask(pin="abd")) is not None


def test_a_context_is_the_threads_or_the_sub_agents():
    assert rule_mismatch(Rule("*", "allow", context="thread"), ask()) is None
    assert rule_mismatch(Rule("*", "allow", context="thread"), ask(context="subagent")) == "it is not for sub-agents"


def test_in_a_line_that_was_not_understood_only_rules_that_reject_are_looked_for():
    allow = Rule("shell", "allow", {"command": "*"})
    other = Rule("shell", "reject", {"command": "mkfs*"})
    reject = Rule("shell", "reject", {"command": "rm -rf*"})
    everything = Rule("shell", "reject")
    line = "x $( ((; rm -rf /"
    assert reject_unparsed([allow, other, reject], ask(), line) is reject
    assert reject_unparsed([allow, other], ask(), line) is None
    assert reject_unparsed([everything], ask(), line) is everything
    assert reject_unparsed([Rule("shell", "reject", {"command": "rm*", "cwd": "a"})], ask(), line) is None
    assert reject_unparsed([Rule("mcp:*", "reject")], ask(), line) is None
