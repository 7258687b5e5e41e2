"""How a program behaved when it was asked, without starting one."""

import pytest

from haft.sources.brief_run import ProgramOutput
from haft.sources.checks.behaviour import check_behaviour

FINE = {"exit_code": 0, "seconds": 0.1}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, set()),
        ({"seconds": 0.99}, set()),
        ({"seconds": 1.01}, {"describe-slow"}),
        ({"seconds": 5.1, "timed_out": True, "exit_code": None, "left_processes": ("sleep",)}, {"describe-timeout"}),
        ({"is_too_long": True, "exit_code": None, "left_processes": ("yes",)}, {"describe-flood"}),
        ({"left_processes": ("sleep 100",)}, {"describe-leaves-processes"}),
        ({"start_failure": "Exec format error", "exit_code": None}, {"describe-not-started"}),
        ({"exit_code": 1}, {"describe-failed"}),
        ({"exit_code": 1, "stderr": b"oh no\n"}, {"describe-failed"}),
        ({"stderr": b"loading\n"}, {"describe-noise"}),
        ({"stderr": b" \n"}, set()),
        ({"stderr": b"bash: x: Read-only file system\n"}, {"writes-on-describe"}),
        ({"stderr": b"Error: EROFS: read-only file system, open 'x'"}, {"writes-on-describe"}),
        ({"stderr": b"OSError: [Errno 30] x", "exit_code": 1}, {"writes-on-describe", "describe-failed"}),
        ({"stderr": b"curl: (6) Could not resolve host: example.org"}, {"network-on-describe"}),
        ({"stderr": b"Error: getaddrinfo EAI_AGAIN example.org"}, {"network-on-describe"}),
        ({"stderr": b"\xff\xfe"}, {"describe-noise"}),
    ],
)
def test_what_happened_has_a_code(said, expected):
    assert {finding.code for finding in check_behaviour(ProgramOutput(**{**FINE, **said}))} == expected


def test_the_time_is_said_and_the_last_line_of_stderr():
    (slow,) = check_behaviour(ProgramOutput(**{**FINE, "seconds": 2.345}))
    assert "2.3 s" in slow.message
    (failed,) = check_behaviour(ProgramOutput(exit_code=7, stderr=b"Traceback\n  more\nValueError: no\n\n"))
    assert "exit code 7: ValueError: no" in failed.message
