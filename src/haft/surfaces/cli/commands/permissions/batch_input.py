"""Reads the input of `haft permissions test --batch`: one call per line. An invalid line does not stop the others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Any, BinaryIO, Final

from haft.contracts import BadUsage, HaftError
from haft.surfaces.cli.words.json_input import parse_json

LONGEST: Final = 32_000_000
"""How many bytes of a line are read at most."""
KEYS: Final = ("tool", "args", "cwd")


async def lines_of(place: str) -> AsyncIterator[bytes]:
    """Every line of a file; `-` is standard input, which may pause between two lines."""
    try:
        # Open standard input with a reader of its own: Python closes `sys.stdin` when the program ends, which fails if
        # a thread still reads from it.
        file = open(0 if place == "-" else place, "rb", closefd=place != "-")  # noqa: SIM115  closed below
    except (OSError, ValueError) as error:
        raise BadUsage(f"the calls in {place} cannot be read: {error}") from error
    if place == "-":
        while (line := await _next_line(file)) is not None:
            yield line
        return
    with file:
        while (line := _line(file)) is not None:
            yield line


async def _next_line(file: BinaryIO) -> bytes | None:
    """The next line; None at the end. Read in a daemon thread, so that the program can end while the thread waits for
    input."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes | None] = loop.create_future()

    def settle(line: bytes | None, error: BadUsage | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(line)

    def read() -> None:
        line, error = None, None
        try:
            line = _line(file)
        except BadUsage as refused:
            error = refused
        with contextlib.suppress(RuntimeError):  # The loop has ended, and nobody waits for the line.
            loop.call_soon_threadsafe(settle, line, error)

    threading.Thread(target=read, name="haft-batch", daemon=True).start()
    return await answer


def _line(file: BinaryIO) -> bytes | None:
    """A line without its newline; None at the end. Of a line longer than `LONGEST`, only the beginning, which is then
    invalid JSON."""
    try:
        line = file.readline(LONGEST)
        whole = line
        while whole and not whole.endswith(b"\n"):
            whole = file.readline(LONGEST)
    except OSError as error:
        raise BadUsage(f"the calls cannot be read: {error.strerror}") from error
    return line.rstrip(b"\r\n") if line else None


def question_in(line: bytes) -> tuple[str, dict[str, Any], str]:
    """The tool, the arguments and the working directory that a line of input names. Bytes that are not UTF-8 become
    surrogate escapes."""
    value = parse_json(line.decode("utf-8", "surrogateescape"), "the line")
    if not isinstance(value, dict):
        raise BadUsage('the line must hold an object: {"tool": …, "args": {…}}')
    for key in value:
        if key not in KEYS:
            raise BadUsage(f"a call has no key `{key}`: the keys are {', '.join(KEYS)}")
    tool, arguments, cwd = value.get("tool"), value.get("args"), value.get("cwd", ".")
    if not isinstance(tool, str):
        raise BadUsage("the line has no `tool`")
    if not isinstance(arguments, dict | None):
        raise BadUsage("`args` must be an object")
    if not isinstance(cwd, str):
        raise BadUsage("`cwd` must be a text")
    return tool, arguments or {}, cwd


def rejected_input(error: Exception) -> dict[str, Any]:
    """The answer to a line that is not a valid call: reject."""
    if isinstance(error, HaftError):
        reason = f"{error.message}; {error.hint}" if error.hint else error.message
    else:
        reason = f"the call could not be decided: {type(error).__name__}: {error}"[:500]
    return {
        "action": "reject",
        "layer": "input",
        "rule": "a call that cannot be decided is rejected",
        "source": "haft's own rules",
        "reason": reason,
        "parts": [],
    }
