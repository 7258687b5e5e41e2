"""Stubs that call the real program, and record what it answers."""

import asyncio

import pytest

from haft.testing.reading import scenarios_from
from haft.testing.running import run_scenario
from haft.testing.scenarios.scenario import Programs, ProgramStub
from haft.values import replace

pytestmark = pytest.mark.takes_turns


@pytest.mark.every_user
def test_the_real_program_answers_and_its_answers_are_recorded():
    command = (
        "printf 'b\\na\\n' | sort -; sort missing.txt; sort -o made.txt given.txt; echo end >>made.txt; sort given.txt"
    )
    (scenario,) = scenarios_from(
        {"tool": "shell", "args": {"command": command}, "files": {"given.txt": "2\n1\n"}, "expect": {"files": {}}}
    )
    stub = ProgramStub("sort", records=True)
    result = asyncio.run(run_scenario(replace(scenario, programs=Programs((stub,)))))
    assert result.outcome["stdout" if "stdout" in result.outcome else "output"].startswith("a\nb\n")
    piped, failed, wrote, printed = result.program_calls
    assert (piped["args"], piped["stdin"], piped["answer"]["stdout"]) == (["-"], "b\na\n", "a\nb\n")
    assert failed["answer"]["exit"] == 2
    assert "missing.txt" in failed["answer"]["stderr"]
    assert (wrote["answer"]["stdout"], wrote["answer"]["writes"]) == ("", {"made.txt": "1\n2\n"})
    assert (printed["answer"]["stdout"], printed["answer"]["writes"]) == ("1\n2\n", {})


@pytest.mark.parametrize("command", ["seq 100000 | wc -l", "seq 100000 | wc --version >out; seq 100000 | cat | wc -l"])
def test_long_input_reaches_the_real_program_whole(command):
    (scenario,) = scenarios_from(
        {"tool": "shell", "args": {"command": command}, "expect": {"output": "100000\n", "only_changed": ["out"]}}
    )
    stub = ProgramStub("cat", records=True), ProgramStub("wc", records=True)
    result = asyncio.run(run_scenario(replace(scenario, programs=Programs(stub))))
    assert result.mismatches == ()
