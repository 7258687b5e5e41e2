"""The agent's own rules with `haft connect AGENT --hooks`: they meet the original command, and an answer "always" in
the agent's own prompt covers no other command. haft itself allows everything here."""

import json

import pytest
from connected import Connected
from own_tools import AGENT_NAMES, options, shell
from terminal import Terminal

from haft.testing.scripted_model import say

DENIED = (
    "touch denied",
    "cd . && touch denied",
    'for i in 1; do touch denied "$i"; done | cat',
    "echo $(touch denied)",
)
ASKED = "touch asked"
ALLOWED = "touch allowed"


def claude(agent, denies, asks, allows, default):
    def add(found):
        rules = found.setdefault("permissions", {})
        for name, words in (("deny", denies), ("ask", asks), ("allow", allows)):
            rules[name] = [*rules.get(name, []), *(f"Bash({each}:*)" for each in words)]

    agent.edit(agent.home / ".claude" / "settings.json", add)


def codex(agent, denies, asks, allows, default):
    path = agent.home / ".codex" / "rules" / "default.rules"
    path.parent.mkdir(parents=True, exist_ok=True)
    rules = [("forbidden", each) for each in denies] + [("prompt", each) for each in asks]
    rules += [("allow", each) for each in allows]
    path.write_text("".join(f'prefix_rule(pattern={json.dumps(each.split())}, decision="{d}")\n' for d, each in rules))


def opencode(agent, denies, asks, allows, default):
    def add(found):
        old = found.get("permission", {}).get("bash", {})
        own = {
            f"{each}*": name for name, words in (("allow", allows), ("ask", asks), ("deny", denies)) for each in words
        }
        found["permission"] = {"bash": {"*": default, **own, **old}}

    agent.edit(agent.settings, add)


def gemini(agent, denies, asks, allows, default):
    path = agent.home / ".gemini" / "policies" / "own.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    rules = [("deny", 900, each) for each in denies] + [("ask_user", 800, each) for each in asks]
    rules += [("allow", 700, each) for each in allows]
    form = '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "{}"\ndecision = "{}"\npriority = {}\n'
    path.write_text("".join(form.format(each, name, number) for name, number, each in rules))


WRITE = {"claude-code": claude, "codex": codex, "opencode": opencode, "gemini": gemini}


def set_rules(agent, *, denies=(), asks=(), allows=(), default="allow"):
    """Give an agent rules of its own for shell commands that begin with these words."""
    WRITE[agent.id](agent, denies, asks, allows, default)


class Session:
    """One session of an agent without a terminal: what became of some commands."""

    def __init__(self, name, base, model, commands, unattended=None, **rules):
        self.agent = Connected(name, base, model.url, "--hooks")
        real = self.agent.real
        set_rules(real, **rules)
        prompt = model.task(*(shell(name, command) for command in commands), say("done"))
        self.done = real.run(prompt, *(real.unattended if unattended is None else unattended), *options(name))
        self.results = model.results(prompt)

    def has(self, name):
        """Whether a command made this file."""
        return (self.agent.workspace / name).exists()

    def run(self, command):
        """The run of a command."""
        (found,) = [each for each in self.agent.runs() if (each["arguments"] or {}).get("command") == command]
        return json.loads(self.agent.haft("show", found["id"], "--json"))["outcome"]


@pytest.fixture(scope="module", params=AGENT_NAMES)
def session(request, tmp_path_factory, model):
    base = tmp_path_factory.mktemp(request.param)
    # The last one, because opencode ends where it would have to ask.
    commands = (*DENIED, "touch fine", ASKED)
    made = Session(request.param, base, model, commands, denies=["touch denied"], asks=[ASKED])
    yield made
    made.agent.end()


def test_its_own_rule_stops_the_command_also_in_lists_loops_and_substitutions(session):
    assert not session.has("denied"), session.results
    for command in DENIED:
        outcome = session.run(command)
        assert outcome["error"]["code"] == "not-covered", outcome


def test_a_command_that_its_own_rules_do_not_name_runs(session):
    assert session.has("fine"), session.results


def test_its_own_rule_that_asks_runs_nothing_where_nobody_is_asked(session):
    assert not session.has("asked"), session.results


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_without_a_rule_of_its_own_the_command_runs(name, tmp_path, model):
    session = Session(name, tmp_path, model, ["touch denied", ASKED])
    try:
        assert session.has("denied") and session.has("asked"), session.results
    finally:
        session.agent.end()


ASKING = {"opencode": [], "gemini": ["--approval-mode", "default"]}
"""The options with which agents ask about what their rules do not allow. Without a terminal, they deny it."""


@pytest.mark.parametrize("name", ASKING)
def test_its_own_rule_that_allows_is_enough_and_others_ask(name, tmp_path, model):
    commands = [ALLOWED, f"{ALLOWED} 'a b' | {ALLOWED} c", "touch other"]
    session = Session(name, tmp_path, model, commands, ASKING[name], allows=[ALLOWED], default="ask")
    try:
        assert session.has("allowed") and session.has("a b") and session.has("c"), session.results
        assert not session.has("other"), session.results
    finally:
        session.agent.end()


@pytest.mark.parametrize("name", ASKING)
def test_its_rule_for_hafts_program_allows_nothing_that_haft_cannot_show(name, tmp_path, model):
    session = Session(name, tmp_path, model, ["> made"], ASKING[name], allows=[ALLOWED], default="ask")
    try:
        assert not session.has("made"), session.results
        assert session.run("> made")["error"]["code"] == "not-covered"
    finally:
        session.agent.end()


ALWAYS = {
    "claude-code": ("Do you want to proceed?", ()),
    "codex": ("Would you like to run", ("p",)),
    "opencode": ("Allow always", ("Right", "Enter", "Enter")),
    "gemini": ("Allow for this session", ("2",)),
}
"""What the agent's question says, and the keys of its answer that covers later commands."""


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_after_its_answer_always_it_asks_again_about_another_command(name, tmp_path, model):
    agent = Connected(name, tmp_path, model.url, "--hooks")
    # Codex offers such an answer only for commands that leave its sandbox.
    more = {"sandbox_permissions": "require_escalated", "justification": "because"} if name == "codex" else {}
    set_rules(agent.real, asks=["touch", "rm"] if name == "claude-code" else [], default="ask")
    steps = [shell(name, command, **more) for command in ("touch one", "rm -f one")]
    prompt = model.task(*steps, say("all is done"))
    asking = {"claude-code": ("--permission-mode", "default"), "codex": ("-a", "on-request")}.get(name, ())
    question, keys = ALWAYS[name]
    try:
        words = [*agent.real.command, *agent.real.words(prompt), *asking]
        with Terminal(tmp_path, words, agent.workspace, agent.real.env) as terminal:
            screen = terminal.until(question)
            if name == "claude-code":
                assert "ask again" not in screen, "an answer for all such commands would cover other commands"
                terminal.press("Enter")
            for key in keys:
                terminal.press(key)
                if key == "Right":
                    terminal.until("Allow always")
                if (name, key) == ("opencode", "Enter"):
                    terminal.until("Confirm", "rm -f one")
            terminal.until("rm -f one")
            screen = terminal.until(question)
            assert (agent.workspace / "one").exists(), screen
        if name == "claude-code":
            pytest.skip("it offers no such answer, and asks about each command")
    finally:
        agent.end()
