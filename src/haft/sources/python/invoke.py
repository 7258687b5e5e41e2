"""A Python function as a `Tool`: how each kind of function is run.

`decorate` makes these tools, the pipeline invokes them. Coroutines run on the event loop; all other functions run in a
thread of `thread_pool` and send messages through a `channel`. Values that a function yields are output at once; its
return value is the result. A function is inspected at its first use and the result is kept, so a call costs little more
than binding its arguments. There is no sandbox: a person who passes a function to haft trusts it. Functions that are
marked as isolated are run by the module `isolated`, in a worker process that uses this module again.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

from haft.contracts import (
    Answer,
    BadConfig,
    HaftError,
    InvalidArguments,
    Provenance,
    ToolContext,
    ToolFailed,
    ToolResult,
    ToolSpec,
)
from haft.schema import Signature, problems_of, read_signature
from haft.sources.python.describe import NO_CLAIMS, Claims, describe, refuse_unbound_method
from haft.sources.python.failures import answer_of, sentence_of
from haft.sources.python.function_location import FunctionLocation, attribute, locate_function
from haft.sources.python.results import answer_from, to_bytes, to_json, to_text
from haft.sources.python.thread_pool import SpeedEstimate, run_in_thread

if TYPE_CHECKING:
    from haft.sources.python.channel import ThreadContext

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

Preprocess = Callable[[dict[str, Any]], "dict[str, Any] | Awaitable[dict[str, Any]]"]

_STEPS_AT_ONCE: Final = 32
"""How many values an asynchronous generator may yield before other tasks on the loop get their turn."""

_TO_BE_FINISHED: Final = (types.GeneratorType, types.AsyncGeneratorType)


class PythonTool(Generic[Parameters, Returned]):
    """A function that is a tool. Calling this object calls the function."""

    def __init__(
        self,
        function: Callable[Parameters, Returned],
        claims: Claims = NO_CLAIMS,
        preprocess: Preprocess | None = None,
        *,
        signature: Signature | None = None,
    ) -> None:
        if isinstance(function, PythonTool):
            raise BadConfig(f"`{function!r}` is a tool already")
        self._static = isinstance(function, staticmethod)
        self._function: Callable[..., Any] = function.__func__ if isinstance(function, staticmethod) else function
        self._claims = claims
        self._preprocess = preprocess
        self._speed = SpeedEstimate()
        self._signature = signature
        self._location: FunctionLocation | None = None
        if not callable(self._function):
            raise BadConfig(f"a tool is made of a function, not of a `{type(function).__name__}`")
        functools.update_wrapper(self, self._function, updated=())
        self._on_loop = _is_asynchronous(self._function)
        self._yields = inspect.isgeneratorfunction(self._function)
        self._is_coroutine = inspect.iscoroutinefunction(self._function)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        returned: Returned = self._function(*args, **kwargs)
        return returned

    def __get__(self, instance: object | None, owner: type | None = None) -> PythonTool[..., Any]:
        """Make a tool that is defined in a class work like a method: the attribute of an object is a tool that is bound
        to that object."""
        if instance is None or self._static or not inspect.isfunction(self._function):
            return self
        return PythonTool(types.MethodType(self._function, instance), self._claims, self._preprocess)

    def __repr__(self) -> str:
        return f"<tool {getattr(self._function, '__qualname__', self._function)}>"

    def with_provenance(self, provenance: Provenance, origin: str) -> PythonTool[Parameters, Returned]:
        """The same tool with another provenance and origin, for a tool that does not come from the program that uses
        haft."""
        return PythonTool(self._function, replace(self._claims, provenance=provenance, origin=origin), self._preprocess)

    @property
    def function(self) -> Callable[..., Any]:
        """The decorated function."""
        return self._function

    @property
    def can_notice_cancellation(self) -> bool:
        """Whether the function can notice that its call is cancelled."""
        return self._on_loop or self._yields or self._read().takes_context

    @functools.cached_property
    def spec(self) -> ToolSpec:
        described = describe(self._function, self._claims, self._read())
        return replace(described, preprocesses=self._preprocess is not None)

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        if self._preprocess is None:
            return arguments
        try:
            if inspect.iscoroutinefunction(self._preprocess):
                prepared = await self._preprocess(arguments)
            else:
                prepared = await run_in_thread(self._preprocess, arguments)
                if inspect.isawaitable(prepared):
                    prepared = await prepared
        except HaftError:
            raise
        except (Exception, SystemExit) as error:
            problem = str(error) if isinstance(error, ValueError) and str(error) else sentence_of(error)
            raise InvalidArguments(self.spec.name, [problem]) from error
        if not isinstance(prepared, dict):
            raise ToolFailed(
                f"the preprocess of `{self.spec.name}` must return the arguments as a dict, "
                f"not a `{type(prepared).__name__}`"
            )
        return prepared

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        signature = self._signature or self._read()
        if self._location is not None:
            from haft.sources.python.isolated import invoke_isolated

            return await invoke_isolated(self.spec.name, self._function, self._location, signature, arguments, context)
        try:
            if self._on_loop:
                positional, named = self._bind(signature, arguments, context)
                returned = self._function(*positional, **named)
                if self._is_coroutine:  # The same as in `_finished`, without another coroutine.
                    return _answer(signature, await returned)
            else:
                if signature.takes_context or self._yields:
                    returned = await _with_channel(context, functools.partial(self._work, signature, arguments))
                else:
                    returned = await run_in_thread(self._work, signature, arguments, None, speed=self._speed)
                if isinstance(returned, Answer):
                    return returned
                # If it is no answer, the function is a plain wrapper around a generator or coroutine function.
                if isinstance(returned, types.GeneratorType):
                    result = await _with_channel(context, functools.partial(_drain, returned))
                    return Answer(result=_result(signature, result))
            return await _finished(signature, returned, context)
        except BaseException as error:
            return answer_of(error, context)

    def start(self, arguments: dict[str, Any], context: ToolContext) -> Answer | Awaitable[Answer]:
        """Like `invoke`, for a worker process that has nothing else to do: a plain function runs at once, on this
        thread, and its answer is returned. For other functions, returns an awaitable of the answer; run this awaitable
        on a new event loop."""
        signature = self._read()
        if self._on_loop:
            return self.invoke(arguments, context)
        try:
            returned = self._work(signature, arguments, context)
        except BaseException as error:
            return answer_of(error, context)
        return returned if isinstance(returned, Answer) else _finished_or_failed(signature, returned, context)

    def _read(self) -> Signature:
        if self._signature is None:
            refuse_unbound_method(self._function)
            if self._claims.hosting == "per-call":
                self._location = self._found()
            self._signature = read_signature(self._function)
        return self._signature

    def _found(self) -> FunctionLocation:
        """The location of the function. Raises `BadConfig` if a worker process would find another object there, or
        none."""
        location = locate_function(self._function)
        try:
            found = attribute(sys.modules[location.module], location.name)
        except AttributeError:
            found = None
        if (found.function if isinstance(found, PythonTool) else found) is not self._function:
            raise BadConfig(
                f"`{location.name}` cannot be an isolated tool: `{location.module}` has another object, or none, of"
                " that name",
                hint="isolate a function that keeps its name, with `@tool` as its outermost decorator",
            )
        return location

    def _bind(self, signature: Signature, arguments: dict[str, Any], context: Any) -> tuple[list[Any], dict[str, Any]]:
        try:
            return signature.bind(arguments, context)
        except ValueError as error:
            raise InvalidArguments(self.spec.name, problems_of(error)) from error

    def _work(self, signature: Signature, arguments: dict[str, Any], context: ToolContext | None) -> Any:
        """Call the function, in a worker thread. Returns the answer; but if the function returned an awaitable or an
        asynchronous generator, returns that object unchanged."""
        positional, named = self._bind(signature, arguments, context)
        returned = self._function(*positional, **named)
        if isinstance(returned, types.GeneratorType) and context is not None:
            return Answer(result=_result(signature, _drain(returned, context)))
        if isinstance(returned, _TO_BE_FINISHED) or hasattr(type(returned), "__await__"):
            return returned
        # Converted in this thread, because converting a large result would block the loop.
        return _answer(signature, returned)


async def _with_channel(context: ToolContext, work: Callable[[ThreadContext], Any]) -> Any:
    """Run `work` in a thread, with a context that is safe to use there."""
    import asyncio

    from haft.sources.python.channel import Channel, ThreadContext

    channel = Channel(asyncio.get_running_loop())
    try:
        done = await run_in_thread(work, ThreadContext(context, channel))
    finally:
        # A thread that ends at once is ahead of the loop, and its messages are still waiting.
        channel.deliver()
        channel.close()
    if channel.error is not None:
        raise channel.error
    return done


def _is_asynchronous(function: Callable[..., Any]) -> bool:
    # `inspect` looks through partials by itself, but not into callable objects.
    called = (function, getattr(function, "__call__", None))  # noqa: B004 - the method itself is wanted
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in called)


def _answer(signature: Signature, returned: Any) -> Answer:
    """The answer for a returned value."""
    if isinstance(returned, ToolResult):
        return answer_from(returned)
    result = _result(signature, returned)
    return Answer(text=to_text(result), result=result)


def _result(signature: Signature, returned: Any) -> Any:
    if signature.dump is not None:
        try:
            returned = signature.dump(returned)
        except Exception:  # the value does not match its annotation: convert it by its own type
            return to_json(returned)
    return to_json(returned)


def _drain(generator: Generator[Any, Any, Any], context: ToolContext) -> Any:
    """Output the values of a generator, in its thread, and return its return value. If the call is cancelled, close the
    generator and return None."""
    while not context.cancelled:
        try:
            item = next(generator)
        except StopIteration as end:
            return end.value
        context.output("stdout", to_bytes(item))
    generator.close()
    return None


async def _finished(signature: Signature, returned: Any, context: ToolContext) -> Answer:
    """The answer for a returned awaitable or asynchronous generator."""
    if isinstance(returned, types.AsyncGeneratorType):
        return await _stream(returned, context)
    return _answer(signature, await returned)


async def _finished_or_failed(signature: Signature, returned: Any, context: ToolContext) -> Answer:
    try:
        return await _finished(signature, returned, context)
    except BaseException as error:
        return answer_of(error, context)


async def _stream(generator: AsyncGenerator[Any, Any], context: ToolContext) -> Answer:
    import asyncio

    count = 0
    async with aclosing(generator):
        async for item in generator:
            context.output("stdout", to_bytes(item))
            count += 1
            # A generator that never waits would block the loop for all other tasks, and could not be cancelled.
            if count % _STEPS_AT_ONCE == 0:
                await asyncio.sleep(0)
    return Answer()
