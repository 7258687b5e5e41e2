"""Wrappers as processes: the toolbox protocol around any program, with nothing but Python's own library."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from haft.authoring.toolbox.executables import in_a_docstring
from haft.authoring.toolbox.wrapper import pinned, wrap, wrapper
from haft.sources.cli.spec import read_spec

ECHO = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "word: $word"; done
sed 's/^/stdin: /'
echo "to the other side" >&2
"""
SPEC = """
program = "echoing"

[[commands]]
name = "say"
description = "Says what it is given."

[commands.parameters.text]
help = "What to say"

[commands.parameters.name]
option = "--name"
choices = ["a", "b"]

[commands.parameters.loud]
option = "--loud"
type = "boolean"

[commands.parameters.times]
option = "--times"
type = "integer"

[commands.parameters.tags]
option = "--tag"
many = true

[commands.parameters.input]
by = "stdin"
"""


def test_describe_says_what_it_takes_and_nothing_else(written, use):
    said = use(written(SPEC)["echoing-say"], action="describe")
    assert (said.returncode, said.stderr) == (0, "")
    assert json.loads(said.stdout) == {
        "name": "echoing-say",
        "description": "Says what it is given.",
        "args": {
            "text": ["string", "What to say. Required."],
            "name": ["string", "One of: a, b. Optional."],
            "loud": ["boolean", "Optional."],
            "times": ["integer", "Optional."],
            "tags": ["array", "Optional."],
            "input": ["string", "Optional."],
        },
    }


@pytest.mark.parametrize("action", [None, "perform"])
def test_another_action_is_answered_with_usage(written, use, action):
    said = use(written(SPEC)["echoing-say"], action=action)
    assert (said.returncode, said.stdout) == (2, "")
    assert "usage: TOOLBOX_ACTION=describe|execute" in said.stderr


def test_words_stdin_and_both_outputs_pass_through(written, use, program):
    program("echoing", ECHO)
    path = written(SPEC)["echoing-say"]
    said = use(path, {"text": "-x", "name": "b", "loud": True, "times": 2, "tags": ["a b", ""], "input": "in\nput\n"})
    assert said.stdout.splitlines() == [
        "word: say", "word: --name=b", "word: --loud", "word: --times=2", "word: --tag=a b", "word: --tag=",
        "word: --", "word: -x", "stdin: in", "stdin: put",
    ]  # fmt: skip
    assert (said.stderr, said.returncode) == ("to the other side\n", 0)


def test_stdin_is_empty_unless_a_parameter_is_mapped_to_it(written, use, program):
    program("echoing", ECHO)
    said = use(written(SPEC)["echoing-say"], {"text": "t"})
    assert said.stdout == "word: say\nword: --\nword: t\n"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("", "`text` is missing: What to say"),
        ({}, "`text` is missing: What to say"),
        ("{", "stdin is not valid JSON"),
        ("[" * 100_000, "stdin is not valid JSON"),
        ("[]", "the arguments must be one JSON object"),
        ({"text": "t", "txet": 1}, "there is no parameter `txet`; there are: text"),
        ({"text": "a\0b"}, "`text` has a NUL"),
        ({"text": "t", "name": "c"}, "`name` must be one of a, b, not `c`"),
    ],
)
def test_what_cannot_be_passed_is_refused_on_stderr(written, use, program, given, sentence):
    program("echoing", "#!/bin/sh\necho ran\n")
    said = use(written(SPEC)["echoing-say"], given)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("echoing-say: ") and sentence in said.stderr
    assert "it takes: text, [name], [loud]" in said.stderr and "Traceback" not in said.stderr


ENDS = """
program = "ending"
[[commands]]
name = "end"
words = []
end_of_options = ""
parameters.how = {}
"""


def test_the_exit_code_is_the_programs(written, use, program):
    program("ending", '#!/bin/sh\neval "$1"\n')
    path = written(ENDS)["ending-end"]
    assert use(path, {"how": "exit 7"}).returncode == 7
    assert use(path, {"how": "kill -KILL $$"}).returncode == 128 + signal.SIGKILL
    closed = subprocess.run(
        [path],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={"PATH": os.defpath, "TOOLBOX_ACTION": "execute"},
    )
    assert closed.returncode == 1 and "`how` is missing" in closed.stderr


def test_a_program_that_does_not_read_its_input_is_no_failure(written, use, program):
    program("echoing", "#!/bin/sh\nexec 0<&-\nexit 3\n")
    assert use(written(SPEC)["echoing-say"], {"text": "t", "input": "x" * 1_000_000}).returncode == 3


def test_who_ends_the_wrapper_ends_the_program(tmp_path, written, program, bin_, bare_path, eventually):
    program(
        "ending",
        f"#!/bin/sh\ntrap 'touch {tmp_path}/told; exit 5' TERM\ntouch {tmp_path}/begun\nwhile :; do sleep 0.05; done\n",
    )
    env = {"PATH": f"{bin_}:{bare_path}", "TOOLBOX_ACTION": "execute"}
    with subprocess.Popen([written(ENDS)["ending-end"]], stdin=subprocess.PIPE, env=env) as running:
        running.stdin.write(b'{"how": "x"}')
        running.stdin.close()
        eventually((tmp_path / "begun").exists)
        running.terminate()
        assert running.wait(60) == 5
    assert (tmp_path / "told").exists()


def test_a_program_that_is_not_there_is_named(written, use):
    said = use(written(SPEC)["echoing-say"], {"text": "t"})
    assert said.returncode == 127
    assert "`echoing` cannot be started" in said.stderr and "install `echoing`, or fix PATH" in said.stderr


def test_a_program_that_moved_is_found_and_a_pinned_one_is_not(tmp_path, use, program):
    where = program("echoing", "#!/bin/sh\necho first\n")
    commands = read_spec(SPEC, "spec.toml")
    (found,) = wrap(commands, str(tmp_path / "found"))
    (fixed,) = wrap(pinned(commands, str(where)), str(tmp_path / "fixed"))
    (tmp_path / "front").mkdir()
    program("echoing", "#!/bin/sh\necho old\n")
    (tmp_path / "front/echoing").write_text("#!/bin/sh\necho new\n")
    (tmp_path / "front/echoing").chmod(0o755)
    path = f"{tmp_path / 'front'}:/usr/bin:/bin"
    assert use(found.path, {"text": "t"}, PATH=path).stdout == "new\n"
    assert use(fixed.path, {"text": "t"}, PATH=path).stdout == "old\n"


def test_a_wrapper_needs_nothing_of_haft(written, use, program):
    program("echoing", ECHO)
    path = written(SPEC)["echoing-say"]
    said = use(path, {"text": "ü"}, front=[os.path.realpath(sys.executable), "-I", "-S"])
    assert (said.returncode, said.stdout.splitlines()[-1]) == (0, "word: ü")
    with open(path) as file:
        assert "haft." not in file.read().replace("`haft toolbox wrap`", "")


HOSTILE = 'ends \\"\\"\\" here \\\\ and\\n\\u0007 {braces} %s \\"\\"\\"'


def test_words_of_others_stay_words(written, use, program):
    program("echoing", ECHO)
    spec = SPEC.replace("Says what it is given.", HOSTILE).replace("What to say", HOSTILE)
    spec = spec.replace('program = "echoing"', 'program = ["echoing", "\\"\\"\\"\\\\"]')
    (path,) = written(spec).values()
    described = json.loads(use(path, action="describe").stdout)
    assert described["description"] == 'ends """ here \\ and\n\x07 {braces} %s """'
    assert described["args"]["text"][0] == "string"
    assert use(path, {"text": "t"}).stdout.splitlines()[0] == 'word: """\\'


@pytest.mark.parametrize("text", ['"""', "\\", 'x"', "\0", "\ud800", "a\r\nb", "\u2028", "x" * 500, "{x}"])
def test_whatever_a_description_holds_the_wrapper_is_python(text):
    (command,) = read_spec(SPEC, "spec.toml")
    wrapped = wrapper({**command, "description": text, "program": ["x", text.replace("\0", "")]})
    wrapped.encode()
    names: dict = {"__name__": "wrapped", "__file__": "/nowhere/wrapped"}
    exec(compile(wrapped, "wrapper", "exec"), names)
    assert names["COMMAND"]["description"] == text
    assert "\n" not in in_a_docstring(text) and len(in_a_docstring(text)) <= 110


GIT = """
program = "git"
end_of_options = "--end-of-options"

[[commands]]
name = "log"
parameters.revision = { default = "HEAD" }
parameters.paths = { many = true, lead = ["--"] }
parameters.number = { option = "--max-count", type = "integer" }
parameters.format = { option = "--format" }
parameters.grep = { option = "--grep", many = true }
parameters.author = { option = "--author" }

[[commands]]
name = "show"
parameters.object = {}
parameters.format = { option = "--format" }

[[commands]]
name = "status"
parameters.short = { option = "--short", type = "boolean" }
parameters.paths = { many = true, lead = ["--"] }

[[commands]]
name = "diff"
parameters.from = { default = "" }
parameters.paths = { many = true, lead = ["--"] }
parameters.names = { option = "--name-only", type = "boolean" }
parameters.context = { option = "-U", type = "integer" }
"""
ODD = ["two words", "quote \" and '", "-dash", "grüße 日本", "new\nline", "a=b", "tab\t"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")

    def git(*words):
        who = ["-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)

    git("init", "-b", "main")
    for number, name in enumerate(ODD):
        (folder / name).write_text(f"{number}\n")
        git("add", "--", name)
        git("commit", "-m", f"add {name}")
    for name in ODD:
        (folder / name).write_text("changed\n")
    return folder


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine")
def test_git_by_a_spec_file(repository, written, bare_path):
    paths = written(GIT)

    def git(name, **given):
        env = {"PATH": f"{os.path.dirname(shutil.which('git'))}:{bare_path}", "TOOLBOX_ACTION": "execute"}
        done = subprocess.run(
            [paths[f"git-{name}"]], input=json.dumps(given), capture_output=True, text=True, cwd=repository, env=env
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert git("log", number=1, format="%s|%an").strip() == "add tab|N"
    for name in ODD:
        assert git("log", paths=[name], format="%s").strip() == f"add {name}".replace("\n", " ").strip()
    assert git("log", grep=["add -dash", "add a=b"], format="%s").splitlines() == ["add a=b", "add -dash"]
    assert git("log", revision="HEAD~6", paths=["two words"], format="%s") == "add two words\n"
    assert git("log", author="--nobody") == ""
    assert "add -dash" in git("show", object="HEAD~4", format="%s")
    assert git("status", short=True, paths=["-dash"]) == " M -dash\n"
    assert git("diff", names=True, paths=["-dash", "a=b"]).splitlines() == ["-dash", "a=b"]
    assert git("diff", **{"from": "HEAD~1"}, names=True, paths=["two words"]) == "two words\n"
    assert "+changed" in git("diff", paths=["tab\t"], context=0)
    env = {"PATH": f"{os.path.dirname(shutil.which('git'))}:{bare_path}", "TOOLBOX_ACTION": "execute"}
    refused = subprocess.run(
        [paths["git-show"]], input='{"object": "--output=x"}', capture_output=True, text=True, cwd=repository, env=env
    )
    assert refused.returncode == 128 and not (repository / "x").exists(), "a value is never an option"


def test_what_lies_beside_a_wrapper_is_not_imported(tmp_path):
    (command,) = read_spec('program = "true"\n[[commands]]\nname = "x"\nwords = []\n', "spec.toml")
    path = tmp_path / "x"
    path.write_text(wrapper(command))
    (tmp_path / "json.py").write_text("print('hijacked')\n")
    env = {"PATH": os.environ["PATH"], "TOOLBOX_ACTION": "describe"}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, check=True)
    assert "hijacked" not in done.stdout + done.stderr and json.loads(done.stdout)["name"] == "true-x"
