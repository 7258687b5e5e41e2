"""`haft connect AGENT --hooks` with the real agents: what each does with its own tools is confined, recorded and can be
undone."""

import json

import pytest
from connected import ALLOW_ALL, Connected
from own_tools import AGENT_NAMES, edit, options, shell
from scripted_model import say

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
