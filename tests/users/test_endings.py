"""Cancel and timeout of a shell command that will not go: the call ends all the same, and nothing is left of it.

Through the whole service, as whoever runs the tests; `test_ordinary_user` runs it once more as an ordinary user.
"""

import asyncio
import sys

import pytest

from haft.service import ToolService

pytestmark = pytest.mark.every_user

STUBBORN = {
    "ignores TERM": "trap '' TERM HUP INT; echo ready; while :; do sleep 0.1; done",
    "forked a daemon": f"{sys.executable} -c 'import os, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    'open("started", "w").close()\n'
    "time.sleep(600)'; until [ -e started ]; do sleep 0.01; done; echo ready; sleep 600",
    "fills its pipe": "trap '' TERM; echo ready; while :; do head -c 1000000 /dev/zero; done",
    "fills its pipe from a daemon": "setsid bash -c \"trap '' TERM; yes\" & echo ready; wait",
    "stops itself": "trap '' TERM; echo ready; kill -STOP $$; sleep 600",
    "closed its streams": "trap '' TERM; echo ready; exec >&- 2>&- <&-; while :; do sleep 0.1; done",
}
ENDS = 60
"""Seconds: far more than an ending takes on a busy machine, far less than these commands would run."""


async def yes(_request) -> bool:
    return True


def with_service(tmp_path, go, **settings):
    (tmp_path / "workspace").mkdir()

    async def main():
        async with ToolService.open(
            tmp_path / "workspace", approver=yes, home=tmp_path / "home", installed=False, settings=settings
        ) as service:
            return await go(service)

    return asyncio.run(main())


@pytest.mark.parametrize("what", STUBBORN)
def test_a_cancelled_shell_command_is_gone(what, tmp_path, mark, left_of, eventually):
    async def go(service):
        run = service.call("shell", {"command": STUBBORN[what], "env": {"MARK": mark}})
        async for event in run:
            if "ready" in event.text:
                break
        assert run.cancel()
        outcome = await asyncio.wait_for(run, ENDS)
        assert outcome.status == "cancelled"
        assert outcome.output_bytes >= len("ready")
        eventually(lambda: not left_of(mark))

    with_service(tmp_path, go)


@pytest.mark.parametrize("what", STUBBORN)
def test_a_shell_command_that_runs_out_of_time_is_gone(what, tmp_path, mark, left_of, eventually):
    async def go(service):
        run = service.call("shell", {"command": STUBBORN[what], "env": {"MARK": mark}}, timeout=0.7)
        outcome = await asyncio.wait_for(run, ENDS)
        assert (outcome.status, outcome.error.code) == ("error", "timed-out")
        assert outcome.limits.hit == "max_seconds"
        eventually(lambda: not left_of(mark))

    with_service(tmp_path, go)


def test_a_shell_command_that_gives_no_sign_of_life_is_gone(tmp_path, mark, left_of, eventually):
    async def go(service):
        command = "trap '' TERM; for n in 1 2 3 4 5 6; do echo $n; sleep 0.1; done; while :; do sleep 1; done"
        run = service.call("shell", {"command": command, "env": {"MARK": mark}})
        outcome = await asyncio.wait_for(run, ENDS)
        assert (outcome.error.code, outcome.limits.hit) == ("timed-out", "max_idle_seconds")
        assert outcome.output.split() == ["1", "2", "3", "4", "5", "6"]
        eventually(lambda: not left_of(mark))

    with_service(tmp_path, go, **{"limits.max_idle_seconds": 0.8})


def test_closing_the_service_ends_what_still_runs(tmp_path, mark, left_of, eventually):
    async def ready(run):
        async for event in run:
            if "ready" in event.text:
                return

    async def go(service):
        runs = [
            service.call("shell", {"command": STUBBORN[what], "env": {"MARK": mark}})
            for what in ("ignores TERM", "fills its pipe")
        ]
        await asyncio.gather(*map(ready, runs))
        return runs

    runs = with_service(tmp_path, go)
    assert [(run.outcome.status, run.outcome.error.code) for run in runs] == [("cancelled", "cancelled")] * 2
    eventually(lambda: not left_of(mark))


def test_the_files_of_the_state_home_are_those_of_whoever_ran_it(tmp_path):
    async def go(service):
        assert (await service.call("write_file", {"path": "a/b", "content": "x"})).status == "done"
        assert (await service.call("read_file", {"path": "a/b"})).output.strip().endswith("x")
        assert (await service.call("shell", {"command": "cat a/b"})).output == "x"
        assert service.record.verify().intact

    with_service(tmp_path, go)
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "home" / "haft.db").stat().st_mode & 0o777 == 0o600
