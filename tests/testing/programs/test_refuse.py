"""With `others: refuse`, a tool starts only its stubs, itself and its interpreter."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from formats import write

pytestmark = pytest.mark.takes_turns

REFUSING = {"git": {}, "others": "refuse"}


def shell(command, **more):
    return {"tool": "shell", "args": {"command": command}, "programs": REFUSING, **more}


@pytest.mark.every_user
def test_other_programs_are_refused_wherever_they_are(passes):
    attempts = [
        "ls",
        "/usr/bin/ls",
        "./given",
        "cd /tmp; $OLDPWD/given",
        "exec -a git ls",
        "env -i git",
    ]
    command = "; ".join(f"({each}) 2>/dev/null; echo $?" for each in attempts)
    given = {"given": {"content": "#!/bin/bash\n", "mode": "755"}}
    passes(**shell(f"git; {command}", files=given), expect={"output": "126\n" * len(attempts)})


def test_the_tool_its_interpreter_and_what_is_called_real_run(passes, tmp_path):
    for form in ("amp-python", "bash-plugin", "python-plugin"):
        programs = {**REFUSING, "sh": "real"}  # For `shell=True` of Python.
        passes(
            tool=write(tmp_path, form), programs=programs, expect={"programs": ["git status --short", "git apply -"]}
        )
    programs = {**REFUSING, "/usr/bin/id": "real", "uname": "real"}
    passes(**shell("git; id -u; uname", programs=programs), expect={"programs": ["git"]})


def test_a_refused_program_is_an_error_that_names_it(failures, tmp_path):
    (message,) = failures(**shell("git && uname"))
    assert "uname: Permission denied" in message


@pytest.mark.parametrize("programs", [{"git": {}}, {"git": {}, "others": "allow"}])
def test_others_are_allowed_unless_the_scenario_says_so(passes, programs):
    passes(**shell("git; uname", programs=programs), expect={"programs": ["git"]})
