"""What a tool can do about the records of its calls, in the sandbox and without it."""

import asyncio
import os

import pytest

from haft.testing.programs.recorder import MAX_CALLS, Recorder
from haft.testing.programs.stub import BEGIN, HEADER, INPUT, MAGIC
from haft.testing.reading import scenarios_from
from haft.testing.running import run_scenario
from haft.testing.scenarios.scenario import ProgramAnswer

pytestmark = pytest.mark.takes_turns

QUIET = {"programs": [], "output": ""}
REPORTS = "$(echo /dev/.programs/run-*/reports)"


def shell(command, **more):
    programs = {"git": {}}
    return {"tool": "shell", "args": {"command": command}, "programs": programs, "expect": {"programs": []}, **more}


ATTACKS = [
    "rm -rf /dev/.programs/*",
    "chmod -R 777 /dev/.programs",
    "mv /dev/.programs/bin/git /tmp/",
    "echo 'exit 0' > /dev/.programs/bin/git",
    "echo '{}' > $(echo /dev/.programs/run-*/answers/0)",
    "umount /dev/.programs",
    "mount --bind /tmp /dev/.programs",
    "rm /usr/bin/git",
    "echo 'exit 0' > /usr/bin/git",
]


@pytest.mark.every_user
def test_in_the_sandbox_no_tool_deletes_or_changes_what_is_recorded(failures, needs_sandbox):
    forged = "for slot in /dev/.programs/run-*/slots/*; do echo forged > $slot && echo attack; done"
    reading = [] if os.geteuid() == 0 else [f"head -c 1 < {REPORTS}"]  # Root may open every file.
    attacks = "; ".join([*(f"{each} && echo attack" for each in (*ATTACKS, *reading)), forged])
    *others, message = failures(**shell(f"git push; {{ {attacks}; }} 2>/dev/null; git pull", expect=QUIET))
    assert message == "Program calls mismatch:\nExpected: (no calls)\nActual: git push\ngit pull"
    assert others == [], "no attack succeeded"


def test_what_is_no_report_is_noticed_and_later_stubs_end(run, needs_sandbox):
    result = run(**shell(f"git push; echo garbage that is longer than a report > {REPORTS}; git pull; echo $?"))
    messages = [each.message for each in result.mismatches]
    assert "Program stubs: something else than a stub wrote to the pipe of the program stubs" in messages
    assert result.outcome["output"].endswith("git (stub): the test records no more calls\n125\n")


@pytest.mark.every_user
def test_a_stub_whose_report_was_stolen_never_answers(run, needs_sandbox):
    """Root can read the pipe, and so hide a call: but then the stub does nothing, and does not end."""
    thief = "cat < $reports > /dev/null & thief=$!"
    command = f"reports={REPORTS}; {thief}; sleep 0.1; timeout 1 git push && echo answered; kill $thief; true"
    result = run(**shell(command))
    assert not (result.passed and "answered" in result.outcome["output"])


def test_without_the_sandbox_a_change_of_the_stubs_is_noticed():
    places = "dir=$(dirname $(dirname $(command -v git)))"
    for attack in ("echo 'exit 0' > $dir/bin/git", "mv $dir/bin $dir/other", "chmod 777 $dir/run-*/reports"):
        data = shell(f"{places}; {attack}", settings={"sandbox.mode": "off"})
        (scenario,) = scenarios_from(data)
        found = [each.message for each in asyncio.run(run_scenario(scenario)).mismatches]
        assert "Program stubs: the tool changed the program stubs, so their recorded calls do not hold" in found, attack


def piece(part, data=b"{}", *, identity=b"0" * 16, is_last=True, magic=MAGIC):
    return HEADER.pack(magic, identity, 0, part, is_last, len(data)) + data


BEGUN = b'{"program": "git", "args": ["a"], "cwd": "/", "env": {}}'


def recorder():
    replies = []
    return Recorder({"git": [(7, ProgramAnswer())]}, lambda *told: replies.append(told)), replies


def test_reports_come_in_pieces_of_any_size():
    one, replies = recorder()
    data = b"".join(
        [piece(BEGIN, BEGUN[:9], is_last=False), piece(BEGIN, BEGUN[9:]), piece(INPUT, b'"in"', is_last=True)]
    )
    for byte in data:
        one.take(bytes([byte]))
    assert one.calls() == ({"program": "git", "args": ["a"], "stdin": "in", "cwd": "/", "env": {}},)
    assert replies == [(0, b"0" * 16, 7)]


@pytest.mark.parametrize(
    "data",
    [
        b"x" * 200,
        piece(BEGIN, b"no JSON"),
        piece(BEGIN, b"[]"),
        piece(BEGIN, b'{"program": "git"}'),
        piece(INPUT, b'"without a beginning"'),
        piece(BEGIN, BEGUN) * 2,
        piece(BEGIN, BEGUN) + piece(INPUT, b'""') * 2,
        piece(BEGIN, BEGUN.replace(b"git", b"rm")) + piece(INPUT, b'""'),
        piece(BEGIN, BEGUN.replace(b"{}", b"7")),
        piece(9),
    ],
)
def test_a_forged_report_that_no_stub_sends_is_a_problem(data):
    one, _ = recorder()
    one.take(data)
    assert list(one.problems) == ["something else than a stub wrote to the pipe of the program stubs"]


def test_no_more_calls_are_kept_than_memory_should_hold():
    one, replies = recorder()
    for number in range(MAX_CALLS + 1):
        identity = number.to_bytes(16, "big")
        one.take(piece(BEGIN, BEGUN, identity=identity) + piece(INPUT, b'""', identity=identity))
    assert len(one.calls()) == MAX_CALLS
    assert len(one.problems) == 1
    assert [answer for _, _, answer in replies[-2:]] == [7, -2]


def test_a_call_that_was_killed_before_its_answer_is_recorded_last():
    one, _ = recorder()
    one.take(piece(BEGIN, BEGUN.replace(b'"a"', b'"killed"'), identity=b"1" * 16))
    one.take(piece(BEGIN, BEGUN) + piece(INPUT, b'""'))
    one.take(piece(BEGIN, BEGUN[:5], identity=b"2" * 16, is_last=False))
    assert [each["args"] for each in one.calls()] == [["a"], ["killed"]]
    assert not one.problems


def test_a_report_that_is_nested_too_deeply_is_no_report():
    recorder = Recorder({"git": [(0, ProgramAnswer())]}, lambda *_: None)
    data = b"[" * 50_000
    recorder.take(HEADER.pack(MAGIC, b"i" * 16, 0, BEGIN, True, len(data)) + data)
    assert recorder.is_disturbed
