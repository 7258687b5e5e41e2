import asyncio
import concurrent.futures
import threading

import pytest

from haft.builtin.blocking import in_thread


def test_the_result_and_the_error_of_the_work_come_back():
    def fail():
        raise LookupError("no")

    assert asyncio.run(in_thread(lambda: 42)) == 42
    with pytest.raises(LookupError):
        asyncio.run(in_thread(fail))


def test_a_cancelled_call_waits_for_its_thread():
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work():
        began.set()
        may_end.wait()
        ended.set()

    async def go():
        running = asyncio.ensure_future(in_thread(work))
        await asyncio.to_thread(began.wait)
        for _ in range(3):  # impatience changes nothing
            running.cancel()
            await asyncio.sleep(0)
        assert not running.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert ended.is_set()

    asyncio.run(go())


def test_work_that_waits_for_a_thread_when_it_is_cancelled_never_begins():
    may_end, done = threading.Event(), []

    async def go():
        asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
        first = asyncio.ensure_future(in_thread(may_end.wait))
        second = asyncio.ensure_future(in_thread(lambda: done.append(1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        may_end.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        assert done == []

    asyncio.run(go())
