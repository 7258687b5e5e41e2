"""Walls and limits as a person reads them: at the question, and of a run that was kept."""

import pytest

from haft.contracts import ApprovalRequest, LimitsApplied, Walls
from haft.surfaces.cli.person.approver import shown_call
from haft.surfaces.cli.screen.walls import limits_lines, walls_lines, walls_words

HOSTILE = "/x\x1b[2K\u202e\n  walls: none, no network"


@pytest.mark.parametrize(
    ("walls", "words"),
    [
        (Walls("workspace", network=False, writable=("/w",), layers=("namespaces",)), "workspace, no network"),
        (Walls("read-only", network=False), "read-only, no network"),
        (Walls(), "none"),
        (Walls(reason="it runs in this process"), "none (it runs in this process)"),
        (Walls(reason="`sandbox.mode` is `off`"), "none (`sandbox.mode` is `off`)"),
        (Walls(reason="it is off", env=("CI",)), "none (it is off), gets CI"),
        (
            Walls("workspace", writable=("/w", "/out", "/a b"), readable=("/k",), env=("CI", "X"), path=("/bin",)),
            'workspace, network open, may write /out, "/a b", may read /k, gets CI, X, on its PATH /bin',
        ),
        (
            Walls("workspace", network=False, layers=("landlock",), reason="no user namespaces here"),
            "workspace, no network (no user namespaces here)",
        ),
    ],
)
def test_the_walls_of_a_question_are_one_line(walls, words):
    assert walls_words(walls, "/w") == words


def test_what_a_path_is_called_cannot_change_what_is_read():
    words = walls_words(Walls("workspace", network=True, writable=(HOSTILE, "/a, no network")), "/w")
    assert words.startswith("workspace, network open, may write ")
    assert "\n" not in words and "\x1b" not in words and "\u202e" not in words
    assert '"/a, no network"' in words


def test_the_question_shows_the_walls_under_the_call():
    walls = Walls("workspace", network=False, writable=("/w",))
    request = ApprovalRequest("r_1", "shell", "Run.", {"command": "ls"}, "it may change", "me", "T-1", walls=walls)
    assert list(shown_call(request, request.arguments, "/w"))[1:] == ["  command: ls", "  walls: workspace, no network"]


def test_a_run_shows_its_walls_with_what_holds_them():
    walls = Walls("workspace", network=False, writable=("/w", "/out"), layers=("namespaces", "landlock"), reason="so")
    assert list(walls_lines(walls.to_json(), "/w")) == [
        "walls: workspace, no network",
        "  may write: /out",
        "  held by: namespaces, landlock",
        "  why: so",
    ]
    assert list(walls_lines({"profile": "none", "network": True}, "/w")) == ["walls: none, network open"]


def test_a_run_shows_its_limits_with_what_holds_them():
    limits = LimitsApplied(
        {
            "max_seconds": 120.0,
            "memory_bytes": 2_000_000,
            "max_processes": 256,
            "cpu_seconds": 0.0,
            "max_open_files": 64,
        },
        "memory_bytes",
        {
            "memory_bytes": "cgroup-v2",
            "cpu_seconds": "nothing",
            "max_open_files": "rlimit",
            "max_processes": "cgroup-v2",
            "max_written_bytes": "watching",
        },
    )
    assert list(limits_lines(limits.to_json())) == [
        "limits: max_seconds 120; hit: memory_bytes",
        "  by cgroup-v2: memory_bytes 2000000, max_processes 256",
        "  by rlimit: max_open_files 64",
        "  by watching: max_written_bytes",
    ]
    assert list(limits_lines({"applied": {}, "hit": None})) == ["limits: none"]
