"""What is kept open in a task of its own: opened and closed by that task, whoever asks."""

import asyncio
import contextlib
import contextvars

import pytest

from haft.sources.owner_task import OwnerTask


def test_a_task_group_of_anyio_lives_across_the_tasks_that_open_use_and_close_it():
    anyio = pytest.importorskip("anyio")

    @contextlib.asynccontextmanager
    async def server():
        send, receive = anyio.create_memory_object_stream(1)
        answers_in, answers = anyio.create_memory_object_stream(1)

        async def serve():
            async for number in receive:
                await answers_in.send(number + 1)

        async with anyio.create_task_group() as group, send, receive, answers_in, answers:
            group.start_soon(serve)

            async def ask(number):
                await send.send(number)
                return await answers.receive()

            yield ask
            group.cancel_scope.cancel()

    async def scenario():
        owned = await asyncio.create_task(OwnerTask.open(server()))
        assert [await asyncio.create_task(owned.value(number)) for number in (1, 2)] == [2, 3]
        await asyncio.create_task(owned.close())
        assert owned.is_closed

    asyncio.run(scenario())


def test_what_fails_to_open_is_told_and_what_fails_to_close_too():
    @contextlib.asynccontextmanager
    async def failing(*, late):
        if not late:
            raise OSError("it cannot be opened")
        yield 1
        raise OSError("it cannot be closed")

    async def scenario():
        with pytest.raises(OSError, match="opened"):
            await OwnerTask.open(failing(late=False))
        owned = await OwnerTask.open(failing(late=True))
        with pytest.raises(OSError, match="closed"):
            await owned.close()

    asyncio.run(scenario())


def test_it_is_closed_when_what_it_waits_for_has_ended_and_sees_no_variable_of_whoever_opened_it():
    variable = contextvars.ContextVar("variable", default="nobody")
    seen = []

    @contextlib.asynccontextmanager
    async def watched():
        seen.append(variable.get())
        yield asyncio.Event()
        seen.append("closed")

    async def scenario():
        variable.set("the first caller")
        owned = await OwnerTask.open(watched(), lambda event: event.wait())
        owned.value.set()
        await owned.close()
        assert seen == ["nobody", "closed"]

    asyncio.run(scenario())
