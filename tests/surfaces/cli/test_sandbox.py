"""Sandbox and limits as a person reads them: at the question, and of a run that was kept."""

import pytest

from haft.contracts import ApprovalRequest, Confinement, LimitsApplied
from haft.surfaces.cli.person.approver import call_lines
from haft.surfaces.text.sandbox import limits_lines, sandbox_lines, sandbox_words

HOSTILE = "/x\x1b[2K\u202e\n  sandbox: none, no network"


@pytest.mark.parametrize(
    ("confinement", "words"),
    [
        (Confinement("workspace", network=False, writable=("/w",), layers=("namespaces",)), "workspace, no network"),
        (Confinement("read-only", network=False), "read-only, no network"),
        (Confinement(), "none"),
        (Confinement(reason="it runs in this process"), "none (it runs in this process)"),
        (Confinement(reason="`sandbox.mode` is `off`"), "none (`sandbox.mode` is `off`)"),
        (Confinement(reason="it is off", env=("CI",)), "none (it is off), gets CI"),
        (
            Confinement(
                "workspace", writable=("/w", "/out", "/a b"), readable=("/k",), env=("CI", "X"), path=("/bin",)
            ),
            'workspace, the whole network, may write /out, "/a b", may read /k, gets CI, X, on its PATH /bin',
        ),
        (
            Confinement("workspace", network=False, layers=("landlock",), reason="no user namespaces here"),
            "workspace, no network (no user namespaces here)",
        ),
    ],
)
def test_the_sandbox_of_a_question_is_one_line(confinement, words):
    assert sandbox_words(confinement, "/w") == words


def test_what_a_path_is_called_cannot_change_what_is_read():
    words = sandbox_words(Confinement("workspace", network=True, writable=(HOSTILE, "/a, no network")), "/w")
    assert words.startswith("workspace, the whole network, may write ")
    assert "\n" not in words and "\x1b" not in words and "\u202e" not in words
    assert '"/a, no network"' in words


def test_the_question_shows_the_sandbox_under_the_call():
    confinement = Confinement("workspace", network=False, writable=("/w",))
    request = ApprovalRequest(
        "r_1", "shell", "Run.", {"command": "ls"}, "it may change", "me", "T-1", sandbox=confinement
    )
    assert list(call_lines(request, request.arguments, "/w"))[1:] == [
        "  command: ls",
        "  sandbox: workspace, no network",
    ]


def test_a_run_shows_its_sandbox_with_what_holds_it():
    confinement = Confinement(
        "workspace", network=False, writable=("/w", "/out"), layers=("namespaces", "landlock"), reason="so"
    )
    assert list(sandbox_lines(confinement.to_json(), "/w")) == [
        "sandbox: workspace, no network",
        "  may write: /out",
        "  enforced by: namespaces, landlock",
        "  why: so",
    ]
    assert list(sandbox_lines({"profile": "none", "network": True}, "/w")) == ["sandbox: none, the whole network"]


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
