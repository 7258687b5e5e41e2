"""The program of a worker process: runs one function of an isolated tool, then ends.

`isolated` starts this program with a request on stdin. The function runs on the main thread, its prints are sent at
once, and its answer is the same as `invoke` would return in the host's process. The program does not confine itself:
the host started it in a sandbox.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

from haft.contracts import (
    NO_SECRETS,
    Answer,
    EndedChild,
    Failure,
    HaftError,
    Launcher,
    Limits,
    Question,
    QuestionMethod,
    RunId,
    Stream,
    ThreadId,
    ToolFailed,
    Workspace,
)
from haft.schema import Signature
from haft.sources.python.describe import Claims
from haft.sources.python.failures import sentence_of, traceback_of
from haft.sources.python.frames import FrameWriter, write_all
from haft.sources.python.function_location import GUARD, FunctionLocation, attribute, load
from haft.sources.python.host_calls import HostInput, ask_through_host, call_through_host, own_input
from haft.sources.python.invoke import PythonTool
from haft.sources.python.results import to_json, to_text


def main(request: Mapping[str, Any]) -> NoReturn:
    """Carry out the request, send the answer, and end the process."""
    # The writer gets a duplicate of the descriptor, because a function may redirect stdout.
    writer = FrameWriter(bytes.fromhex(request["marker"]), os.dup(1))
    answers = HostInput(own_input())
    sys.stdout = sys.__stdout__ = _prints(1, "replace")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _prints(2, "backslashreplace")  # type: ignore[misc]
    context = WorkerContext(request["context"], writer, answers)
    try:
        answer = _answer(request, context)
        fields = {
            "result": answer.result,
            "has_text": answer.text is not None,
            "failure": None if answer.failure is None else answer.failure.to_json(),
        }
        if answer.content or (answer.text is not None and answer.text != to_text(answer.result)):
            fields |= {"text": answer.text, "content": [dict(block) for block in answer.content]}
        writer.message({"answer": fields})
    except BaseException as error:
        if context.cancelled:
            os._exit(128 + signal.SIGTERM)
        failure = error.failure() if isinstance(error, HaftError) else Failure("tool-failed", sentence_of(error))
        writer.message({"answer": {"result": None, "has_text": False, "failure": failure.to_json()}})
    import atexit

    # Threads that the function left running are not awaited: nobody would read their output.
    atexit._run_exitfuncs()
    os._exit(0)


class WorkerContext:
    """A tool's context in a worker process. It sends output, calls and progress to the host, in order, from any
    thread."""

    def __init__(self, facts: Mapping[str, Any], writer: FrameWriter, answers: HostInput) -> None:
        self._answers = answers
        self.chain = tuple(RunId(run) for run in facts["chain"])
        self.run = RunId(facts["run"])
        self.thread = ThreadId(facts["thread"])
        self.who: str = facts["who"]
        self.cwd: str = facts["cwd"]
        self.env: Mapping[str, str] = facts["env"]
        self.config: Mapping[str, Any] = facts["config"]
        self.limits = Limits(**facts["limits"])
        self.secrets = NO_SECRETS
        self._can_ask: Sequence[str] = facts["canAsk"]
        self.cancelled = False
        self._root: str = facts["root"]
        self._workspace: Workspace | None = None
        self._writer = writer

    @property
    def workspace(self) -> Workspace:
        if self._workspace is None:
            from haft.files import Root

            self._workspace = Root(self._root)
        return self._workspace

    @property
    def launcher(self) -> Launcher:
        raise ToolFailed(
            "an isolated tool has no launcher: it starts processes itself",
            hint="use `subprocess`: what it starts has the same sandbox and limits, and ends with the call",
        )

    def output(self, stream: Stream, data: bytes) -> None:
        data = bytes(memoryview(data))
        if stream == "stderr":
            self._writer.stderr(data)
        else:
            write_all(1, data)

    def ask(self, *questions: Question) -> Any:
        return ask_through_host(self._writer, self._answers, questions)

    def can_ask(self, method: QuestionMethod = "elicitation/create") -> bool:
        return method in self._can_ask

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        return call_through_host(self._writer, self._answers, name, arguments, timeout)

    def stderr_only(self, data: bytes, stream: Stream = "stderr") -> None:
        self.output("stderr", data)

    def program_log(self, text: str, *, is_shared: bool) -> None:
        """Do nothing: a function has no log of its own."""

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        """Do nothing: the host sees by itself which processes this worker left running."""

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None:
        self._writer.message({"progress": {"message": message, "fraction": fraction, "facts": to_json(facts)}})


class _Prints(io.RawIOBase):
    """A standard stream without a buffer: prints are written at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        write_all(self._descriptor, view)
        return len(view)


def _prints(descriptor: int, errors: str) -> io.TextIOWrapper:
    # Without a buffer, like `python -u`. The cast is needed only because the type annotation wants a buffer.
    return io.TextIOWrapper(cast("io.BufferedWriter", _Prints(descriptor)), "utf-8", errors, write_through=True)


def _answer(request: Mapping[str, Any], context: WorkerContext) -> Answer:
    location = FunctionLocation(**request["home"])
    try:
        function = _function(location)
    except BaseException as error:
        if not isinstance(error, HaftError):
            context.output("stderr", traceback_of(error).encode("utf-8", "replace"))
        problem = error.message if isinstance(error, HaftError) else sentence_of(error)
        raise ToolFailed(
            f"`{request['tool']}` cannot be loaded in its worker process: {problem}",
            hint="a worker process imports the tool's module by its name" if location.how == "module" else GUARD,
        ) from error
    call = request["call"]
    claims = Claims(name=request["tool"])
    tool = PythonTool(function, claims, signature=None if "arguments" in call else _bound(call))
    task = _Task()
    if tool.can_notice_cancellation:
        # For a function that cannot notice its cancellation, SIGTERM keeps its default and ends this process at once.
        signal.signal(signal.SIGTERM, lambda *_: _cancel(context, task))
    started = tool.start(call.get("arguments", {}), context)
    if isinstance(started, Answer):
        return started
    import asyncio

    return asyncio.run(task.until(started))


def _function(location: FunctionLocation) -> Callable[..., Any]:
    found = attribute(load(location), location.name)
    function: Callable[..., Any] = found.function if isinstance(found, PythonTool) else found
    return function


def _bound(call: Mapping[str, Any]) -> Signature:
    """A signature whose `bind` returns the arguments that the host has already bound, and adds only the context."""
    positional, named, place = call["positional"], call["named"], call["context"]

    def bind(arguments: Mapping[str, Any], context: Any) -> tuple[list[Any], dict[str, Any]]:
        if isinstance(place, int):
            positional[place] = context
        elif place is not None:
            named[place] = context
        return positional, named

    return Signature("", {}, None, place is not None, bind, None)


class _Task:
    """Awaits an answer in the current task so that `cancel` can cancel that task from any thread. Before `until` is
    called, `cancel` does nothing."""

    def __init__(self) -> None:
        self.cancel: Callable[[], object] = lambda: None

    async def until(self, started: Awaitable[Answer]) -> Answer:
        import asyncio

        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        return await started


def _cancel(context: WorkerContext, task: _Task) -> None:
    context.cancelled = True
    task.cancel()
