"""Runs in the host: calls an isolated tool, whose function runs in a worker process, in the sandbox of a command.

`invoke` uses this module for tools that are `isolated`. The worker gets the request on stdin; `frames` separates the
worker's messages from its output. The function's code does not run in the host. Only the tool's `preprocess` does,
before the call is decided, as for all tools.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, get_args

from haft.contracts import (
    Answer,
    Command,
    EndedChild,
    Exit,
    Failure,
    HaftError,
    InvalidArguments,
    QuestionMethod,
    StartFailed,
    Stream,
    ToolContext,
    ToolResult,
)
from haft.files import steps_of
from haft.schema import Signature, problems_of
from haft.sources.python.frames import END, PART, STDERR, FrameReader, new_marker
from haft.sources.python.function_location import FunctionLocation, refuse_while_loading
from haft.sources.python.plain_types import is_plain_function, is_plain_value
from haft.sources.python.results import answer_from, to_json, to_text, valid_text
from haft.sources.python.worker_calls import WorkerCalls

TOOL_ERROR_CODES: Final = ("tool-failed", "invalid-arguments", "conflict")
LARGEST_MESSAGE: Final = 4_000_000
"""The most bytes of JSON in one message of a worker, such as its result. The size is limited because parsing a message
blocks the loop."""

PROGRAM: Final = (
    "import json, sys; request = json.loads(sys.stdin.buffer.readline()); sys.path[:] = request['path']; "
    "from haft.sources.python.worker import main; main(request)"
)
"""The code that a worker starts with. Before it sets the search path of the host, it imports only modules of the
standard library."""


async def invoke_isolated(
    name: str,
    function: Callable[..., Any],
    location: FunctionLocation,
    signature: Signature,
    arguments: dict[str, Any],
    context: ToolContext,
) -> Answer:
    """Run a function in a worker process and return its answer. Errors of the launcher are raised unchanged."""
    return await run_in_worker(name, location, _call(name, function, signature, arguments), context)


async def run_in_worker(name: str, location: FunctionLocation, call: Mapping[str, Any], context: ToolContext) -> Answer:
    """Run the function at a location in a worker process and return its answer. The host need not have loaded the
    function: if `call` has unbound arguments, the worker binds them."""
    refuse_while_loading()
    marker = new_marker()
    request = {
        "marker": marker.hex(),
        "path": search_path(),
        "tool": name,
        "home": asdict(location),
        "call": dict(call),
        "context": {
            "run": context.run,
            "thread": context.thread,
            "who": context.who,
            "cwd": context.cwd,
            "env": dict(context.env),
            "config": to_json(dict(context.config)),
            "limits": asdict(context.limits),
            "root": context.workspace.root,
            "chain": list(context.chain),
            "canAsk": [method for method in get_args(QuestionMethod) if context.can_ask(method)],
        },
    }
    try:
        written = json.dumps(request).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArguments(name, [f"the arguments cannot be written as JSON: {error}"]) from error
    listener = Listener(context, marker)
    command = Command(
        worker_argv(),
        cwd=context.workspace.locate(context.cwd),
        env=context.env,
        stdin=written,
        readable=tuple(dict.fromkeys(_readable(location))),
        on_start=listener.calls.begun,
    )
    try:
        end = await context.launcher.run(command, listener)
    finally:
        listener.close()
    if listener.answer is not None:
        return listener.answer
    failure = Failure("tool-failed", listener.problem or f"the worker process of `{name}` {_how_it_ended(end)}")
    return Answer(exit_code=end.code, failure=failure)


class Listener:
    """Receives everything that a worker writes: passes its output on, carries out its messages and keeps its answer."""

    def __init__(self, context: ToolContext, marker: bytes) -> None:
        self.answer: Answer | None = None
        """The first answer of the worker; None until then. Later answers are ignored."""
        self.problem: str | None = None
        """Why there is no answer although the worker sent a message."""
        self.calls = WorkerCalls()
        self._context = context
        self._frames = FrameReader(marker, self._print, self._piece)
        self._message = bytearray()

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stdout":
            self._frames.feed(data)
        else:
            self._context.output(stream, data)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._context.processes_ended(children)

    def close(self) -> None:
        self._frames.close()

    def _print(self, data: bytes) -> None:
        self._context.output("stdout", data)

    def _piece(self, kind: bytes, data: bytes) -> None:
        if kind == STDERR:
            self._context.output("stderr", data)
        elif len(self._message) + len(data) > LARGEST_MESSAGE:
            self.problem = f"the tool's result is too large: more than {LARGEST_MESSAGE:_} bytes as JSON"
            self._message.clear()
        elif kind in (PART, END) and self.problem is None:
            self._message += data
            if kind == END:
                message = bytes(self._message)
                self._message.clear()
                self._hear(message)

    def _hear(self, message: bytes) -> None:
        # A function can forge these messages, so every field is checked.
        try:
            fields = json.loads(message)
            if "progress" in fields:
                self._progress(**fields["progress"])
            elif "call" in fields:
                self.calls.make(fields["call"], self._context)
            elif "ask" in fields:
                self.calls.ask(fields["ask"], self._context)
            elif self.answer is None:
                self.answer = _answer(**fields["answer"])
        except HaftError:
            raise
        except (TypeError, ValueError, LookupError, RecursionError):
            self.problem = "the worker process sent a message that cannot be understood"

    def _progress(self, message: Any, fraction: Any, facts: Mapping[str, Any]) -> None:
        known = fraction if isinstance(fraction, int | float) else None
        self._context.progress(valid_text(str(message)), fraction=known, **to_json(facts))


def search_path() -> list[str]:
    """The module search path of this process. The paths are absolute, because a worker starts in another directory."""
    entries: list[Any] = sys.path
    return [os.path.abspath(entry) for entry in entries if isinstance(entry, str)]


def worker_argv() -> list[str]:
    """The command that starts a worker: the interpreter of this process, with the same UTF-8 mode and optimization. Its
    other options: `-P` keeps the start directory, which is the workspace, off the search path; `-E` ignores Python's
    environment variables, so that a call cannot change the search path; `-B` writes no bytecode files."""
    if not sys.executable:
        raise StartFailed("an isolated tool needs a Python interpreter, and `sys.executable` names none")
    modes = ["-E", "-P", "-B", "-X", f"utf8={sys.flags.utf8_mode}", *["-O"] * sys.flags.optimize]
    if sys.flags.no_user_site:
        modes.append("-s")
    return [sys.executable, *modes, "-c", PROGRAM]


def _call(name: str, function: Callable[..., Any], signature: Signature, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the call, as the worker gets them. The host binds them to the function's parameters if that runs
    no code of the tool's author; else the worker binds them."""
    if is_plain_function(function, signature):
        slot = object()
        try:
            positional, named = signature.bind(arguments, slot)
        except ValueError as error:
            raise InvalidArguments(name, problems_of(error)) from error
        values: list[tuple[int | str, Any]] = [*enumerate(positional), *named.items()]
        place = next((key for key, value in values if value is slot), None)
        if isinstance(place, int):
            positional[place] = None
        elif place is not None:
            del named[place]
        if is_plain_value([positional, named]):
            return {"positional": positional, "named": named, "context": place}
    return {"arguments": arguments}


def _answer(
    result: Any, has_text: bool, failure: Mapping[str, Any] | None, text: Any = None, content: Any = None
) -> Answer:
    result = to_json(result)
    if content is not None:
        made = answer_from(ToolResult(text or "", result, content, is_error=failure is not None))
        return replace(made, text=made.text if text is not None else None)
    if failure is None:
        return Answer(text=to_text(result) if has_text else None, result=result)
    hint = failure["hint"]
    return Answer(
        failure=Failure(
            # Codes about the sandbox may come only from the host: with them, a tool could make people open it.
            code if (code := str(failure["code"])) in TOOL_ERROR_CODES else "tool-failed",
            str(failure["message"]),
            None if hint is None else str(hint),
            bool(failure["retryable"]),
        )
    )


def _readable(location: FunctionLocation) -> Iterator[str]:
    """The paths that the worker must be able to read: Python, haft, and the modules that the host finds."""
    prefixes = (sys.prefix, sys.base_prefix)
    yield from prefixes
    yield from (os.path.dirname(step) for step in steps_of(sys.executable))
    for place in (*_own_places(location), *search_path()):
        real = os.path.realpath(place)
        if not os.path.exists(real) or _holds_the_home(real):
            continue
        for path in (place, real):
            if not any(_is_beneath(path, prefix) for prefix in prefixes):
                yield path


def _own_places(location: FunctionLocation) -> Iterator[str]:
    # In addition to the search path, because an editable install does not lie on it.
    yield from sys.modules[__name__.partition(".")[0]].__path__
    if location.how in ("file", "entry"):
        yield location.place
    for name in (location.module, location.module.partition(".")[0]):
        module = sys.modules.get(name)
        for place in (getattr(module, "__file__", None), *getattr(module, "__path__", ())):
            if isinstance(place, str):
                yield os.path.abspath(place)


def _holds_the_home(path: str) -> bool:
    """Whether a path contains the home directory. If a program lies directly in the home directory, that whole
    directory is on its search path, but the worker must not be able to read all of it."""
    return _is_beneath(os.path.realpath(os.path.expanduser("~")), path)


def _is_beneath(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _how_it_ended(end: Exit) -> str:
    if end.signal is None:
        return f"exited {end.code} before it answered"

    try:
        name = f" ({signal.Signals(end.signal).name})"
    except ValueError:
        name = ""
    return f"was ended by signal {end.signal}{name} before it answered"
