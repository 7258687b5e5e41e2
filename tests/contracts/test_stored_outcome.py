"""Outcomes that are read back from their JSON form."""

from haft.contracts import (
    Change,
    Changes,
    ConflictingPath,
    Connection,
    DecidedPart,
    Decision,
    EndedChild,
    Failure,
    LimitsApplied,
    Outcome,
    RunId,
    ThreadId,
    ToolName,
    confinement_from,
    iso_time,
    outcome_from,
    time_from,
)


def test_an_outcome_with_everything_is_the_same_again():
    sandbox = {"profile": "workspace", "network": ["a.example:443"], "env": ["CI"], "scratch": "thread"}
    whole = Outcome(
        RunId("r_1"), ToolName("shell"), "error", "mia", ThreadId("T-1"),
        parent=RunId("r_0"), output="ü", stderr="x", exit_code=3, result={"a": [1]},
        error=Failure("conflict", "no", "wait", retryable=True), truncated=True, output_bytes=9,
        started_at=1_700_000_000.123, duration=1.5,
        changes=Changes("overlay", True, None, "held", (
            Change("bad-\udcff", "modify", "file", "1", "2", 0o644, 0o755, attributes=("user.x",)),
            Change("new", "create", "link", renamed_from="old"),
        ), (ConflictingPath("a", "r_2"), ConflictingPath("\udcff"))),
        decision=Decision("ask", "approval", "rule", "haft.toml:1", "person", "why", (
            DecidedPart("ls", "allow", "reads"), DecidedPart("rm", "ask", "writes", "r", "s"),
        )),
        limits=LimitsApplied({"max_seconds": 1}, "max_seconds", {"memory_bytes": "rlimit"}),
        sandbox=confinement_from({**sandbox, "layers": ["namespaces"]}, "T-1"),
        ended_children=(EndedChild(7, "sleep", ended=False),),
        connections=(Connection("a.example", 443, allowed=True, sent=1, encrypted_name=True),),
        notes=("n",), content=({"type": "image"},), cached=True,
    )  # fmt: skip
    again = outcome_from(whole.to_json())
    assert again.to_json() == whole.to_json()
    assert (again.changes, again.decision, again.connections) == (whole.changes, whole.decision, whole.connections)


def test_times_are_the_same_again():
    for milliseconds in range(1_700_000_000_000, 1_700_000_001_000):
        text = iso_time(time_from(iso_time(milliseconds / 1000 + 0.0004)))
        assert text == iso_time(milliseconds / 1000 + 0.0004)
