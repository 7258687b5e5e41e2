"""`haft connect AGENT --hooks` with the real agents: what each does with its own tools is confined, recorded and can be
undone."""

import json
import subprocess
import time

import pytest
from connected import ALLOW_ALL, Connected
from own_tools import AGENT_NAMES, edit, options, shell

from haft.testing.scripted_model import say

PATIENCE = 240
REASON = "Leave pushing to me."
RULES = f"""[[permissions]]
tool = "shell"
matches = {{command = "git push*"}}
action = "reject"
message = "{REASON}"

{ALLOW_ALL}"""


class Session:
    """One session of an agent with its own tools."""

    def __init__(self, name, base, model):
        self.agent = Connected(name, base, model.url, "--hooks", rules=RULES)
        self.workspace = self.agent.workspace
        (self.workspace / ".gitignore").write_text("ignored.txt\n")
        (self.workspace / "ignored.txt").write_text("precious\n")
        (self.workspace / "note.txt").write_text("old\n")
        (self.workspace / "sub").mkdir()
        # Outside of everything that haft lets a command write.
        self.outside = base / "home" / "outside.txt"
        self.steps = {
            "rm": shell(name, "rm ignored.txt"),
            "both": shell(name, "echo to stdout; echo to stderr >&2; exit 4"),
            "pushed": shell(name, "git push --force"),
            "outside": shell(name, f'python3 -c \'open("{self.outside}", "w")\''),
            "cd": shell(name, "cd sub && pwd"),
            "pwd": shell(name, "pwd"),
            "quoted": shell(name, 'printf \'%s|\' "it\'s" \'$HOME\' "a\nb"; echo "$((1+1))"'),
        }
        edits = edit(name, self.workspace / "note.txt", "old", "new")
        prompt = model.task(*self.steps.values(), *edits, say("done"))
        self.done = self.agent.real.run(prompt, *self.agent.real.unattended, *options(name))
        results = model.results(prompt)
        assert len(results) == len(self.steps) + len(edits), (self.done, results)
        self.results = dict(zip(self.steps, results, strict=False))
        self.edited = results[-1]

    def run(self, command):
        """The run of a command of the agent's shell."""
        (found,) = [run for run in self.agent.runs() if (run["arguments"] or {}).get("command") == command]
        return found


@pytest.fixture(scope="module", params=AGENT_NAMES)
def session(request, tmp_path_factory, model):
    made = Session(request.param, tmp_path_factory.mktemp(request.param), model)
    yield made
    made.agent.end()


def test_rm_of_an_ignored_file_by_the_agents_own_shell_is_undone(session):
    path = session.workspace / "ignored.txt"
    assert not path.exists()
    run = session.run("rm ignored.txt")
    assert run["tool"] == "shell" and run["status"] == "done"
    session.agent.haft("undo", run["id"])
    assert path.read_text() == "precious\n"
    session.agent.haft("redo", run["id"])
    assert not path.exists()


def test_the_agents_own_edit_is_undone(session):
    path = session.workspace / "note.txt"
    assert path.read_text() == "new\n", session.edited
    name = session.agent.real.id
    edits = [
        run for run in session.agent.runs() if run["tool"].startswith(f"{name}:") and "note.txt" in json.dumps(run)
    ]
    session.agent.haft("undo", edits[-1]["id"])
    assert path.read_text() == "old\n"


def test_a_rejected_command_is_denied_with_the_reason_and_is_in_the_audit_log(session):
    assert REASON in session.results["pushed"]
    run = session.run("git push --force")
    assert run["status"].startswith("rejected")
    assert run["id"] in session.agent.audit()


def test_a_command_gets_both_streams_and_its_exit_status(session):
    words = session.results["both"]
    assert "to stdout" in words and "to stderr" in words
    # opencode tells the model no exit status.
    assert session.agent.real.id == "opencode" or "4" in words


def test_a_command_reaches_the_shell_as_the_model_wrote_it(session):
    assert "it's|$HOME|a\nb|2" in session.results["quoted"]


def test_a_command_cannot_write_outside_of_the_workspace(session):
    assert not session.outside.exists()


def test_the_working_directory_stays_where_the_agent_expects_it(session):
    assert session.results["cd"].rstrip().endswith("/sub") or "/sub\n" in session.results["cd"]
    follows = session.agent.real.id == "claude-code"
    assert (f"{session.workspace}/sub" in session.results["pwd"]) == follows


def test_all_runs_belong_to_the_agent_and_its_session(session):
    runs = [run for run in session.agent.runs() if run["tool"] not in ("undo", "redo")]
    assert {run["who"] for run in runs} == {session.agent.real.id}
    assert len({run["thread"] for run in runs}) == 1


def test_nothing_runs_on_after_the_agent_has_ended(session):
    assert session.agent.alone() == []


def answered(agent, prompt, name):
    """Run an agent without a terminal, and approve from the inbox what waits there. Returns the approved commands."""
    process = agent.real.start(prompt, *agent.real.unattended, *options(name))
    approved = {}
    end = time.monotonic() + PATIENCE
    while True:
        try:
            process.communicate(timeout=0.3)
            return list(approved.values())
        except subprocess.TimeoutExpired:
            assert time.monotonic() < end, "the agent did not end"
        for waiting in agent.waiting():
            if waiting["id"] not in approved:
                approved[waiting["id"]] = waiting["args"]["command"]
                agent.haft("approve", waiting["id"])


def outcome_of(agent, command):
    """The outcome of the run of a command."""
    (found,) = [run for run in agent.runs() if (run["arguments"] or {}).get("command") == command]
    return json.loads(agent.haft("show", found["id"], "--json"))["outcome"]


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_call_that_needs_approval_is_answered_from_the_inbox_and_runs(name, tmp_path, model):
    agent = Connected(name, tmp_path, model.url, "--hooks", rules="", patience=900)
    try:
        prompt = model.task(shell(name, "echo first"), shell(name, "touch asked"), say("done"))
        assert answered(agent, prompt, name) == ["touch asked"]
        assert (agent.workspace / "asked").exists(), model.results(prompt)
        outcome = outcome_of(agent, "touch asked")
        assert (outcome["status"], outcome["decision"]["by"]) == ("done", "person")
    finally:
        agent.end()


@pytest.mark.parametrize("name", ["claude-code", "opencode"])
def test_the_agents_own_time_limit_ends_a_command(name, tmp_path, model):
    agent = Connected(name, tmp_path, model.url, "--hooks")
    slow = "echo begun; sleep 300"
    try:
        # haft ends the command a second before the agent would. The first command starts haft's helper.
        prompt = model.task(shell(name, "echo first"), shell(name, slow, timeout=10_000), say("done"))
        agent.real.run(prompt, *agent.real.unattended, *options(name))
        assert outcome_of(agent, slow)["error"]["code"] == "timed-out"
        result = model.results(prompt)[-1]
        assert "begun" in result and "did not end within" in result, result
        assert agent.alone() == []
    finally:
        agent.end()


@pytest.mark.parametrize("name", ["claude-code", "gemini"])
def test_a_command_in_the_background_is_recorded_as_incomplete_and_undone(name, tmp_path, model):
    agent = Connected(name, tmp_path, model.url, "--hooks")
    more = {"run_in_background": True} if name == "claude-code" else {"is_background": True}
    command = "echo made > made; while [ ! -e go ]; do sleep 0.1; done"

    def ended():
        """A step that comes after the command has ended."""
        (agent.workspace / "go").touch()
        end = time.monotonic() + PATIENCE
        while outcome_of(agent, command) is None:
            assert time.monotonic() < end, "the command did not end"
            time.sleep(0.3)
        return shell(name, "cat made")

    try:
        prompt = model.task(shell(name, command, **more), ended, say("done"))
        agent.real.run(prompt, *agent.real.unattended, *options(name))
        assert "made" in model.results(prompt)[-1]
        outcome = outcome_of(agent, command)
        assert (outcome["changes"]["state"], outcome["changes"]["complete"]) == ("committed", False)
        (run,) = [run for run in agent.runs() if (run["arguments"] or {}).get("command") == command]
        agent.haft("undo", run["id"])
        assert not (agent.workspace / "made").exists()
    finally:
        agent.end()
