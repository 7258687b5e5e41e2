"""A virtual environment that a person has activated in the workspace: on the PATH of approved calls, as approved."""

import asyncio
import os
import sys

import pytest

from haft.files.activated_environment import activated_in
from haft.policy.approval.environments import Environments
from haft.sandbox.environment import safe_path
from haft.service import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is made of Linux"),
]


def program(path, words):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o755)
    return path


class Desk:
    """A workspace with an activated environment, and a person who is asked."""

    def __init__(self, base, monkeypatch):
        self.base, self.workspace, self.venv = base, base / "workspace", base / "workspace/.venv"
        self.venv.joinpath("lib/python3.12/site-packages").mkdir(parents=True)
        (self.venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
        self.mine = program(self.venv / "bin/mine", "echo of the environment, $VIRTUAL_ENV")
        program(base / "own/mine", "echo of the machine")
        program(base / "own/outer", "inner")
        program(base / "own/inner", "echo the real one")
        (base / "own").chmod(0o755)
        (self.venv / "bin/python").symlink_to("/usr/bin/env")
        self.rest = f"{base}/own:{os.environ['PATH']}"
        self.monkeypatch = monkeypatch
        self.activate()
        self.asked = []

    def activate(self):
        self.monkeypatch.setenv("PATH", f"{self.venv}/bin:{self.rest}")
        self.monkeypatch.setenv("VIRTUAL_ENV", str(self.venv))

    def deactivate(self):
        self.monkeypatch.setenv("PATH", self.rest)
        self.monkeypatch.delenv("VIRTUAL_ENV")

    def call(self, command, *patterns, approves=True, grant=None):
        """Run a line where rules allow what fits these patterns; what a person was asked is kept."""
        rules = [{"tool": "shell", "action": "allow", "matches": {"command": each}} for each in patterns]
        rules = [{**rule, "grant": grant} for rule in rules] if grant else rules
        return self.use("shell", {"command": command}, rules, approves=approves)

    def use(self, tool, arguments, rules, *, approves=True, grants=None, trial=False):
        self.asked.clear()

        async def approver(request):
            self.asked.append(request)
            return approves() if callable(approves) else approves

        async def main():
            async with ToolService.open(
                self.workspace,
                home=self.base / "state",
                installed=False,
                approver=approver,
                settings={"permissions": rules},
            ) as service:
                return await service.call(tool, arguments, grants=grants, trial=trial)

        return asyncio.run(main())


@pytest.fixture
def desk(tmp_path, monkeypatch):
    return Desk(tmp_path, monkeypatch)


def test_a_call_that_a_person_approved_finds_the_programs_of_the_environment(desk):
    assert desk.call("mine").output == f"of the environment, {desk.venv}\n"
    (request,) = desk.asked
    assert "`mine` is a program of the activated environment .venv" in request.reason
    assert "they hide other programs of this machine with the same names: `mine`" in request.reason


def test_so_does_a_program_that_the_approved_one_starts(desk):
    program(desk.venv / "bin/inner", "echo of the environment")
    assert desk.call("outer").output == "of the environment\n"
    (request,) = desk.asked
    assert "come first on its PATH" in request.reason and "`inner`" in request.reason


def test_a_call_that_nobody_approved_does_not(desk):
    outcome = desk.call('echo "$PATH"; which mine')
    assert desk.asked == [] and str(desk.venv) not in outcome.output and outcome.notes == ()


def test_under_a_rule_it_needs_approval_once_and_again_for_another_file_of_that_name(desk):
    assert desk.call("mine", "mine*", approves=False).status == "rejected-by-user"
    assert "nobody has approved them yet" in desk.asked[0].reason
    assert desk.call("mine", "mine*").output.startswith("of the environment")
    assert len(desk.asked) == 1
    assert desk.call("mine", "mine*").output.startswith("of the environment")
    assert desk.asked == []
    program(desk.mine, "echo something else")
    assert desk.call("mine", "mine*", approves=False).status == "rejected-by-user"
    assert "has changed since you approved it" in desk.asked[0].reason
    assert "+echo something else" in desk.asked[0].definition_diff


def test_a_program_that_an_agent_put_there_under_the_name_of_another_does_not_run_under_a_rule(desk):
    desk.call("mine", "mine*")
    program(desk.venv / "bin/git", "echo hijacked")
    outcome = desk.call("git commit -m x", "git *", approves=False)
    assert outcome.status == "rejected-by-user" and "`git`" in desk.asked[0].reason


def test_nor_when_a_program_that_a_rule_allows_starts_it_and_a_note_says_so(desk):
    program(desk.venv / "bin/inner", "echo hijacked")
    outcome = desk.call("outer", "outer*", approves=False)
    assert (outcome.output, desk.asked) == ("the real one\n", [])
    assert "was not on PATH" in outcome.notes[0] and str(desk.venv) in outcome.notes[0]


def test_once_approved_it_is_there_for_everything_that_rules_allow(desk):
    program(desk.venv / "bin/inner", "echo of the environment")
    desk.call("mine")
    outcome = desk.call("outer", "outer*", approves=False)
    assert (outcome.output, outcome.notes) == ("of the environment\n", ())


def test_a_program_that_is_replaced_while_a_person_is_asked_does_not_run(desk):
    def agreed():
        program(desk.mine, "echo hijacked")
        return True

    outcome = desk.call("mine", "mine*", approves=agreed)
    assert (outcome.status, outcome.error.code, outcome.output) == ("error", "conflict", "")


CHANGES = {
    "Python leads elsewhere": lambda venv: ((venv / "bin/python").unlink(), (venv / "bin/python").symlink_to("mine")),
    "the place of Python's library": lambda venv: (venv / "pyvenv.cfg").write_text("home = /tmp\n"),
    "code that Python runs at its start": lambda venv: (venv / "lib/python3.12/site-packages/x.pth").write_text(
        "import x\n"
    ),
    "a new program": lambda venv: program(venv / "bin/new", "echo new"),
    "hidden code that Python runs at its start": lambda venv: put(venv, ".x.pth"),
    "a compiled module": lambda venv: put(venv, "sitecustomize.pyc"),
    "a module in C": lambda venv: put(venv, "usercustomize.cpython-312-x86_64-linux-gnu.so"),
    "a package": lambda venv: put(venv, "sitecustomize/__init__.py"),
    "what Python keeps of a module": lambda venv: put(venv, "__pycache__/sitecustomize.cpython-312.pyc"),
    "a module beside programs": lambda venv: put(venv, "../../../bin/json/__init__.py"),
    "the libraries of the machine": lambda venv: put(venv, "../../../lib64/python3.12/site-packages/x.pth"),
}


def put(venv, name):
    path = venv / "lib/python3.12/site-packages" / name
    path = type(path)(os.path.normpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("import x\n")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_decides_which_code_runs_is_part_of_the_approval(change, desk):
    environments = Environments(str(desk.workspace), os.environ, safe_path)
    agreed = environments.current().pin
    assert environments.check(lambda: agreed, ["mine"], ["mine"], is_asked=False).reason is None
    change(desk.venv)
    held = environments.check(lambda: agreed, ["mine"], ["mine"], is_asked=False)
    assert "has changed since you approved it" in held.reason and held.difference


def test_a_link_out_of_the_workspace_is_held_by_what_is_there(desk):
    outside = program(desk.base.parent / "outside", "echo one")
    (desk.venv / "bin/fmt").symlink_to(outside)
    environments = Environments(str(desk.workspace), os.environ, safe_path)
    desk.monkeypatch.setattr("haft.files.activated_environment._PRIVATE", ())  # Tests themselves lie in /tmp.
    agreed = environments.current()
    program(outside, "echo two")
    changed = environments.current()
    assert agreed.pin.digest != changed.pin.digest and agreed.state != changed.state


@pytest.mark.parametrize("there", [True, False])
def test_an_environment_with_a_link_to_where_calls_have_files_of_their_own_is_not_honoured(there, desk):
    desk.monkeypatch.setenv("HOME", str(desk.base / "home"))
    cached = desk.base / "home/.cache/evil"
    if there:
        program(cached, "echo of the cache")
    (desk.venv / "bin/fmt").symlink_to(cached)
    outcome = desk.call("mine")
    assert outcome.output == "of the machine\n" and "was not on PATH" in outcome.notes[0]


def test_directories_beyond_number_are_not_honoured_either(desk):
    (desk.venv / "bin/a").symlink_to(".")
    (desk.venv / "bin/b").symlink_to(".")
    assert Environments(str(desk.workspace), os.environ, safe_path).current() is None


# What carries more than calls have.

GRANT = {"env": ["TEAM_TOKEN"]}


def test_a_rule_that_grants_something_runs_without_the_environment_that_was_approved(desk):
    desk.monkeypatch.setenv("TEAM_TOKEN", "tok-9f31c")
    program(desk.venv / "bin/inner", "echo hijacked")
    desk.call("mine")
    outcome = desk.call("outer", "outer*", approves=False, grant=GRANT)
    assert (outcome.output, desk.asked) == ("the real one\n", [])
    assert "grants that the programs there may not have" in outcome.notes[0]
    assert desk.call("outer", "outer*", approves=False).output == "hijacked\n", "without grants it is found"


def test_it_needs_approval_each_time_if_the_line_names_a_program_of_it(desk):
    desk.monkeypatch.setenv("TEAM_TOKEN", "tok-9f31c")
    desk.call("mine")
    assert desk.call("mine", "mine*", approves=False, grant=GRANT).status == "rejected-by-user"
    assert "a rule would grant it more than calls have" in desk.asked[0].reason
    for _ in range(2):
        assert desk.call("mine", "mine*", grant=GRANT).output.startswith("of the environment")
        assert len(desk.asked) == 1


def test_so_does_what_the_caller_brings(desk):
    desk.monkeypatch.setenv("TEAM_TOKEN", "tok-9f31c")
    program(desk.venv / "bin/inner", "echo hijacked")
    desk.call("mine")
    rule = {"tool": "shell", "action": "allow", "matches": {"command": "outer*"}}
    outcome = desk.use("shell", {"command": "outer"}, [rule], approves=False, grants=GRANT)
    assert outcome.output == "the real one\n"


def test_a_trial_run_before_approval_does_not_find_what_nobody_approved(desk):
    outcome = desk.use("shell", {"command": "mine; touch x"}, [], trial=True)
    assert (
        outcome.output == "of the machine\n"
        and "this is a trial run, and nobody has approved the call yet" in outcome.notes[0]
    )


NOTIFY = """#!/bin/sh
[ "$TOOLBOX_ACTION" = describe ] && { printf 'name: notify\\ndescription: Tells.\\n'; exit 0; }
inner
"""


def notify(folder):
    folder.mkdir(parents=True)
    (folder / "notify").write_text(NOTIFY)
    (folder / "notify").chmod(0o755)


@pytest.mark.parametrize("rule", [{"action": "allow"}, {"action": "allow", "grant": GRANT}, {"action": "ask"}])
def test_a_tool_that_lies_outside_of_the_workspace_never_finds_it(rule, desk):
    desk.monkeypatch.setenv("TEAM_TOKEN", "tok-9f31c")
    program(desk.venv / "bin/inner", "echo hijacked")
    notify(desk.base / "box")
    desk.monkeypatch.setenv("AMP_TOOLBOX", str(desk.base / "box"))
    desk.call("mine")
    outcome = desk.use("tb__notify", {}, [{"tool": "tb__notify", **rule}])
    assert (outcome.output, outcome.notes) == ("the real one\n", ())


def test_a_tool_of_the_workspace_finds_it_under_a_rule_that_grants_nothing(desk):
    desk.monkeypatch.setenv("TEAM_TOKEN", "tok-9f31c")
    program(desk.venv / "bin/inner", "echo of the environment")
    notify(desk.workspace / ".agents/tools")
    rule = {"tool": "tb__notify", "action": "allow"}
    assert desk.use("tb__notify", {}, [rule]).output == "of the environment\n"
    assert len(desk.asked) == 1
    assert desk.use("tb__notify", {}, [rule], approves=False).output == "of the environment\n"
    granting = {**rule, "grant": GRANT}
    assert desk.use("tb__notify", {}, [granting], approves=False).output == "the real one\n"


def test_an_approved_name_that_leads_elsewhere_now_needs_approval_once(desk):
    desk.call("mine", "mine*")
    desk.deactivate()
    assert desk.call("mine", "mine*", approves=False).status == "rejected-by-user"
    assert "was approved as .venv/bin/mine" in desk.asked[0].reason and "own/mine now" in desk.asked[0].reason
    assert desk.call("mine", "mine*").output == "of the machine\n"
    assert desk.call("mine", "mine*", approves=False).output == "of the machine\n"
    desk.activate()
    assert desk.call("mine", "mine*", approves=False).output.startswith("of the environment")


# Which environment it is.


def test_it_is_activated_where_its_programs_stand_first_or_it_is_named_and_they_are_on_path(tmp_path):
    place = tmp_path / "env"
    (place / "bin").mkdir(parents=True)
    programs = f"{place}/bin"
    workspace = str(tmp_path)
    assert activated_in(workspace, {"PATH": f"{programs}:/usr/bin"}) is None, "it is no environment"
    (place / "pyvenv.cfg").touch()
    assert activated_in(workspace, {"PATH": f"{programs}:/usr/bin"}) == str(place)
    assert activated_in(workspace, {"PATH": f"/usr/bin:{programs}"}) is None
    assert activated_in(workspace, {"PATH": f"/usr/bin:{programs}", "VIRTUAL_ENV": str(place)}) == str(place)
    assert activated_in(workspace, {"PATH": "/usr/bin", "VIRTUAL_ENV": str(place)}) is None
    assert activated_in("/elsewhere", {"PATH": f"{programs}:/usr/bin"}) is None
    (place / "bin").chmod(0o777)
    assert activated_in(workspace, {"PATH": f"{programs}:/usr/bin"}) is None
    (place / "bin").chmod(0o755)
    (tmp_path / "link").symlink_to("env")
    assert activated_in(workspace, {"PATH": f"{tmp_path}/link/bin:/usr/bin"}) is None
