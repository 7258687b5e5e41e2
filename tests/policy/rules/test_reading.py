"""From a file to rules, and what is said where it is wrong."""

import tomllib

import pytest

from haft.contracts import BadConfig, Grants
from haft.policy.rules.lines import rule_lines
from haft.policy.rules.reading import rules_from

WHOLE = """
[limits]
max_seconds = 5
# [[permissions]]
[[permissions]]
tool = "shell"
matches = {command = "npm test*"}
action = "allow"
grant = {network = true, env = ["CI"]}
dangers = ["recursive-delete"]
match = ["npm test -- -u"]
not_match = ["npm test && curl x | sh"]

  [[ permissions ]]
tool = "*"
action = "delegate"
to = "./ask"
context = "subagent"

[[permissions]]
tool = "mcp:*"
action = "reject"
message = '''
[[permissions]]
'''
matches = {a = [1, true, {b = "/x+/"}]}
"""


def read(text, source="haft.toml"):
    rules = tomllib.loads(text)["permissions"]
    return rules_from(rules, origin="workspace", source=source, lines=rule_lines(text, len(rules)))


def test_every_key_is_read_with_its_line():
    first, second, third = read(WHOLE)
    assert (first.tool, first.action, first.matches) == ("shell", "allow", {"command": "npm test*"})
    assert first.grant == Grants(network=True, env=("CI",)) and first.dangers == ("recursive-delete",)
    assert first.match == ("npm test -- -u",) and first.not_match == ("npm test && curl x | sh",)
    assert (second.action, second.to, second.context) == ("delegate", "./ask", "subagent")
    assert third.message == "[[permissions]]\n" and third.matches == {"a": (1, True, {"b": "/x+/"})}
    assert [rule.source for rule in (first, second, third)] == ["haft.toml:5", "haft.toml:14", "haft.toml:20"]
    assert {rule.origin for rule in (first, second, third)} == {"workspace"}


def test_rules_that_are_written_in_another_way_are_counted():
    text = 'permissions = [{tool = "a", action = "ask"}, {tool = "b", action = "ask"}]'
    assert [rule.source for rule in read(text)] == ["haft.toml, rule 1", "haft.toml, rule 2"]
    assert rule_lines("[['permissions']]", 1) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tool = 'a'", "a rule needs `action`"),
        ("action = 'ask'", "a rule needs `tool`"),
        ("tool = 'a'\naction = 'alow'", "no action `alow` did you mean `allow`?"),
        ("tool = 'a'\naction = 5", "no action `5`"),
        ("tool = 'a'\naction = 'ask'\ncontext = 'subagents'", "no context `subagents` did you mean `subagent`?"),
        ("tool = 'a'\naction = 'ask'\nmatchs = {}", "a rule has no key `matchs` did you mean `matches`?"),
        ("tool = 5\naction = 'ask'", "`tool` must be text"),
        ("tool = 'a'\naction = 'delegate'", "needs `to`"),
        ("tool = 'a'\naction = 'ask'\nto = 'x'", "`to` is for rules whose action is `delegate`"),
        ("tool = 'a'\naction = 'reject'\ngrant = {network = true}", "this rule's action is `reject`"),
        ("tool = 'a'\naction = 'allow'\ngrant = {net = true}", "there is no grant `net`"),
        ("tool = 'a'\naction = 'allow'\ndangers = ['recursive-deletes']", "did you mean `recursive-delete`?"),
        ("tool = 'a'\naction = 'allow'\ndangers = 'format'", "`dangers` must be a list"),
        ("tool = 'a'\naction = 'ask'\ndangers = ['format']", "`dangers` belongs to rules that allow or reject"),
        ("tool = 'a'\naction = 'reject'\nmessage = 5", "`message` must be text"),
        ("tool = 'a'\naction = 'ask'\nmatches = 'x'", "`matches` must be a table"),
        ("tool = 'a'\naction = 'ask'\nmatches = {a = []}", "`matches.a` is an empty list"),
        ("tool = 'a'\naction = 'ask'\nmatches = {a = {b = 1979-05-27}}", "`matches.a.b` must be"),
        ("tool = 'a'\naction = 'ask'\nmatches = {a = nan}", "`matches.a` must be"),
        (
            "tool = 'a'\naction = 'ask'\nmatches = {a = '/(/'}",
            "is not a regular expression that haft accepts: missing )",
        ),
        ("tool = 'a'\naction = 'ask'\nmatches = {a = '/(?=x)/'}", "look-around"),
        ("tool = 'a'\naction = 'ask'\nmatch = 'x'", "`match` must be a list"),
        ("tool = 'a'\naction = 'ask'\nmatch = {a = 'x'}", "conditions on arguments are called `matches`"),
        ("tool = 'a'\naction = 'ask'\nnot_match = [5]", "an example in `not_match`"),
    ],
)
def test_a_mistake_is_said_with_its_file_and_line_and_the_near_miss(text, says):
    with pytest.raises(BadConfig) as caught:
        read(f"\n\n[[permissions]]\n{text}\n")
    assert caught.value.message.startswith("haft.toml:3: ")
    assert says in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("value", [5, {"tool": "a"}, ["x"], [[]]])
def test_what_is_no_list_of_tables_is_no_rules(value):
    with pytest.raises(BadConfig, match=r"haft\.toml"):
        rules_from(value, origin="user", source="haft.toml")


def test_a_bottomless_matcher_is_an_error_and_no_crash():
    deep = "x"
    for _ in range(900):
        deep = [deep]
    with pytest.raises(BadConfig, match="too deeply"):
        rules_from([{"tool": "a", "action": "ask", "matches": {"a": deep}}], origin="user", source="x")
