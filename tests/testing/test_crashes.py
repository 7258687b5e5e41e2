"""What counts as a crash: the ends of real programs, some of which refuse their arguments properly."""

import asyncio
import shutil
import stat

import pytest

from haft.service import ToolService
from haft.testing.crashes import crash_of

PROGRAMS = {
    "python3": {
        "import json\njson.loads('{')": "JSONDecodeError in line 3",
        "def f():\n    return {}['a']\ntry:\n    f()\nexcept KeyError as error:\n    raise RuntimeError from error": (
            "RuntimeError in line 7"
        ),
        "import os\nos.kill(os.getpid(), 11)": "signal 11",
        "import sys\nsys.exit('no such path')": None,
        "print('Traceback')": None,
    },
    "bash": {
        "set -u\necho $missing": "unbound variable",
        "no-such-program": "command not found",
        "echo 'usage: x PATH' >&2; exit 2": None,
        "(exit 126)": "exit 126",
        "grep x /no/such/file": None,
        "kill -SEGV $$": "signal 11",
        "bash -c 'kill -ABRT $$'; exit $?": "signal 6",
        "exit 130": None,
    },
    "node": {"null.x": "TypeError", "process.exit(3)": None, "console.error('no such path'); process.exit(1)": None},
    "perl": {"use strict; my $x = 1 / 0;": "Illegal division", "print STDERR 'no such path'; exit 1;": None},
}
CASES = [(program, code) for program, codes in PROGRAMS.items() for code in codes]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Each program as a tool, called once."""
    folder = tmp_path_factory.mktemp("programs")
    workspace = folder / "workspace"
    workspace.mkdir()
    found = {}

    async def call_all():
        async with ToolService.open(workspace, home=folder / "home", approver=lambda _request: True) as service:
            for number, (program, code) in enumerate(CASES):
                if shutil.which(program) is None:
                    continue
                tool = workspace / f"t{number}"
                tool.write_text(f"#!/usr/bin/env {program}\n{code}\n")
                tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
                outcome = await service.call("shell", {"command": f"exec ./{tool.name}"})
                found[program, code] = outcome.to_json()

    asyncio.run(call_all())
    return found


@pytest.mark.parametrize(("program", "code"), CASES)
def test_crashes_are_told_from_refusals(outcomes, program, code):
    if (program, code) not in outcomes:
        pytest.skip(f"there is no {program} here")
    outcome = outcomes[program, code]
    assert crash_of(outcome) == PROGRAMS[program][code], outcome["stderr"]


def failed(stderr="", message="ValueError: bad", code="tool-failed", exit_code=None):
    error = {"code": code, "message": message, "hint": None, "retryable": False}
    return {"error": error, "stderr": stderr, "output": "", "exitCode": exit_code}


TRACEBACK = 'Traceback (most recent call last):\n  File "{}", line 7, in f\n    {}\nValueError: bad\n'


def test_a_function_refuses_by_raising_an_exception_itself():
    own, library = "/work/tool.py", "/usr/lib/python3.12/json/decoder.py"
    assert crash_of(failed(TRACEBACK.format(own, "raise ValueError('bad')"))) is None
    assert crash_of(failed(TRACEBACK.format(own, "int('x')"))) == "ValueError in line 7"
    assert crash_of(failed(TRACEBACK.format(library, "raise ValueError('bad')"))) == "ValueError in line 7"
    raised = failed(TRACEBACK.format(own, "raise ValueError('bad')"), exit_code=1)
    assert crash_of(raised) == "ValueError in line 7", "a program that nobody taught to print a message"


def test_servers_and_workers_that_end_have_crashed():
    assert crash_of(failed(message="the MCP server `x` exited 3 before it answered")) == "its process ended"
    assert crash_of(failed(message="the worker process of `x` exited 3 before it answered")) == "its process ended"
    assert crash_of(failed(message="`x` of the MCP server `y` failed: no such path")) is None
    assert crash_of(failed(code="invalid-arguments")) is None
    assert crash_of(failed(code="internal-error")) == "an error in haft itself"
    assert crash_of({"error": None}) is None
