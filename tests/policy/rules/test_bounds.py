"""What a file of rules may not do: cost too much before the first call, or leave a decision to the workspace."""

import pytest

from haft.config.files import ConfigFile
from haft.contracts import BadConfig
from haft.policy.rules.reading import MOST_REGEXES, MOST_RULES, rules_from


def test_too_many_rules_and_regular_expressions_are_refused():
    many = [{"tool": f"t{number}", "action": "ask"} for number in range(MOST_RULES + 1)]
    with pytest.raises(BadConfig, match="rules"):
        rules_from(many, origin="workspace", source="haft.toml")
    regexes = {"tool": "t", "action": "ask", "matches": {"a": [f"/{number}/" for number in range(MOST_REGEXES + 1)]}}
    with pytest.raises(BadConfig, match="regular expressions"):
        rules_from([regexes], origin="workspace", source="haft.toml")


def test_a_key_with_thousands_of_dots_is_refused_without_parsing():
    file = ConfigFile("haft.toml", b".".join([b"a"] * 20_000) + b" = 1\n", "haft.toml")
    with pytest.raises(BadConfig, match="too many dots"):
        list(file.settings())


@pytest.mark.parametrize("origin", ["user", "caller"])
def test_a_delegate_is_not_looked_for_in_the_workspace(origin):
    rule = {"tool": "shell", "action": "delegate", "to": "bin/check"}
    with pytest.raises(BadConfig, match="absolute path"):
        rules_from([rule], origin=origin, source="haft.toml")
    for to in ("/usr/bin/check", "~/bin/check", "check"):
        assert rules_from([{**rule, "to": to}], origin=origin, source="haft.toml")[0].to == to
