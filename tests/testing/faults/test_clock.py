"""The clock that a test moves, and what of a service follows it."""

import asyncio
import shutil
import threading
import time

import pytest

from haft import tool
from haft.contracts import BadUsage, Conditions
from haft.service import ToolService
from haft.testing import ToolBench, run_scenario, scenarios_from
from haft.testing.clock import FakeClock


def run(**parts):
    (scenario,) = scenarios_from(parts)
    return asyncio.run(run_scenario(scenario))


def messages(result):
    return [each.message for each in result.mismatches]


EDIT = {"tool": "edit_file", "args": {"path": "a.txt", "old_string": "a", "new_string": "b"}, "files": {"a.txt": "a"}}


def test_a_deadline_passes_as_soon_as_the_clock_has_moved_beyond_it():
    late = run(**EDIT, timeout=60, clock=61, expect={"error": "timed-out", "message": {"contains": "within 60 s"}})
    assert messages(late) == []
    assert messages(run(**EDIT, timeout=60, clock=59, expect={"files": {"a.txt": "b"}})) == []


def test_programs_see_the_moved_time_or_the_scenario_is_skipped_with_the_reason():
    decade = 10 * 366 * 86_400
    later = time.strftime("%Y", time.gmtime(time.time() + decade))
    expect = {"output": f"{later}\n", "asked": 0}
    result = run(tool="shell", args={"command": "date -u +%Y"}, clock=decade, timeout=2 * decade, expect=expect)
    if shutil.which("faketime") is None:
        assert "`faketime` is not installed" in result.skipped
    else:
        assert messages(result) == []


def test_a_clock_and_a_fault_are_two_scenarios():
    with pytest.raises(BadUsage, match="make two cases"):
        scenarios_from({**EDIT, "clock": 1, "fault": "deadline"})


def test_a_request_for_approval_expires_by_the_moved_clock(tmp_path):
    clock = FakeClock()

    async def go():
        settings = {"approval.expires_seconds": 3600, "approval.without_sandbox": True}
        (tmp_path / "workspace").mkdir()
        service = ToolService.open(
            tmp_path / "workspace", home=tmp_path / "home", installed=False, settings=settings,
            conditions=Conditions(clock=clock),
        )  # fmt: skip
        async with service:
            run = service.call("shell", {"command": "touch x"})
            while not service.inbox():
                await asyncio.sleep(0)
            clock.move(3601)
            return await run

    outcome = asyncio.run(go())
    assert outcome.status == "rejected-by-user"
    assert "nobody answered within 3600 seconds" in outcome.error.message


def test_a_kept_answer_becomes_too_old_by_the_moved_clock():
    with ToolBench() as bench:
        bench.write({"a.txt": "one\n"})
        bench.settings = {"cache.seconds": 3600.0}
        outcomes = []
        for seconds in (0, 0, 3599, 3601):
            bench.clock.move(seconds)
            outcomes.append(bench.call("search", pattern="one"))
        assert [each.cached for each in outcomes] == [False, True, True, False]


def test_the_clock_can_be_moved_while_a_tool_works():
    began = threading.Event()

    @tool(readonly=True)
    async def wait_for_ever() -> str:
        """Wait."""
        began.set()
        await asyncio.Event().wait()
        return ""

    with ToolBench() as bench:
        bench.service.add(wait_for_ever)
        run = bench.service.call("wait_for_ever", {})
        assert began.wait(60)
        bench.clock.move(121)
        assert run.wait().error.code == "timed-out"
    bench.clock.move(1)
