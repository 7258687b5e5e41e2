"""A run as its caller and its observers see it: awaited, iterated, cancelled, timed out."""

import asyncio
import contextlib
import itertools
import threading
import time

from haft import Context, ToolService, tool
from haft.contracts import NEXT_STATUSES, TERMINAL


@tool(readonly=True)
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(readonly=True)
async def wait_for_ever() -> None:
    """Never ends by itself."""
    await asyncio.Event().wait()


@tool(readonly=True)
async def ignore_cancellation(seconds: float) -> str:
    """Goes on although it was told to end."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(until - time.monotonic())
        except asyncio.CancelledError:
            continue
    return "late"


@tool(readonly=True)
async def count(to: int, context: Context) -> int:
    """Counts, and says how far it is."""
    for number in range(to):
        context.progress(f"at {number}", fraction=number / to)
        await asyncio.sleep(0)
    return to


def with_service(tmp_path, body, tools, **options):
    async def main():
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        async with ToolService.open(workspace, tools=tools, home=tmp_path / "home", **options) as service:
            return await body(service)

    return asyncio.run(main())


def test_a_run_can_be_awaited_by_many_at_once_and_again_when_it_is_over(tmp_path):
    async def body(service):
        run = service.call("echo", {"text": "hello"})

        async def wait():
            return await run

        first, second = await asyncio.gather(wait(), wait())
        assert first is second is await run
        assert first.status == "done" and first.output == "hello" and first.result == "hello"

    with_service(tmp_path, body, [echo])


def test_cancelling_the_one_who_waits_does_not_cancel_the_run(tmp_path):
    async def body(service):
        release = asyncio.Event()

        @tool(readonly=True)
        async def held() -> str:
            await release.wait()
            return "kept on"

        service.add(held)
        run = service.call("held")
        waiter = asyncio.ensure_future(_outcome(run))
        await asyncio.sleep(0.01)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        release.set()
        assert (await run).output == "kept on"

    with_service(tmp_path, body, [])


async def _outcome(run):
    return await run


def test_every_observer_sees_the_same_events_and_a_late_one_gets_the_current_state_first(tmp_path):
    async def body(service):
        started = asyncio.Event()
        release = asyncio.Event()

        @tool(readonly=True)
        async def steps(context: Context) -> str:
            started.set()
            await release.wait()
            context.progress("nearly there", fraction=0.9)
            return "ok"

        service.add(steps)
        run = service.call("steps")
        first, second = asyncio.ensure_future(_all(aiter(run))), asyncio.ensure_future(_all(aiter(run)))
        await started.wait()
        late = asyncio.ensure_future(_events(run))
        await asyncio.sleep(0)
        release.set()
        one, two, three = await asyncio.gather(first, second, late)
        assert one == two
        assert [(event.type, event.status) for event in one] == [
            ("status", "queued"),
            ("status", "in-progress"),
            ("progress", "in-progress"),
            ("status", "done"),
            ("outcome", "done"),
        ]
        assert (three[0].type, three[0].status) == ("status", "in-progress")
        assert three[1:] == one[2:]
        after = await _events(run)
        assert [(event.type, event.status) for event in after] == [("status", "done"), ("outcome", "done")]

    with_service(tmp_path, body, [])


async def _events(run):
    return [event async for event in run]


async def _all(events):
    return [event async for event in events]


def test_a_run_is_cancelled_at_any_moment_through_cancellation_requested(tmp_path):
    async def body(service):
        for turns in (0, 1, 2, 3, 10):
            run = service.call("wait_for_ever")
            seen = asyncio.ensure_future(_all(aiter(run)))
            for _ in range(turns):
                await asyncio.sleep(0)
            assert run.cancel() is True
            outcome = await run
            assert outcome.status == "cancelled"
            assert outcome.error.code == "cancelled"
            assert outcome.process_exit_code == 130
            assert run.cancel() is False
            statuses = [event.status for event in await seen if event.type == "status"]
            assert statuses[0] == "queued"
            assert statuses[-2:] == ["cancellation-requested", "cancelled"]
            kept = service.run(run.id)
            assert kept.status == "cancelled"

    with_service(tmp_path, body, [wait_for_ever])


def test_a_tool_that_ignores_cancellation_is_abandoned_and_counted_and_its_run_ends(tmp_path):
    entered, leave = asyncio.Event(), asyncio.Event()

    @tool(readonly=True)
    async def never_end() -> None:
        entered.set()
        while not leave.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await leave.wait()

    async def body(service):
        run = service.call("never_end")
        await entered.wait()
        run.cancel()
        outcome = await asyncio.wait_for(_outcome(run), 20)
        assert outcome.status == "cancelled"
        assert service.abandoned == 1
        leave.set()

    with_service(tmp_path, body, [never_end])


def test_a_tool_that_answers_although_it_was_cancelled_is_cancelled_all_the_same(tmp_path):
    async def body(service):
        run = service.call("ignore_cancellation", {"seconds": 0.3})
        await asyncio.sleep(0.05)
        run.cancel()
        assert (await run).status == "cancelled"
        assert service.abandoned == 0

    with_service(tmp_path, body, [ignore_cancellation])


def test_a_sync_tool_never_blocks_the_loop_and_can_be_cancelled_while_it_runs(tmp_path):
    entered, leave = threading.Event(), threading.Event()

    @tool(readonly=True)
    def block() -> str:
        entered.set()
        leave.wait()
        return "done at last"

    async def body(service):
        run = service.call("block")
        while not entered.is_set():
            await asyncio.sleep(0.001)
        assert (await service.call("echo", {"text": "meanwhile"})).output == "meanwhile"
        run.cancel()
        assert (await run).status == "cancelled"
        assert service.abandoned == 1
        leave.set()

    with_service(tmp_path, body, [block, echo])


def test_progress_becomes_in_progress_events(tmp_path):
    async def body(service):
        events = await _events(service.call("count", {"to": 3}))
        progress = [event for event in events if event.type == "progress"]
        assert [event.facts["message"] for event in progress] == ["at 0", "at 1", "at 2"]
        assert {event.status for event in progress} == {"in-progress"}

    with_service(tmp_path, body, [count])


def test_a_flood_of_progress_does_not_fill_memory_and_the_newest_arrives(tmp_path):
    async def body(service):
        run = service.call("count", {"to": 20_000})
        events = run.__aiter__()
        await run
        seen = [event async for event in events]
        progress = [event for event in seen if event.type == "progress"]
        assert len(progress) <= 64
        assert progress[-1].facts["message"] == "at 19999"

    with_service(tmp_path, body, [count])


def test_the_shortest_deadline_that_applies_holds_and_the_outcome_says_which(tmp_path):
    @tool(readonly=True, timeout=30)
    async def slow() -> None:
        await asyncio.Event().wait()

    async def body(service):
        outcome = await service.call("slow", timeout=0.05)
        assert (outcome.status, outcome.error.code, outcome.process_exit_code) == ("error", "timed-out", 4)
        assert outcome.limits.hit == "max_seconds"
        assert outcome.limits.applied["max_seconds"] == 0.05
        by_tool = await service.call("wait_for_ever", timeout=30)
        assert by_tool.error.code == "timed-out"
        assert by_tool.limits.applied["max_seconds"] == 0.05

    with_service(tmp_path, body, [slow, wait_for_ever], settings={"tools.timeout": {"wait_for_ever": 0.05}})


def test_without_any_deadline_set_a_call_has_120_seconds(tmp_path):
    async def body(service):
        outcome = await service.call("echo", {"text": ""})
        assert outcome.limits.applied["max_seconds"] == 120
        longer = await service.call("echo", {"text": ""}, timeout=600)
        assert longer.limits.applied["max_seconds"] == 600

    with_service(tmp_path, body, [echo])


def test_a_configured_max_seconds_is_a_cap(tmp_path):
    async def body(service):
        outcome = await service.call("echo", {"text": ""}, timeout=600)
        assert outcome.limits.applied["max_seconds"] == 60

    with_service(tmp_path, body, [echo], settings={"limits.max_seconds": 60})


def test_a_tool_that_gives_no_sign_of_life_meets_the_idle_deadline_and_one_that_does_goes_on(tmp_path):
    @tool(readonly=True)
    async def lively(context: Context) -> str:
        for _ in range(10):
            await asyncio.sleep(0.05)
            context.progress("still here")
        return "alive"

    async def body(service):
        quiet = await service.call("wait_for_ever")
        assert quiet.error.code == "timed-out"
        assert quiet.limits.hit == "max_idle_seconds"
        assert (await service.call("lively")).output == "alive"

    with_service(tmp_path, body, [wait_for_ever, lively], settings={"limits.max_idle_seconds": 0.25})


def test_the_clock_does_not_run_while_a_person_thinks(tmp_path):
    async def think(request):
        await asyncio.sleep(0.3)
        return True

    @tool
    async def act() -> str:
        return "acted"

    async def body(service):
        assert (await service.call("act", timeout=0.2)).output == "acted"

    with_service(tmp_path, body, [act], approver=think)


def test_over_max_concurrent_a_call_is_queued_and_cancelling_it_there_costs_no_place(tmp_path):
    async def body(service):
        release = asyncio.Event()
        running = 0
        most = 0

        @tool(readonly=True)
        async def hold() -> str:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await release.wait()
            running -= 1
            return "held"

        service.add(hold)
        runs = [service.call("hold") for _ in range(5)]
        await asyncio.sleep(0.05)
        assert [run.status for run in runs] == ["in-progress", "in-progress", "queued", "queued", "queued"]
        runs[3].cancel()
        assert (await runs[3]).status == "cancelled"
        release.set()
        outcomes = [await run for run in runs]
        assert [outcome.status for outcome in outcomes] == ["done", "done", "done", "cancelled", "done"]
        assert most == 2

    with_service(tmp_path, body, [], settings={"limits.max_concurrent": 2})


def test_a_thousand_concurrent_calls_all_end_each_in_order_and_no_task_is_left(tmp_path):
    async def body(service):
        before = asyncio.all_tasks()
        runs = [service.call("echo", {"text": str(number)}) for number in range(1000)]
        histories = await asyncio.gather(*[_all(aiter(run)) for run in runs])
        for number, (run, events) in enumerate(zip(runs, histories, strict=True)):
            assert (await run).output == str(number)
            statuses = [event.status for event in events if event.type == "status"]
            assert statuses == ["queued", "in-progress", "done"]
            assert all(after in NEXT_STATUSES[status] for status, after in itertools.pairwise(statuses))
            assert [event.seq for event in events] == sorted({event.seq for event in events})
            assert events[-1].type == "outcome"
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before
        assert len(service.runs(limit=2000)) == 1000

    with_service(tmp_path, body, [echo])


def test_closing_the_service_cancels_what_still_runs_and_every_run_ends_in_one_terminal_status(tmp_path):
    async def main():
        (tmp_path / "w").mkdir()
        async with ToolService.open(tmp_path / "w", tools=[wait_for_ever], home=tmp_path / "home") as service:
            runs = [service.call("wait_for_ever") for _ in range(20)]
            await asyncio.sleep(0.01)
        assert {run.outcome.status for run in runs} == {"cancelled"}
        async with ToolService.open(tmp_path / "w", home=tmp_path / "home") as again:
            assert {record.status for record in again.runs()} == {"cancelled"}
            assert {record.status for record in again.runs()} <= TERMINAL
            assert again.record.verify().intact

    asyncio.run(main())


def test_a_bug_inside_a_stage_still_ends_the_run(tmp_path, monkeypatch):
    import haft.pipeline.stages.decide as decide

    def broken(self, call):
        raise RuntimeError("oops")

    monkeypatch.setattr(decide.Decide, "decide", broken)

    async def body(service):
        outcome = await service.call("echo", {"text": "x"})
        assert outcome.status == "error"
        assert outcome.error.code == "internal-error"
        assert "oops" in outcome.error.message
        assert service.run(outcome.run_id).status == "error"

    with_service(tmp_path, body, [echo])
