"""What the doctor says of hosts that run beside it."""

import asyncio
import os
import threading

from haft import ToolService, tool
from haft.service import ApprovalSecret, announce
from haft.service import client_checks as client_checks_module
from haft.service.client_checks import client_checks
from haft.service.doctor import diagnose
from haft.storage import StateHome


def finding(home, name):
    return next(check for check in diagnose(StateHome(str(home)), None, {}) if check.check == name)


def test_agents_that_use_haft_and_the_passphrase_are_shown(tmp_path):
    home = StateHome(str(tmp_path / "home"))
    home.prepare()

    def found():
        return {check.check: check for check in client_checks(home)}

    assert found()["agents"].detail == "no agent uses haft now"
    assert found()["approval"].detail == "no passphrase is set"
    announce(home, "agent", os.getpid())
    ApprovalSecret(home).set("correct horse")
    assert found()["agents"].detail.startswith(
        f"these use haft now: `agent` (pid {os.getpid()}); this process may belong"
    )
    assert "answers from other processes need it" in found()["approval"].detail


def test_a_machine_that_does_not_show_processes_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr(client_checks_module, "has_process_tree", lambda: False)
    agents, _ = client_checks(StateHome(str(tmp_path / "home")))
    assert agents.state == "warn"
    assert "does not show the parents of processes" in agents.detail
    assert "haft approval secret" in agents.hint


def test_a_function_that_ignores_its_cancellation_is_counted_and_shown_until_it_ends(tmp_path):
    entered, leave = threading.Event(), threading.Event()

    @tool(readonly=True)
    def stubborn() -> str:
        entered.set()
        leave.wait(60)
        return "late"

    async def until(state):
        for _ in range(500):
            found = await asyncio.to_thread(finding, tmp_path / "home", "abandoned functions")
            if found.state == state:
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(found)

    async def main():
        (tmp_path / "workspace").mkdir()
        async with ToolService.open(
            tmp_path / "workspace", tools=[stubborn], home=tmp_path / "home", installed=False
        ) as service:
            assert (await until("ok")).detail == "no running host has any"
            run = service.call("stubborn")
            await asyncio.to_thread(entered.wait, 60)
            run.cancel()
            assert (await run).status == "cancelled"
            found = await until("warn")
            assert "1 in h_" in found.detail and "isolated" in found.hint
            leave.set()
            await until("ok")

    try:
        asyncio.run(main())
    finally:
        leave.set()
