"""The host's side of an isolated tool: its function is run in a worker process, behind whatever confines commands.

`invoke` comes here for tools that say `isolated`. The request goes to the worker on its stdin; what comes back is
output, told apart from messages by `frames`. The function's code is not run here. Its `preprocess` is, before, in the
host's process like everyone's.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from haft.contracts import (
    Answer,
    Command,
    EndedChild,
    Exit,
    Failure,
    HaftError,
    InvalidArguments,
    StartFailed,
    Stream,
    ToolContext,
)
from haft.files import steps_of
from haft.schema import Signature, problems_of
from haft.sources.python.frames import END, PART, STDERR, Frames, new_marker
from haft.sources.python.function_location import Home, refuse_while_loading
from haft.sources.python.plain_types import is_plain_function, is_plain_value
from haft.sources.python.results import to_json, to_text, valid_text
from haft.sources.python.worker_calls import WorkerCalls

SAID_BY_TOOLS: Final = ("tool-failed", "invalid-arguments", "conflict")
LARGEST_MESSAGE: Final = 4_000_000
"""Bytes: it is taken apart on the loop, and while that lasts nothing else is done."""
"""Bytes of JSON that a worker may say at once: its result, mostly."""

PROGRAM: Final = (
    "import json, sys; request = json.loads(sys.stdin.buffer.readline()); sys.path[:] = request['path']; "
    "from haft.sources.python.worker import main; main(request)"
)
"""Nothing but Python's own modules is imported before the host's path stands."""


async def invoke_isolated(
    name: str,
    function: Callable[..., Any],
    home: Home,
    signature: Signature,
    arguments: dict[str, Any],
    context: ToolContext,
) -> Answer:
    """Run a function in a worker process and answer for it. The launcher's own errors go through as they are."""
    return await run_in_worker(name, home, _call(name, function, signature, arguments), context)


async def run_in_worker(name: str, home: Home, call: Mapping[str, Any], context: ToolContext) -> Answer:
    """The same, for a function that the host itself has not loaded: its arguments are bound in the worker."""
    refuse_while_loading()
    marker = new_marker()
    request = {
        "marker": marker.hex(),
        "path": search_path(),
        "tool": name,
        "home": asdict(home),
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
        readable=tuple(dict.fromkeys(_readable(home))),
        begun=listener.calls.begun,
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
    """The sink of a worker's output: hands on what is output, and keeps the answer."""

    def __init__(self, context: ToolContext, marker: bytes) -> None:
        self.answer: Answer | None = None
        """The first one counts."""
        self.problem: str | None = None
        """Why there is none although the worker spoke."""
        self.calls = WorkerCalls()
        self._context = context
        self._frames = Frames(marker, self._print, self._piece)
        self._message = bytearray()

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stdout":
            self._frames.feed(data)
        else:
            self._context.output(stream, data)

    def ended(self, children: Sequence[EndedChild]) -> None:
        self._context.ended(children)

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
        # What a function does to its own process it can also do to these messages: nothing is taken on trust.
        try:
            said = json.loads(message)
            if "progress" in said:
                self._progress(**said["progress"])
            elif "call" in said:
                self.calls.make(said["call"], self._context)
            elif self.answer is None:
                self.answer = _answer(**said["answer"])
        except HaftError:
            raise
        except (TypeError, ValueError, LookupError, RecursionError):
            self.problem = "the worker process said something that cannot be understood"

    def _progress(self, message: Any, fraction: Any, facts: Mapping[str, Any]) -> None:
        known = fraction if isinstance(fraction, int | float) else None
        self._context.progress(valid_text(str(message)), fraction=known, **to_json(facts))


def search_path() -> list[str]:
    """Where this process looks for modules, as it looks from here: a worker stands in another directory."""
    entries: list[Any] = sys.path
    return [os.path.abspath(entry) for entry in entries if isinstance(entry, str)]


def worker_argv() -> list[str]:
    """This interpreter, in this one's mode. `-P`: the directory that it starts in, the workspace, is nowhere it looks
    for modules; `-E`: neither are places that variables of the call name; `-B`: it leaves no files behind."""
    if not sys.executable:
        raise StartFailed("an isolated tool needs a Python to run in, and this program does not know of one")
    modes = ["-E", "-P", "-B", "-X", f"utf8={sys.flags.utf8_mode}", *["-O"] * sys.flags.optimize]
    if sys.flags.no_user_site:
        modes.append("-s")
    return [sys.executable, *modes, "-c", PROGRAM]


def _call(name: str, function: Callable[..., Any], signature: Signature, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, bound already where that is all that is to be done with them."""
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


def _answer(result: Any, has_text: bool, failure: Mapping[str, Any] | None) -> Answer:
    result = to_json(result)
    if failure is None:
        return Answer(text=to_text(result) if has_text else None, result=result)
    hint = failure["hint"]
    return Answer(
        failure=Failure(
            # What the sandbox and the limits did is for the host to say: a tool could make people open the sandbox.
            code if (code := str(failure["code"])) in SAID_BY_TOOLS else "tool-failed",
            str(failure["message"]),
            None if hint is None else str(hint),
            bool(failure["retryable"]),
        )
    )


def _readable(home: Home) -> Iterator[str]:
    """What the worker must be able to read: Python, haft, and the modules that the host finds."""
    prefixes = (sys.prefix, sys.base_prefix)
    yield from prefixes
    yield from (os.path.dirname(step) for step in steps_of(sys.executable))
    for place in (*_own_places(home), *search_path()):
        real = os.path.realpath(place)
        if not os.path.exists(real) or _holds_the_home(real):
            continue
        for path in (place, real):
            if not any(_is_beneath(path, prefix) for prefix in prefixes):
                yield path


def _own_places(home: Home) -> Iterator[str]:
    # Named besides the search path: an editable install is found by other ways than that.
    yield from sys.modules[__name__.partition(".")[0]].__path__
    if home.how in ("file", "entry"):
        yield home.place
    for name in (home.module, home.module.partition(".")[0]):
        module = sys.modules.get(name)
        for place in (getattr(module, "__file__", None), *getattr(module, "__path__", ())):
            if isinstance(place, str):
                yield os.path.abspath(place)


def _holds_the_home(path: str) -> bool:
    """A program in the home directory has all of it on its search path. That is no reason to show all of it."""
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
