"""Many calls at once: how many run, who gets a place, and what still answers meanwhile."""

import asyncio
from collections import Counter

from haft import ToolService, tool

CALLERS, GREEDY, PLACES = 20, 900, 10


class Work:
    """A tool whose calls wait until the gate opens, and that counts them."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.running = self.most = 0
        self.order = []

        @tool(readonly=True)
        async def work(caller: int) -> None:
            """Work for a moment."""
            self.running += 1
            self.most = max(self.most, self.running)
            await self.gate.wait()
            await asyncio.sleep(0)
            self.order.append(caller)
            self.running -= 1

        self.tool = work


def test_of_a_thousand_calls_ten_run_at_once_and_no_caller_waits_for_the_one_with_nine_hundred(tmp_path):
    (tmp_path / "workspace").mkdir()
    callers = [0] * GREEDY + [1 + number % (CALLERS - 1) for number in range(1_000 - GREEDY)]

    async def main():
        work = Work()
        async with ToolService.open(
            tmp_path / "workspace", home=tmp_path / "home", tools=[work.tool], installed=False
        ) as service:
            runs = [service.call("work", {"caller": each}, who=f"agent-{each}") for each in callers]
            while work.running < PLACES:
                await asyncio.sleep(0)
            # While they wait: what other callers see, and a call that gives up.
            assert "work" in {listing.spec.name for listing in service.tools()}
            assert runs[500].status == "queued" and service.cancel(runs[500].id)
            assert (await runs[500]).status == "cancelled"
            assert len(service.runs(limit=5)) == 5
            work.gate.set()
            outcomes = [await run for run in runs]
            assert Counter(outcome.status for outcome in outcomes) == {"done": 999, "cancelled": 1}
        assert work.most == PLACES
        asked, ended = Counter(callers), Counter(work.order[:500])
        share = 500 / CALLERS
        assert all(ended[each] >= min(asked[each], share) / 2 for each in range(CALLERS))
        # Nobody waits for more than a few rounds of all callers.
        assert max(work.order.index(each) for each in range(CALLERS)) < PLACES + 2 * CALLERS

    asyncio.run(main())


def test_a_user_has_no_more_calls_in_progress_than_one_user_may_have(tmp_path):
    (tmp_path / "workspace").mkdir()

    async def main():
        work = Work()
        settings = {"limits.max_concurrent_per_user": 2, "limits.max_concurrent": 4}
        async with ToolService.open(
            tmp_path / "workspace", home=tmp_path / "home", tools=[work.tool], installed=False, settings=settings
        ) as service:
            runs = [service.call("work", {"caller": 1}, who="one") for _ in range(5)]
            while work.running < 2:
                await asyncio.sleep(0)
            runs += [service.call("work", {"caller": 2}, who="two")]
            while work.running < 3:  # The places that are left are for others.
                await asyncio.sleep(0)
            work.gate.set()
            assert [(await run).status for run in runs] == ["done"] * 6
        assert work.most == 3

    asyncio.run(main())


def test_a_user_has_no_more_open_calls_than_one_user_may_have(tmp_path):
    (tmp_path / "workspace").mkdir()

    async def main():
        work = Work()
        settings = {"limits.max_open_per_user": 2, "limits.max_concurrent": 4, "approval.expires_seconds": 60}
        async with ToolService.open(
            tmp_path / "workspace", home=tmp_path / "home", tools=[work.tool], installed=False, settings=settings
        ) as service:
            blocked = service.call("shell", {"command": "touch made"}, who="one")
            while blocked.status != "blocked-on-user":
                await asyncio.sleep(0.01)
            runs = [service.call("work", {"caller": 1}, who="one"), service.call("work", {"caller": 2}, who="two")]
            while work.running < 2:
                await asyncio.sleep(0)
            refused = await service.call("work", {"caller": 1}, who="one")
            assert (refused.status, refused.error.code, refused.error.retryable) == ("error", "busy", True)
            assert "2 calls of one are open already" in refused.error.message
            work.gate.set()
            assert [(await run).status for run in runs] == ["done"] * 2
            assert (await service.call("work", {"caller": 1}, who="one")).status == "done"
            blocked.cancel()
            await blocked

    asyncio.run(main())
