"""Command lines that a configuration offers as tools: described by a file, or asked of the program itself."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haft.config.files import workspace_config
from haft.config.trust_store import trust
from haft.sources.cli import introspect
from haft.testing import ToolBench

PROGRAMS = Path(__file__).parents[1] / "sources/cli/programs"
GIT = """
program = "git"
[[commands]]
name = "status"
description = "What has changed."
readonly = true
parameters.short = { option = "--short", type = "boolean" }
[[commands]]
name = "tag"
parameters.name = { required = true }
parameters.message = { option = "--message" }
"""


class Places:
    """A workspace, a state home, and a user's configuration."""

    def __init__(self, place):
        self.workspace, self.home, self.config = place / "workspace", place / "state", place / "config/haft"
        self.workspace.mkdir()
        self.config.mkdir(parents=True)
        self._open = []

    def user(self, text):
        (self.config / "haft.toml").write_text(text)

    def own(self, text, *, trusted=True):
        (self.workspace / "haft.toml").write_text(text)
        if trusted:
            trust(str(self.home), str(self.workspace), workspace_config(str(self.workspace)), "me")

    def bench(self):
        self._open.append(ToolBench(self.workspace, self.home, environ=os.environ))
        return self._open[-1]

    def found(self):
        """What a fresh service lists of command lines."""
        with self.bench() as bench:
            return {name: one for name, one in bench.tools().items() if one.spec.kind == "cli"}

    def close(self):
        for one in self._open:
            one.close()


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = Places(tmp_path.resolve())
    yield made
    made.close()


@pytest.fixture
def repository(places):
    who = ["-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=places.workspace, check=True)
    (places.workspace / "a file").write_text("")
    return places


def test_commands_of_a_file_are_tools(repository):
    repository.user('[cli.git]\nspec = "./git.toml"\n')
    (repository.config / "git.toml").write_text(GIT)
    bench = repository.bench()
    status, tag = bench.tools()["git-status"], bench.tools()["git-tag"]
    assert (status.state, status.spec.kind, status.spec.provenance) == ("ready", "cli", "user")
    assert (status.spec.description, status.spec.effects.readonly) == ("What has changed.", True)
    assert status.spec.origin == str(repository.config / "git.toml")
    assert tag.spec.input_schema["required"] == ["name"] and not tag.spec.effects.readonly
    outcome = bench.call("git-status", short=True)
    assert (outcome.status, outcome.output, outcome.exit_code) == ("done", '?? "a file"\n', 0)
    assert [request.tool for request in bench.asked] == ["git-status"]


def test_a_failure_has_the_programs_exit_code_and_words(repository):
    repository.user('[cli.git]\nspec = "./git.toml"\nprefix = "g_"\n')
    (repository.config / "git.toml").write_text(GIT)
    bench = repository.bench()
    outcome = bench.call("g_tag", name="--delete")
    assert (outcome.status, outcome.exit_code) == ("error", 128)
    assert "'--delete' is not a valid tag name" in outcome.output
    assert outcome.error.message == "`g_tag` exited 128: fatal: '--delete' is not a valid tag name."
    assert len(bench.asked) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [({}, "name"), ({"name": "a\0b"}, "has a NUL"), ({"name": "a", "nmae": "b"}, "nmae")],
)
def test_what_cannot_be_passed_is_refused_before_anyone_is_asked(repository, arguments, sentence):
    repository.user('[cli.git]\nspec = "./git.toml"\n')
    (repository.config / "git.toml").write_text(GIT)
    bench = repository.bench()
    outcome = bench.call("git-tag", **arguments)
    assert (outcome.status, outcome.error.code) == ("error", "invalid-arguments")
    assert sentence in outcome.error.message + json.dumps(outcome.error.to_json())
    assert bench.asked == []


def test_a_file_that_changed_is_seen_at_the_next_call(repository):
    repository.user('[cli.git]\nspec = "./git.toml"\n')
    spec = repository.config / "git.toml"
    spec.write_text(GIT)
    bench = repository.bench()
    assert bench.call("git-status").status == "done"
    spec.write_text(GIT.replace('"--short"', '"--porcelain"').replace("What has changed.", "What is new."))
    outcome = bench.call("git-status", short=True)
    assert (outcome.status, outcome.output) == ("done", '?? "a file"\n')
    assert "--porcelain" in bench.asked[1].definition_diff, "it is not what was approved"
    assert bench.tools()["git-status"].spec.description == "What is new."
    spec.write_text("program = 5")
    assert bench.call("git-status").status == "error"
    assert bench.tools()["git"].state == "broken"


def test_what_a_workspace_says_of_itself_counts_when_it_is_trusted(repository):
    (repository.workspace / "git.toml").write_text(GIT)
    repository.own('[cli.git]\nspec = "./git.toml"\n', trusted=False)
    assert repository.found() == {}
    repository.own('[cli.git]\nspec = "./git.toml"\n')
    status = repository.found()["git-status"]
    assert (status.state, status.spec.provenance) == ("ready", "workspace")
    assert not status.spec.effects.readonly, "a file that anyone may change promises nothing"


@pytest.mark.parametrize(
    ("library", "name"),
    [("click", "click_echo:main"), ("argparse", "argparse_echo:build"), ("click", "typer_echo:app")],
)
def test_a_program_is_asked_what_its_commands_are(places, library, name):
    module = name.partition(":")[0]
    shutil.copy(PROGRAMS / f"{module}.py", places.workspace)
    places.own(f'[cli.echo]\n{library} = "{name}"\npython = "{sys.executable}"\nprefix = "e-"\n')
    bench = places.bench()
    assert bench.tools()["e-say"].state == "ready" and "e-remote-add" in bench.tools()
    given = {"text": "-x", "rest": ["", "a b\n"], "tag": ["ü"], "times": 4, "loud": False, "level": 2}
    more = {"key": "k"} if library == "argparse" else {}
    outcome = bench.call("e-say", **given, **more)
    assert outcome.status == "done", outcome
    got = json.loads(outcome.output)
    assert {key: got[key] for key in given} == given


def test_an_answer_is_kept_and_a_failure_is_not(places, monkeypatch):
    (places.workspace / "late.py").write_text("raise RuntimeError('not yet')\n")
    places.own(f'[cli.late]\nclick = "late:main"\npython = "{sys.executable}"\n')
    broken = places.found()["late"]
    assert broken.state == "broken" and "`late` cannot be imported: RuntimeError: not yet" in broken.reason
    (places.workspace / "late.py").write_text("import click\n\n\n@click.command()\ndef main():\n    pass\n")
    assert places.found()["late"].state == "ready", "it is asked again by whoever comes next"
    monkeypatch.setattr(introspect, "PROGRAM", "/nowhere")
    assert places.found()["late"].state == "ready", "what it said is known"


def test_a_program_whose_modules_changed_is_asked_again(places):
    (places.workspace / "app").mkdir()
    (places.workspace / "app/__init__.py").write_text("")
    (places.workspace / "app/parts.py").write_text("NAMES = ['one']\n")
    (places.workspace / "app/cli.py").write_text(
        "import click\nfrom app.parts import NAMES\nmain = click.Group('main')\n"
        "for name in NAMES:\n    main.add_command(click.Command(name, callback=lambda: print('called')))\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    places.own(f'[cli.app]\nclick = "app.cli:main"\npython = "{sys.executable}"\nprefix = ""\n')
    bench = places.bench()
    assert bench.call("one").output == "called\n"
    (places.workspace / "app/parts.py").write_text("NAMES = ['one', 'two']\n")
    assert bench.call("one").status == "done"
    assert bench.call("two").output == "called\n"


def test_a_program_that_hangs_is_given_up(places, monkeypatch):
    monkeypatch.setattr(introspect, "SECONDS", 0.5)
    (places.workspace / "slow.py").write_text("import time\ntime.sleep(1000)\n")
    places.own(f'[cli.slow]\nclick = "slow:main"\npython = "{sys.executable}"\n')
    slow = places.found()["slow"]
    assert slow.state == "broken" and "it did not answer within 0.5 s" in slow.reason


def test_what_a_clone_brings_does_not_answer_for_what_a_person_means(places):
    (places.workspace / "cdd").mkdir()
    (places.workspace / "cdd/__init__.py").write_text("raise SystemExit('the clone was asked')\n")
    (places.workspace / "nobody.py").write_text("import click\nmain = click.Command('x', callback=print)\n")
    python = sys.executable
    places.user(f'[cli.cdd]\nclick = "cdd.cli:main"\npython = "{python}"\n[cli.no]\nclick = "nobody:main"\n')
    found = places.found()
    assert found["cdd-start"].state == "ready"
    assert found["no"].state == "broken" and "No module named 'nobody'" in found["no"].reason


def test_a_spec_that_is_no_file_is_not_waited_for(places):
    os.mkfifo(places.workspace / "spec.toml")
    places.own('[cli.x]\nspec = "./spec.toml"\n')
    assert "it is not a regular file" in places.found()["x"].reason


WRONG = [
    ('spec = "./none.toml"', "none.toml cannot be read"),
    ('spec = "./broken.toml"', "broken.toml: the file has no `comands`"),
    ('spce = "./git.toml"', "[cli.x] in {file} has no `spce`; did you mean `spec`?"),
    ('clik = "a:b"', "has no `clik`; did you mean `click`?"),
    ('spec = "./git.toml"\nclick = "a:b"', "[cli.x] in {file} needs one of `spec`, `click` and `argparse`"),
    ('python = "python3"', "needs one of `spec`, `click` and `argparse`"),
    ("spec = 5", "[cli.x] in {file} has a value that is not a text"),
    ('click = "a:b"\nprogram = [5]', "has a value that is not a text"),
    ('click = "a:b"\nprogram = true', "has a value that is not a text"),
    ('click = "nothing"', "`nothing` names no object of a module"),
    ('click = "no_such_module:main"', "`no_such_module` cannot be imported"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_listed_as_broken_and_harms_nothing_else(places, text, sentence):
    (places.config / "broken.toml").write_text('program = "x"\ncomands = []\n')
    (places.config / "git.toml").write_text(GIT)
    places.user(f'[cli.x]\n{text}\n[cli.git]\nspec = "./git.toml"\n')
    found = places.found()
    assert found["git-status"].state == "ready"
    assert found["x"].state == "broken"
    assert sentence.format(file=places.config / "haft.toml") in found["x"].reason


def test_a_program_that_is_not_there_fails_when_it_is_called(places):
    (places.config / "x.toml").write_text('program = "no-such-program"\n[[commands]]\nname = "go"\n')
    places.user('[cli.x]\nspec = "./x.toml"\n')
    outcome = places.bench().call("no-such-program-go")
    assert outcome.status == "error" and "no-such-program" in outcome.error.message


def test_an_input_is_given_and_absent_it_is_empty(places):
    (places.config / "x.toml").write_text(
        'program = "cat"\n[[commands]]\nname = "it"\nwords = []\nparameters.text = { by = "stdin" }\n'
    )
    places.user('[cli.x]\nspec = "./x.toml"\n')
    bench = places.bench()
    assert bench.call("cat-it", text="ü\n-").output == "ü\n-"
    assert bench.call("cat-it").output == ""


def test_what_a_command_changes_can_be_undone(places):
    (places.config / "x.toml").write_text(
        'program = "touch"\n[[commands]]\nname = "it"\nwords = []\nparameters.path = {}\n'
    )
    places.user('[cli.x]\nspec = "./x.toml"\n')
    bench = places.bench()
    assert bench.call("touch-it", path="-made").status == "done"
    assert os.listdir(places.workspace) == ["-made"]
    assert bench.service.undo(bench.service.runs()[0].id).wait().status == "done"
    assert os.listdir(places.workspace) == []
