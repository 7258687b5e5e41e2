import asyncio
import contextvars
import os
import subprocess
import sys
import threading

import pytest

from haft.sources.python import abandoned, thread_pool
from haft.sources.python.thread_pool import run_in_thread


def test_a_function_runs_in_another_thread_and_its_value_comes_back():
    async def scenario():
        return await run_in_thread(lambda a: (a, threading.current_thread()), 5)

    value, thread = asyncio.run(scenario())
    assert value == 5
    assert thread is not threading.current_thread()
    assert thread.daemon


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
def test_what_it_raises_comes_back_too(error):
    def fail():
        raise error

    async def scenario():
        with pytest.raises(type(error)) as raised:
            await run_in_thread(fail)
        assert raised.value is error

    asyncio.run(scenario())


def test_a_stop_iteration_does_not_hang_the_call():
    def fail():
        raise StopIteration

    with pytest.raises(RuntimeError):
        asyncio.run(asyncio.wait_for(run_in_thread(fail), 5))


def test_an_idle_thread_is_used_again():
    async def scenario():
        return {await run_in_thread(threading.get_ident) for _ in range(50)}

    assert len(asyncio.run(scenario())) == 1


def test_each_call_in_progress_has_its_own_thread():
    async def scenario():
        barrier = threading.Barrier(40)
        await asyncio.gather(*(run_in_thread(barrier.wait, 10) for _ in range(40)))

    asyncio.run(scenario())


def test_idle_threads_end_after_a_while(monkeypatch):
    monkeypatch.setattr(thread_pool, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(thread_pool, "_idle", [])

    async def scenario():
        return await run_in_thread(threading.current_thread)

    thread = asyncio.run(scenario())
    thread.join(5)
    assert not thread.is_alive()
    assert thread_pool._idle == []


def test_context_variables_are_copied():
    variable = contextvars.ContextVar("variable", default="none")

    async def scenario():
        variable.set("seen")
        assert await run_in_thread(variable.get) == "seen"
        await run_in_thread(variable.set, "changed")
        assert variable.get() == "seen"

    asyncio.run(scenario())


def test_a_cancelled_call_abandons_its_thread_and_counts_it():
    started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def stubborn():
        started.set()
        go_on.wait(10)
        ended.set()

    async def scenario():
        task = asyncio.ensure_future(run_in_thread(stubborn))
        await run_in_thread(started.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert abandoned() == 1
        go_on.set()
        await run_in_thread(ended.wait, 5)
        while abandoned():
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert abandoned() == 0


def test_a_result_that_comes_after_the_loop_was_closed_makes_no_noise():
    code = """
import asyncio, threading
from haft.sources.python.thread_pool import run_in_thread
started, go_on = threading.Event(), threading.Event()
def late():
    started.set()
    go_on.wait(10)
async def main():
    task = asyncio.ensure_future(run_in_thread(late))
    while not started.is_set():
        await asyncio.sleep(0)
    task.cancel()
asyncio.run(main())
go_on.set()
while [thread for thread in threading.enumerate() if thread.name == "haft tool"] and __import__(
    "haft.sources.python.thread_pool", fromlist=["x"]
).abandoned():
    pass
print("end")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)


def test_a_thread_that_never_ends_does_not_keep_the_interpreter():
    code = """
import asyncio, threading
from haft.sources.python.thread_pool import run_in_thread
async def main():
    task = asyncio.ensure_future(run_in_thread(threading.Event().wait))
    await asyncio.sleep(0.01)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_uses_no_thread_of_its_parent():
    code = """
import asyncio, os
from haft.sources.python.thread_pool import run_in_thread
async def main():
    return await run_in_thread(lambda: 7)
assert asyncio.run(main()) == 7
child = os.fork()
if child == 0:
    os._exit(asyncio.run(asyncio.wait_for(main(), 10)))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "7"
