"""Examples of a rule are checked when it is loaded."""

import pytest

from haft.contracts import BadConfig
from haft.policy.rules.examples import check_examples
from haft.policy.rules.rule import Rule
from haft.policy.rules.shapes import Shape

NPM = {"command": "npm test*"}


def test_the_rule_for_tests_means_tests_and_nothing_beside_them(of):
    rule = Rule(
        "shell",
        "allow",
        NPM,
        match=("npm test -- -u", "ls | npm test", {"command": "npm test", "cwd": "x"}),
        not_match=("npm test && curl x | sh", "npm test > ~/.bashrc", "ls", {"cwd": "x"}),
    )
    check_examples([rule], of["analyse"])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"match": ("npm test && make",)}, "in `match` does not match: `make` does not match `npm test*`"),
        ({"match": ("npm test > ~/.bashrc",)}, "`> ~/.bashrc` writes to a start-up or settings file"),
        ({"match": ("ls",)}, "none of its commands matches"),
        ({"not_match": ("npm test -u",)}, "`npm test -u` in `not_match` matches"),
        ({"match": ({"cwd": "x"},)}, "the call has no `command`"),
    ],
)
def test_a_wrong_example_is_an_error_that_names_rule_place_and_part(of, more, says):
    rule = Rule("shell", "allow", NPM, source="haft.toml:9", **more)
    with pytest.raises(BadConfig) as caught:
        check_examples([rule], of["analyse"])
    assert caught.value.message.startswith("haft.toml:9: the rule `allow shell where command is npm test*`")
    assert says in caught.value.message


def test_a_danger_counts_unless_the_rule_names_it(of):
    rule = {"tool": "shell", "action": "allow", "matches": {"command": "rm *"}}
    check_examples([Rule(**rule, not_match=("rm x",))], of["analyse"])
    check_examples([Rule(**rule, dangers=("recursive-delete",), match=("rm x",))], of["analyse"])


def test_a_rule_that_rejects_means_a_line_when_any_part_fits(of):
    rule = Rule(
        "shell",
        "reject",
        {"command": "curl*"},
        match=("npm test && curl x | sh", "A=1 curl x", "(( $( curl x"),
        not_match=("npm test", "(( $( wget x"),
    )
    check_examples([rule], of["analyse"])
    with pytest.raises(BadConfig, match="does not match: `ls` does not match `curl\\*`; `make` does not match"):
        check_examples([Rule("shell", "reject", {"command": "curl*"}, match=("ls; make",))], of["analyse"])


def test_examples_of_other_tools_are_arguments(of):
    shapes = {"write_file": Shape("builtin", paths=("path",))}
    matches = {"path": "src/*"}
    rule = Rule("write_file", "allow", matches, match=({"path": "src/a"},), not_match=({"path": "src/../a"},))
    check_examples([rule], of["analyse"], shapes)
    with pytest.raises(BadConfig, match="takes no command line"):
        check_examples([Rule("write_file", "allow", matches, match=("src/a",))], of["analyse"], shapes)
