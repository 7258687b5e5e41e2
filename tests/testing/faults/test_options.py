"""When a fault happens, what a scenario may say about it, and what is a mismatch, an error, or a reason to skip."""

import asyncio
import os
import socket
import threading

import pytest

from haft.contracts import BadUsage
from haft.testing import run_scenario, run_scenarios, scenarios_from
from haft.testing.scenarios import failure

pytestmark = pytest.mark.takes_turns


def scenarios(command, fault, **parts):
    return scenarios_from({"tool": "shell", "args": {"command": command}, "fault": fault, **parts})


def run(command, fault, **parts):
    (scenario,) = scenarios(command, fault, **parts)
    result = asyncio.run(run_scenario(scenario))
    if result.skipped is not None:
        pytest.skip(result.skipped)
    return result


def messages(result):
    return [each.message for each in result.mismatches]


TRAP = "trap 'echo cleaned >clean.txt; exit 1' TERM; echo half; sleep 60 & wait"


def test_killing_lets_the_program_do_nothing_more_and_keeps_what_it_has_written():
    result = run(
        f"echo begun >begun.txt; {TRAP}",
        {"kind": "kill", "after_output": "half"},
        expect={"files": {"begun.txt": "begun\n", "clean.txt": None}, "exit": 137},
    )
    assert messages(result) == []


def test_at_the_deadline_the_program_may_clean_up_and_nothing_gets_into_the_workspace():
    result = run(f"echo begun >begun.txt; {TRAP}", {"kind": "deadline", "after_output": "half"})
    assert messages(result) == []
    changes = result.outcome["changes"]
    if changes["engine"] == "overlay":
        assert changes["state"] == "held"
        assert {each["path"] for each in changes["files"]} == {"begun.txt", "clean.txt"}


@pytest.mark.parametrize("kind", ["kill", "deadline", "host-killed"])
def test_a_fault_can_come_after_some_seconds(kind):
    result = run("sleep 60", {"kind": kind, "after_seconds": 0.05})
    assert messages(result) == []


def test_a_fault_that_comes_too_late_is_a_mismatch():
    result = run("echo done", {"kind": "kill", "after_output": "never said"})
    assert messages(result)[0] == "The fault kill did not happen, because the call ended before (done)"
    assert result.mismatches[0].path == "fault"
    result = run("touch x", "host-killed", approve="none")
    assert "did not happen, because the call ended before (rejected-by-user" in messages(result)[0]


def test_what_a_scenario_expects_itself_counts_instead_of_what_the_fault_leaves():
    for expect in ({"status": "done"}, {"error": "timed-out"}):
        assert "tool-failed" in messages(run("true", "kill", expect=expect))[0]
    assert messages(run("kill -KILL $$", "slow-pipes", expect={"status": "error", "exit": 137})) == []


def test_a_tool_that_leaves_half_a_file_on_a_full_disk_fails_its_scenario():
    careless = "printf '%s' one >a.txt && seq 100000 >a.txt"
    result = run(careless, "full-disk", files={"a.txt": "before"})
    assert messages(result) == [
        "File a.txt mismatch:\nExpected: unchanged, because `expect.files` does not name it\nActual: changed"
    ]
    report = "\n".join(failure(result))
    assert report.startswith('call: shell {"command": "printf'), report
    assert report.splitlines()[0].endswith(" with the fault full-disk")
    assert "- before the call, + after the call\n@@ -1 +0,0 @@\n-before\nThe file is empty now." in report
    assert "The tool wrote" in report
    assert "No space left on device" in report.partition("The tool wrote")[2]
    careful = "seq 100000 >b.txt && mv b.txt a.txt || { rm -f b.txt; exit 1; }"
    result = run(careful, "full-disk", files={"a.txt": "before"})
    assert messages(result) == []
    assert "No space left on device" in result.outcome["stderr"]
    result = run(careful, {"kind": "full-disk", "bytes": 100_000_000}, expect={"status": "done", "only_changed": "any"})
    assert messages(result) == []


def test_a_built_in_tool_meets_the_full_disk_too():
    parts = {"tool": "edit_file", "args": {"path": "a.txt", "old_string": "b", "new_string": "c" * 100_000}}
    (scenario,) = scenarios("", "full-disk", **parts, files={"a.txt": "before\n"})
    result = asyncio.run(run_scenario(scenario))
    if result.skipped is None:
        assert messages(result) == []
        assert "the disk is full" in result.outcome["error"]["message"]


def test_a_program_gets_only_so_much_memory():
    command = 'python3 -c "x = bytearray(2_000_000_000)"'
    result = run(command, {"kind": "no-memory", "bytes": 500_000_000})
    assert messages(result) == []
    assert "MemoryError" in result.outcome["stderr"]
    assert messages(run("true", {"kind": "no-memory", "bytes": 500_000_000}, expect={"status": "done"})) == []


def test_slow_pipes_carry_the_same_data_in_both_directions(tmp_path):
    tool = tmp_path / "upper"
    tool.write_text(
        '#!/bin/sh\nif [ "$TOOLBOX_ACTION" = describe ]; then\n'
        'printf \'%s\' \'{"name": "upper", "description": "Upper case.", "inputSchema": {"type": "object",'
        ' "properties": {"text": {"type": "string"}}}}\'\nexit\nfi\ntr a-z A-Z; tr a-z A-Z <b.txt >&2\n'
    )
    tool.chmod(0o755)
    text = "".join(f"line {number}\n" for number in range(1500))
    (scenario,) = scenarios_from(
        {"tool": str(tool), "args": {"text": text}, "fault": "slow-pipes", "files": {"b.txt": text}}
    )
    result = asyncio.run(run_scenario(scenario))
    assert messages(result) == []
    assert result.outcome["stderr"] == text.upper()
    assert "LINE 1499" in result.outcome["output"]


def test_without_network_a_call_reaches_nothing_although_the_scenario_grants_it():
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,), daemon=True)
        thread.start()
        command = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && cat <&3"
        assert messages(run(command, "no-network", network=True)) == []
        (scenario,) = scenarios(command, None, network=True, expect={"output": "hello\n"})
        assert messages(asyncio.run(run_scenario(scenario))) == []


def answer(server):
    connection, _address = server.accept()
    with connection:
        connection.sendall(b"hello\n")


@pytest.mark.parametrize("kind", ["kill", "no-memory", "garbage", "no-network"])
def test_a_tool_that_starts_no_program_is_skipped_with_the_reason(kind):
    (scenario,) = scenarios("", kind, tool="edit_file", args={"path": "a", "old_string": "b", "new_string": "c"})
    result = asyncio.run(run_scenario(scenario))
    assert result.skipped == "`edit_file` runs in haft's own process, so that it has no program for this fault"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "kill", "after": 1}, "has no option `after`"),
        ({"kind": "no-network", "bytes": 1}, "it has none"),
        ({"kind": "kill", "after_seconds": 1, "after_output": "a"}, "keep one of"),
        ({"kind": "kill", "after_output": ""}, "a text that the tool writes"),
        ({"kind": "deadline", "after_seconds": -1}, "a number of seconds"),
        ({"kind": "partial-output", "bytes": -1}, "a number of bytes"),
        ({"kind": "no-memory", "bytes": 0}, "above 0"),
        ({"kind": "full-disk", "bytes": True}, "a number of bytes"),
        ({"kind": "garbage", "where": "after"}, "`before` or `instead`"),
    ],
)
def test_a_wrong_option_is_said_with_its_place(fault, said):
    with pytest.raises(BadUsage, match="`fault") as error:
        scenarios("true", fault)
    assert said in error.value.message


def test_scenarios_with_faults_run_beside_others_in_worker_processes():
    kinds = ("host-killed", "full-disk", "kill", None)
    many = [each for kind in kinds for each in scenarios("echo x", kind, name=str(kind), expect=expected(kind))]
    results = run_scenarios(many, jobs=2)
    assert {each.scenario.name: messages(each) for each in results} == {str(kind): [] for kind in kinds}
    assert not [name for name in os.listdir("/tmp") if name.startswith("haft-scenario-") and is_mine(name, results)]


def expected(kind):
    return {"status": "done"} if kind == "full-disk" else {}


def is_mine(name, results):
    return any(name in each.workspace for each in results)
