"""With `others: refuse`, a tool starts only its stubs, itself and its interpreter."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from formats import write

REFUSING = {"git": {}, "others": "refuse"}


def shell(command, **more):
    return {"tool": "shell", "args": {"command": command}, "programs": REFUSING, **more}


def test_other_programs_are_refused_wherever_they_are(passes):
    attempts = {
        "by name": "ls",
        "by path": "/usr/bin/ls",
        "a copy in the workspace": "cat </usr/bin/ls >copy 2>/dev/null; ./copy",
        "a copy in /tmp": "while IFS= read -r line; do :; done </dev/null; printf '#!/bin/bash\\nls' >/tmp/a; /tmp/a",
        "through a link": "command ln -s /usr/bin/ls link; ./link",
        "through exec": "(exec -a git ls)",
    }
    for name, attempt in attempts.items():
        result = passes(**shell(f"git; {{ {attempt}; }} 2>/dev/null; echo $?"), expect={"only_changed": "any"})
        assert result.outcome["output"] in ("126\n", "127\n"), name


def test_the_tool_its_interpreter_and_what_is_called_real_run(passes, tmp_path):
    for form in ("amp-shell", "amp-python", "bash-plugin", "isolated-function"):
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
