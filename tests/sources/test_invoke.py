import asyncio
import dataclasses
import functools
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from haft.contracts import Answer, Conflict, InvalidArguments, ToolContext, ToolFailed
from haft.sources.python import abandoned, thread_pool, tool


def invoke(function, arguments, context):
    return asyncio.run(asyncio.wait_for(tool(function).invoke(arguments, context), 20))


def test_sync_and_async_functions_answer_alike(context):
    def plain(a: int, b: int) -> int:
        return a + b

    async def asynchronous(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    for function in (plain, asynchronous):
        assert invoke(function, {"a": 1, "b": 2}, context) == Answer(text="3", result=3)


def test_a_sync_function_never_blocks_the_loop(context):
    released = threading.Event()

    def wait() -> bool:
        return released.wait(10)

    async def scenario():
        call = asyncio.ensure_future(tool(wait).invoke({}, context))
        await asyncio.sleep(0)  # the loop goes on while the function waits
        released.set()
        return await call

    assert asyncio.run(scenario()).result is True


def test_arguments_become_python_values(context):
    class Point(BaseModel):
        x: int

    def move(point: Point, by: int = 1) -> Point:
        return Point(x=point.x + by)

    answer = invoke(move, {"point": {"x": 1}}, context)
    assert answer == Answer(text='{"x": 2}', result={"x": 2})


def test_arguments_that_do_not_fit_are_the_callers_fault(context):
    def add(a: int): ...

    with pytest.raises(InvalidArguments, match="`a`"):
        invoke(add, {"a": "x"}, context)
    with pytest.raises(InvalidArguments, match="`b`"):
        invoke(add, {"a": 1, "b": 2}, context)


@pytest.mark.parametrize(
    ("value", "text"),
    [("plain", "plain"), (None, ""), (True, "true"), (1.5, "1.5"), ([1, "ä"], '[1, "ä"]'), (b"raw\xff", "raw�")],
)
def test_the_text_is_what_a_person_reads(context, value, text):
    assert invoke(lambda_returning(value), {}, context).text == text


def lambda_returning(value):
    def give():
        return value

    return give


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_any_json_value_comes_back_as_it_is(value):
    async def give():
        return value

    answer = asyncio.run(tool(give).invoke({}, None))
    assert answer.result == value
    assert type(answer.result) is type(value)


def test_what_json_cannot_say_does_not_break_it(context):
    class Text(str): ...

    @dataclasses.dataclass
    class Row:
        value: float

    given_back = {
        "nan": math.nan,
        "infinite": [math.inf, -math.inf],
        "row": Row(math.nan),
        "set": {1},
        "bytes": b"\xff",
        "surrogate": "\ud800",
        "text": Text("x"),
        "object": Text,
    }
    result = invoke(lambda_returning(given_back), {}, context).result
    assert result["nan"] is None
    assert result["infinite"] == [None, None]
    assert result["row"] == {"value": None}
    assert result["set"] == [1]
    assert result["surrogate"] == "?"
    assert result["text"] == "x"
    assert isinstance(result["object"], str)
    assert invoke(lambda_returning({1: 2}), {}, context).result == {"1": 2}


def test_a_result_that_contains_itself_is_a_failure_in_words(context):
    circle = []
    circle.append(circle)
    for value in (circle, {"a": {1, 2}, "b": circle}):
        with pytest.raises(ToolFailed, match="JSON"):
            invoke(lambda_returning(value), {}, context)


def test_a_value_that_breaks_its_annotation_is_written_for_what_it_is(context):
    def promise() -> list[int]:
        return "no list"

    assert invoke(promise, {}, context).result == "no list"


def test_an_exception_is_a_failure_with_the_tools_own_traceback(context):
    def divide(a: int):
        return inner(a)

    def inner(a):
        return a / 0

    async def asynchronous(a: int):
        return inner(a)

    for function in (divide, asynchronous):
        context.events.clear()
        answer = invoke(function, {"a": 1}, context)
        assert (answer.failure.code, answer.failure.message) == (
            "tool-failed",
            "ZeroDivisionError: division by zero",
        )
        shown = context.text("stderr")
        assert "in inner" in shown
        assert "haft/sources" not in shown


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), StopIteration()])
def test_nothing_a_tool_raises_ends_the_loop(context, error):
    def plain():
        raise error

    answer = invoke(plain, {}, context)
    assert answer.failure.code == "tool-failed"


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()])
def test_nothing_an_async_tool_raises_ends_the_loop(context, error):
    async def asynchronous():
        raise error

    answer = invoke(asynchronous, {}, context)
    assert answer.failure.code == "tool-failed"
    assert answer.failure.message.startswith(type(error).__name__)


def test_a_keyboard_interrupt_is_the_persons_and_goes_through(context):
    async def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(tool(interrupted).invoke({}, context))


def test_an_exception_that_cannot_be_printed_is_told_all_the_same(context):
    class Broken(Exception):
        def __str__(self):
            raise RuntimeError

    def fail():
        raise Broken

    assert invoke(fail, {}, context).failure.message == "Broken: <its message cannot be shown>"


def test_haft_errors_go_through_as_they_are(context):
    def fail():
        raise Conflict("changed meanwhile")

    with pytest.raises(Conflict):
        invoke(fail, {}, context)


def test_a_sync_function_reports_on_the_loops_thread_in_order(context):
    def work(context: ToolContext) -> str:
        for step in range(200):
            context.progress(f"step {step}", fraction=step / 200)
            context.output("stdout", b"%d\n" % step)
        return context.who

    assert invoke(work, {}, context).result == "tester"
    assert context.threads == {threading.current_thread()}
    assert context.events == [
        event for step in range(200) for event in (("progress", f"step {step}", step / 200), ("stdout", b"%d\n" % step))
    ]


class ImmediateWorker:
    """A worker whose jobs have ended before the loop can run again."""

    def __init__(self):
        self.jobs = self

    def put(self, job):
        thread = threading.Thread(target=job.run, args=(self,))
        thread.start()
        thread.join()


def test_the_messages_of_a_function_that_ends_before_the_loop_runs_are_kept(context, monkeypatch):
    monkeypatch.setattr(thread_pool, "_idle", [])
    monkeypatch.setattr(thread_pool, "_worker", ImmediateWorker)

    def work(context: ToolContext) -> str:
        context.output("stdout", b"written")
        context.progress("done")
        return "returned"

    def fail(context: ToolContext):
        context.output("stdout", b"written before the failure")
        raise ValueError("wrong")

    assert invoke(work, {}, context).result == "returned"
    assert context.events == [("stdout", b"written"), ("progress", "done", None)]
    assert invoke(fail, {}, context).failure.message == "ValueError: wrong"
    assert ("stdout", b"written before the failure") in context.events


def test_wrong_output_fails_in_the_tool_and_not_on_the_loop(context):
    def work(context: ToolContext):
        context.output("stdout", "text")

    assert invoke(work, {}, context).failure.message.startswith("TypeError")


def test_what_goes_wrong_on_the_loops_side_reaches_the_tool(context):
    def refuse(stream, data):
        raise ToolFailed("no more room")

    context.output = refuse

    def work(context: ToolContext):
        context.output("stdout", b"x")

    with pytest.raises(ToolFailed, match="no more room"):
        invoke(work, {}, context)


def test_generators_stream_and_return(context):
    def count(n: int):
        for number in range(n):
            yield f"line {number}\n"
        yield b"raw\n"
        yield {"n": n}
        return n

    answer = invoke(count, {"n": 2}, context)
    assert answer == Answer(text=None, result=2)
    assert [data for _, data in context.events] == [b"line 0\n", b"line 1\n", b"raw\n", b'{"n": 2}\n']


def test_async_generators_stream(context):
    async def count(n: int):
        for number in range(n):
            yield str(number)
            await asyncio.sleep(0)

    assert invoke(count, {"n": 3}, context) == Answer()
    assert context.text("stdout") == "012"


def test_a_wrapper_around_a_generator_or_a_coroutine_is_seen_through(context):
    def wrapped(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @wrapped
    def lines():
        yield "a"
        return 1

    @wrapped
    async def answer():
        return 2

    @wrapped
    async def stream():
        yield "b"

    assert invoke(lines, {}, context).result == 1
    assert invoke(answer, {}, context).result == 2
    invoke(stream, {}, context)
    assert context.text("stdout") == "ab"


def test_an_endless_generator_waits_for_the_loop_and_ends_with_its_call(context):
    ahead = 0
    closed = threading.Event()

    def endless():
        nonlocal ahead
        try:
            while True:
                ahead += 1
                yield "x" * 65_536
        finally:
            closed.set()

    async def scenario():
        most = 0
        call = asyncio.ensure_future(tool(endless).invoke({}, context))
        for _ in range(20):
            await asyncio.sleep(0.001)
            most = max(most, ahead - len(context.events))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while not closed.is_set() or abandoned():
            await asyncio.sleep(0)
        return most

    assert asyncio.run(asyncio.wait_for(scenario(), 20)) <= 10


def test_an_async_generator_that_never_waits_can_be_cancelled(context):
    closed = []

    async def endless():
        try:
            while True:
                yield "x"
        finally:
            closed.append(True)

    async def scenario():
        call = asyncio.ensure_future(tool(endless).invoke({}, context))
        await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert closed == [True]


def test_a_cancelled_sync_function_can_see_it_and_is_heard_no_more(context):
    started, ended = threading.Event(), threading.Event()

    def work(context: ToolContext):
        started.set()
        while not context.cancelled:
            pass
        context.output("stdout", b"late")
        ended.set()

    async def scenario():
        call = asyncio.ensure_future(tool(work).invoke({}, context))
        while not started.is_set():
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while not ended.is_set():
            await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert context.events == []


@pytest.mark.parametrize("asynchronous", [True, False])
def test_preprocess_returns_the_arguments_that_count(context, asynchronous):
    def lower(arguments):
        return {**arguments, "name": arguments["name"].lower()}

    async def lower_later(arguments):
        return lower(arguments)

    greet = tool(preprocess=lower_later if asynchronous else lower)(lambda_returning(1))
    assert asyncio.run(greet.preprocess({"name": "X"}, context)) == {"name": "x"}
    assert asyncio.run(tool(lambda_returning(1)).preprocess({"name": "X"}, context)) == {"name": "X"}


def test_a_preprocess_that_refuses_makes_invalid_arguments(context):
    def refuse(arguments):
        raise ValueError("the name is taken")

    def crash(arguments):
        return arguments["missing"]

    def wrong(arguments):
        return [1]

    def attempt(function):
        asyncio.run(tool(preprocess=function)(lambda_returning(1)).preprocess({}, context))

    with pytest.raises(InvalidArguments, match="the name is taken"):
        attempt(refuse)
    with pytest.raises(InvalidArguments, match="KeyError: 'missing'"):
        attempt(crash)
    with pytest.raises(ToolFailed, match="not a `list`"):
        attempt(wrong)
