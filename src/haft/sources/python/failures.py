"""Turns an exception of a tool's function into an answer.

`invoke` passes every exception to this module. haft's own errors and real cancellation are raised again. Any other
exception is a failure of the tool: the answer has one sentence, and stderr has the traceback from the tool's own first
frame on. No exception of a tool may end the event loop.
"""

from __future__ import annotations

import types
from typing import Final

from haft.contracts import Answer, Failure, HaftError, ToolContext
from haft.schema import shortened

LONGEST_MESSAGE: Final = 2_000
LONGEST_TRACEBACK: Final = 20_000

_OURS: Final = "haft.sources.python."


def answer_of(error: BaseException, context: ToolContext) -> Answer:
    """The answer for an exception of the tool's function. Raises the exception again if it is an error of haft or a
    cancellation."""
    if isinstance(error, HaftError | KeyboardInterrupt) or _is_stop(error):
        raise error
    context.output("stderr", traceback_of(error).encode("utf-8", "replace"))
    return Answer(failure=Failure("tool-failed", sentence_of(error)))


def sentence_of(error: BaseException) -> str:
    """One sentence such as `ZeroDivisionError: division by zero`."""
    try:
        message = str(error)
    except Exception:  # the tool's own exception class may be broken too
        message = "<its message cannot be shown>"
    message = message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…"
    lines = [shortened(line, LONGEST_MESSAGE) for line in message.splitlines()]
    return f"{type(error).__name__}: {chr(10).join(lines)}" if lines else type(error).__name__


def traceback_of(error: BaseException) -> str:
    """The traceback of an exception, without haft's frames that come before the tool's own frames."""
    import traceback

    frames = error.__traceback__
    while frames is not None and _is_ours(frames):
        frames = frames.tb_next
    text = "".join(traceback.TracebackException(type(error), error, frames, compact=True).format())
    if len(text) > LONGEST_TRACEBACK:
        text = f"{text[: LONGEST_TRACEBACK // 2]}\n…\n{text[-LONGEST_TRACEBACK // 2 :]}"
    return text


def _is_ours(frames: types.TracebackType) -> bool:
    return str(frames.tb_frame.f_globals.get("__name__", "")).startswith(_OURS)


def _is_stop(error: BaseException) -> bool:
    """Whether an exception means that the call is being stopped. A `CancelledError` that nobody requested is the tool's
    own exception."""
    import asyncio

    if isinstance(error, GeneratorExit):
        return True
    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # there is no loop
        return False
    return task is None or task.cancelling() > 0
