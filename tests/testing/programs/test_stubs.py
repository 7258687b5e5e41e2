"""What program stubs do, and what is recorded of their calls."""

import asyncio
import os

import pytest

from haft.testing.programs import ProgramStubs
from haft.testing.reading import scenarios_from
from haft.testing.running import run_scenario
from haft.testing.scenarios.scenario import Programs, ProgramStub

pytestmark = pytest.mark.takes_turns


def shell(command, **more):
    return {"tool": "shell", "args": {"command": command}, **more}


def test_each_call_gets_the_next_answer_that_fits_and_the_last_one_repeats(passes):
    answers = [
        {"args": ["a"], "stdout": "first\n"},
        "any\n",
        {"args": ["a", "b"], "stdout": "third\n", "stderr": "!\n"},
    ]
    passes(
        **shell("x a b; x a b; x a b; x c; x a b", programs={"x": answers}),
        expect={"output": "first\nany\nthird\n!\nany\nthird\n!\n", "programs": [*["x a b"] * 3, "x c", "x a b"]},
    )


def test_a_stub_ends_as_it_is_told_and_writes_only_where_the_tool_may(passes, failures):
    passes(
        **shell("x; echo $?", programs={"x": {"exit": 3, "writes": {"made/deep.txt": "new\n"}, "seconds": 0.01}}),
        expect={"output": "3\n", "files": {"made/deep.txt": "new\n"}},
    )
    (message,) = failures(**shell("x", programs={"x": {"writes": {"/proc/none/file": "x"}}}))
    assert "x (stub): it cannot write /proc/none/file" in message


def test_arguments_stdin_directory_and_environment_are_recorded(passes):
    command = "mkdir d && cd d && printf 'a\\nb' | WORD=set x 'two words' --flag; cat <&- | x; x </dev/null"
    result = passes(
        **shell(command, programs={"x": {}}, env={"GIVEN": "by the scenario"}),
        expect={
            "files": {"d": {"kind": "directory"}},
            "programs": [
                {
                    "program": "x",
                    "args": ["two words", "--flag"],
                    "stdin": "a\nb",
                    "cwd": "d",
                    "env": {"WORD": "set", "GIVEN": "by the scenario", "NOT_GIVEN": None},
                },
                {"command": "x", "stdin": ""},
                {"command": "x", "stdin": ""},
            ],
        },
    )
    assert [each["program"] for each in result.program_calls] == ["x"] * 3


def test_a_wrong_stdin_directory_or_variable_is_a_mismatch(failures):
    call = {"program": "x", "stdin": "other", "cwd": "elsewhere", "env": {"GIVEN": "other"}}
    found = failures(**shell("echo a | x", programs={"x": {}}, env={"GIVEN": "a"}), expect={"programs": [call]})
    assert [each.splitlines()[0] for each in found] == [
        "Call of x: stdin mismatch:",
        "Call of x: working directory mismatch:",
        "Call of x: variable GIVEN mismatch:",
    ]


def test_the_calls_of_a_pipeline_have_the_order_of_the_data(passes):
    passes(**shell("c() { x c; }; x a | x b | c", programs={"x": "line\n"}), expect={"programs": ["x a", "x b", "x c"]})


def test_calls_at_the_same_time_are_all_recorded(run):  # More than can wait for answers at once.
    result = run(**shell("for i in $(seq 36); do x $i & done; wait", programs={"x": "."}))
    assert sorted(int(each["args"][0]) for each in result.program_calls) == list(range(1, 37))
    assert result.outcome["output"] == "." * 36


@pytest.mark.every_user
def test_a_stub_covers_the_program_wherever_it_is(passes, needs_sandbox):
    where = "PATH=/usr/bin:/bin id; env -i /usr/bin/id -u; command -p id -g"
    passes(
        **shell(where, programs={"id": "stub\n"}), expect={"output": "stub\n" * 3, "programs": ["id", "id -u", "id -g"]}
    )


def test_an_absolute_path_is_covered(passes):
    passes(
        **shell("/usr/bin/id; id", programs={"/usr/bin/id": "stub\n"}),
        expect={"output": "stub\nstub\n", "programs": ["/usr/bin/id", "/usr/bin/id"]},
    )


def test_an_absolute_path_without_a_program_is_an_error(failures):
    (message,) = failures(**shell("true", programs={"/usr/bin/no-such-program": {}}))
    assert "no program at /usr/bin/no-such-program can be stubbed" in message
    assert "hint: stub it by its name `no-such-program`" in message


def test_the_program_that_haft_starts_itself_cannot_be_stubbed(failures):
    (message,) = failures(**shell("true", programs={"/usr/bin/true": {}}))
    assert "`true` cannot be stubbed, because haft itself starts it in the sandbox" in message


def test_a_call_without_a_fitting_answer_fails_the_scenario_even_if_the_tool_ignores_it(failures):
    (message,) = failures(**shell("x push || true", programs={"x": {"args": ["pull"]}}))
    assert message == "Program stubs: the tool called `x push`, for which the scenario has no answer"


def test_without_the_sandbox_names_are_found_on_path_and_absolute_paths_are_skipped():
    def result(**data):
        (scenario,) = scenarios_from({**data, "settings": {"sandbox.mode": "off"}})
        return asyncio.run(run_scenario(scenario))

    found = result(**shell("x a", programs={"x": "stub\n"}), expect={"output": "stub\n", "programs": ["x a"]})
    assert found.passed, found.mismatches
    found = result(**shell("/usr/bin/id", programs={"/usr/bin/id": "stub\n"}))
    assert found.skipped == "the stub of /usr/bin/id needs the sandbox, which cannot be built: `sandbox.mode` is `off`"
    found = result(**shell("id", programs={"x": {}, "others": "refuse"}))
    assert found.skipped.startswith("`others: refuse` needs the sandbox, ")


def test_without_programs_nothing_is_made(tmp_path):
    with ProgramStubs(Programs(), str(tmp_path)) as stubs:
        assert (stubs.stand_ins, stubs.calls(), stubs.problems(), os.listdir(tmp_path)) == (None, (), (), [])
    with ProgramStubs(Programs((ProgramStub("x"),)), str(tmp_path)) as stubs:
        assert os.listdir(stubs.stand_ins.on_path(sandboxed=False)) == ["x"]
    assert os.listdir(tmp_path) == []
