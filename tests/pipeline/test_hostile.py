"""Tools, approvers and preprocessing that misbehave: every run still ends, in one terminal status."""

import asyncio
import random
import time

import pytest

from haft import Answer, ApprovalAnswer, Context, Effects, ToolService, ToolSpec, tool


class Evil(BaseException):
    """Caught by hardly anyone."""


def with_service(tmp_path, body, **options):
    async def main():
        (tmp_path / "workspace").mkdir(exist_ok=True)
        async with ToolService.open(tmp_path / "workspace", home=tmp_path / "home", **options) as service:
            await asyncio.wait_for(body(service), 60)

    asyncio.run(asyncio.wait_for(main(), 90))


@pytest.mark.parametrize(
    "error", [GeneratorExit, SystemExit, StopIteration, StopAsyncIteration, Evil, asyncio.CancelledError]
)
def test_whatever_a_tool_raises_is_its_failure(tmp_path, error):
    @tool(readonly=True)
    async def asynchronous() -> str:
        raise error

    @tool(readonly=True)
    def blocking() -> str:
        raise error

    class Raw:
        spec = ToolSpec("raw", "python", "", {"type": "object"}, effects=Effects(readonly=True))

        async def preprocess(self, arguments, context):
            return arguments

        async def invoke(self, arguments, context):
            raise error

    async def body(service):
        for name in ("asynchronous", "blocking", "raw"):
            outcome = await service.call(name)
            assert outcome.status in ("error", "cancelled"), name
            assert service.run(outcome.run_id).status == outcome.status

    with_service(tmp_path, body, tools=[asynchronous, blocking, Raw()])


@pytest.mark.parametrize("error", [GeneratorExit, SystemExit, Evil, ValueError])
def test_whatever_preprocessing_or_an_approver_raises_ends_the_run(tmp_path, error):
    def broken(*_):
        raise error

    @tool(preprocess=broken)
    async def prepared() -> str:
        return "x"

    async def body(service):
        assert (await service.call("prepared")).status == "error"
        outcome = await service.call("shell", {"command": "touch made"})
        assert outcome.status == "rejected-by-user"
        assert not (tmp_path / "workspace" / "made").exists()

    with_service(tmp_path, body, tools=[prepared], approver=broken)


async def _stubborn(*_):
    until = time.monotonic() + 8  # Some end it must have: the loop itself waits for it when it closes.
    while time.monotonic() < until:
        try:
            await asyncio.sleep(until - time.monotonic())
        except asyncio.CancelledError:
            continue


def test_stubborn_preprocessing_and_approvers_can_be_cancelled(tmp_path):
    @tool(readonly=True, preprocess=_stubborn)
    async def prepared() -> str:
        return "x"

    async def body(service):
        runs = [service.call("prepared"), service.call("shell", {"command": "touch made"})]
        await asyncio.sleep(0.05)
        for run in runs:
            run.cancel()
        assert [(await run).status for run in runs] == ["cancelled", "cancelled"]

    with_service(tmp_path, body, tools=[prepared], approver=_stubborn)


@pytest.mark.parametrize("approved", ["no", 1, "yes", object()])
def test_only_true_approves_also_inside_an_answer(tmp_path, approved):
    async def body(service):
        outcome = await service.call("shell", {"command": "touch made"})
        assert (outcome.status, outcome.error.code) == ("error", "bad-approver")
        assert not (tmp_path / "workspace" / "made").exists()

    with_service(tmp_path, body, approver=lambda request: ApprovalAnswer(approved=approved))


def test_a_name_that_claims_to_equal_another_is_taken_at_its_letters(tmp_path):
    class Name(str):
        def __hash__(self):
            return hash("shell")

        def __eq__(self, other):
            return other == "shell" or str.__eq__(self, other)

    async def body(service):
        outcome = await service.call(Name("nothing"), {"command": "echo ran"})
        assert (outcome.error.code, outcome.tool) == ("unknown-tool", "nothing")

    with_service(tmp_path, body)


def test_values_that_cannot_be_written_as_they_are_do_not_lose_the_run(tmp_path):
    circle = []
    circle.append(circle)

    class Broken:
        def __str__(self):
            raise RuntimeError

    values = [10**5000, {(1, 2): 3}, Broken(), circle, float("nan"), "\udcff"]

    @tool
    async def effects(number: int, context: Context) -> str:
        context.progress("odd", value=values[number])
        return "ok"

    class Raw:
        spec = ToolSpec("raw", "python", "", {"type": "object"}, effects=Effects(readonly=True))

        async def preprocess(self, arguments, context):
            return arguments

        async def invoke(self, arguments, context):
            return Answer(text="ok", result=values[arguments["number"]])

    async def body(service):
        for number in range(len(values)):
            for name in ("effects", "raw"):
                outcome = await service.call(name, {"number": number})
                assert outcome.status == "done"
                assert service.run(outcome.run_id).status == "done"

    with_service(tmp_path, body, tools=[effects, Raw()], approver=lambda request: True)


def test_a_storm_of_cancellations_while_queued_ends_every_run_as_cancelled_or_done(tmp_path):
    @tool(readonly=True)
    async def nap() -> str:
        await asyncio.sleep(0.02)
        return "rested"

    async def body(service):
        chance = random.Random(7)
        runs = [service.call("nap") for _ in range(300)]
        loop = asyncio.get_running_loop()
        for run in runs:
            loop.call_later(chance.random() * 0.3, run.cancel)
        assert {(await run).status for run in runs} <= {"done", "cancelled"}

    with_service(tmp_path, body, tools=[nap])


def test_a_full_disk_does_not_keep_anyone_from_cancelling(tmp_path, monkeypatch):
    from haft.contracts import StorageFailed
    from haft.runs import RunWriter

    async def body(service):
        run = service.call("shell", {"command": "sleep 60"})
        while run.status != "in-progress":
            await asyncio.sleep(0.01)

        def full(self, entry):
            raise StorageFailed("full", OSError(28, "no space"))

        monkeypatch.setattr(RunWriter, "write", full)
        assert run.cancel() is True
        outcome = await run
        assert (outcome.status, outcome.error.code) == ("error", "storage-failed")
        monkeypatch.undo()

    with_service(tmp_path, body, approver=lambda request: True)


def test_an_interrupt_of_the_host_inside_a_tool_is_passed_on_and_the_run_has_ended(tmp_path):
    (tmp_path / "workspace").mkdir()

    @tool(readonly=True)
    async def interrupted() -> str:
        raise KeyboardInterrupt

    async def main():
        async with ToolService.open(tmp_path / "workspace", home=tmp_path / "home", tools=[interrupted]) as service:
            await service.call("interrupted")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())

    async def look():
        async with ToolService.open(tmp_path / "workspace", home=tmp_path / "home") as service:
            assert [run.status for run in service.runs()] == ["cancelled"]

    asyncio.run(look())
