"""Asking at the terminal: the whole call as it would run, and a question that only `y` answers with yes.

Arguments are shown in full, never cut, with everything invisible written as an escape: what is agreed to is what is
seen. Of a call that was tried, its changes are shown instead. What was typed before the question stood there does not
answer it. Reading happens in a thread that can be called off, so that a cancelled call does not wait for a person.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
import termios
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from haft.contracts import ApprovalAnswer, ApprovalRequest, Approver, BadUsage
from haft.surfaces.cli.diff import coloured
from haft.surfaces.cli.display import Display
from haft.surfaces.cli.interrupts import Interrupts
from haft.surfaces.cli.printing import complain, to_json_text
from haft.surfaces.cli.terminal import is_terminal, styled, visible, width
from haft.surfaces.cli.walls import walls_words
from haft.surfaces.cli.written_json import parse_json

QUESTION = "Approve {tool}? [y/N/e(dit)] "
COMMIT = "Commit? [y/N] "
MOST_LINES = 200
"""Of a diff, in a question."""
MOST_COLUMNS = 1000


async def approve_all(_request: ApprovalRequest) -> ApprovalAnswer:
    """`--approve`: the person calling has said so beforehand."""
    return ApprovalAnswer(approved=True, message="approved beforehand, by --approve")


def approver_here(interrupts: Interrupts, workspace: str, display: Display) -> Approver | None:
    """Whoever sits at the terminal; None where there is no terminal to ask at."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None

    async def ask(request: ApprovalRequest) -> ApprovalAnswer:
        if request.diff is not None:
            return await _asked_after(request, request.diff, display)
        return await _asked(request, interrupts, workspace)

    return ask


async def _asked_after(request: ApprovalRequest, diff: str, display: Display) -> ApprovalAnswer:
    """What was tried already: its output, its changes, and whether they shall count."""
    await display.show_tried(request.output or "")
    for line in shown_trial(request, diff):
        sys.stderr.write(f"{line}\n")
    if (await typed(COMMIT)).strip().lower() == "y":
        return ApprovalAnswer(approved=True, message="the person at the terminal said yes, having seen the changes")
    return ApprovalAnswer(approved=False, message="the person at the terminal said no")


def shown_trial(request: ApprovalRequest, diff: str) -> Iterator[str]:
    """The changes as a person reads them, line by line. Long ones are cut, and it is said how to see them all."""
    yield styled(f"{visible(request.tool)} was tried, and nothing of this is in the workspace yet:", "bold", sys.stderr)
    text = diff.removesuffix("\n").split("\n")
    yield from coloured("\n".join(map(_cut, text[:MOST_LINES])), sys.stderr)
    rest = text[MOST_LINES:]
    if rest:
        more = sum(line.startswith("diff --git ") for line in rest)
        files = f", of {more} more file{'s' if more > 1 else ''}" if more else ""
        told = f"… {len(rest):_} more lines{files}: `haft diff {request.run}` in another terminal shows all"
        yield styled(told, "warn", sys.stderr)


async def _asked(request: ApprovalRequest, interrupts: Interrupts, workspace: str) -> ApprovalAnswer:
    arguments: Mapping[str, Any] = request.arguments
    while True:
        for line in shown_call(request, arguments, workspace):
            sys.stderr.write(f"{line}\n")
        answer = (await typed(QUESTION.format(tool=visible(request.tool)))).strip().lower()
        if answer == "y":
            message = "the person at the terminal said yes"
            return ApprovalAnswer(approved=True, message=message, arguments=arguments)
        if answer not in ("e", "edit"):
            return ApprovalAnswer(approved=False, message="the person at the terminal said no")
        try:
            arguments = await _edited(arguments, interrupts)
        except BadUsage as error:
            complain(error.message, "the arguments stay as they were")


def _cut(line: str) -> str:
    return line if len(line) <= MOST_COLUMNS else f"{line[:MOST_COLUMNS]}… ({len(line):_} characters)"


def shown_call(request: ApprovalRequest, arguments: Mapping[str, Any], workspace: str) -> Iterator[str]:
    """The call as a person reads it, line by line; last, what it could reach."""
    yield styled(f"{visible(request.tool)} asks: {visible(request.reason)}", "bold", sys.stderr)
    if not arguments:
        yield "  (no arguments)"
    for name, value in arguments.items():
        text = value if isinstance(value, str) else to_json_text(value)
        yield from _wrapped(visible(name).replace("\n", "\\n"), visible(text))
    if request.cwd != ".":
        yield f"  in: {visible(request.cwd)}"
    if request.env:
        yield from _wrapped("with variables", visible(to_json_text(dict(request.env))))
    yield from _wrapped("walls", walls_words(request.walls, workspace))


def _wrapped(name: str, text: str) -> Iterator[str]:
    """`name: text`, each line of the text broken to the terminal's width and marked with a bar."""
    room = max(20, width() - 4)
    parts = text.split("\n")
    if len(parts) == 1 and len(name) + len(text) + 4 <= room:
        yield f"  {name}: {text}"
        return
    yield f"  {name}:"
    for part in parts:
        yield from (f"  │ {line}" for line in _broken(part, room))


def _broken(text: str, room: int) -> Iterator[str]:
    """A line in pieces that fit: wide characters take two columns, and must not push the rest out of its bar."""
    piece, used = "", 0
    for character in text:
        columns = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used + columns > room:
            yield piece
            piece, used = "", 0
        piece += character
        used += columns
    yield piece


async def typed(question: str) -> str:
    """A line from the terminal; empty at its end. Cancelling leaves no thread behind."""
    descriptor = sys.stdin.fileno()
    with contextlib.suppress(termios.error):
        termios.tcflush(descriptor, termios.TCIFLUSH)
    sys.stderr.write(question)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()
    awake, wake = os.pipe()

    def settle(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def read() -> None:
        text = _line(descriptor, awake)
        with contextlib.suppress(RuntimeError):  # the loop is gone: so is the question
            loop.call_soon_threadsafe(settle, text)

    thread = threading.Thread(target=read, name="haft-approver", daemon=True)
    thread.start()
    try:
        return await answer
    finally:
        os.write(wake, b"x")
        thread.join()
        os.close(awake)
        os.close(wake)


def _line(descriptor: int, awake: int) -> str:
    """Bytes up to a newline, or nothing when called off."""
    data = b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([descriptor, awake], [], [])
        if awake in ready:
            return ""
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # the terminal went away
            return ""
        if not part:
            break
        data += part
    return data.decode("utf-8", "replace")


async def _edited(arguments: Mapping[str, Any], interrupts: Interrupts) -> Mapping[str, Any]:
    """The arguments as the person wants them: from their editor, else from a line of JSON."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        with interrupts.paused():
            text = await asyncio.to_thread(_in_editor, to_json_text(dict(arguments), indent=2))
    else:
        text = await typed("Arguments as JSON on one line (empty: unchanged): ")
    if not text.strip():
        return arguments
    value = parse_json(text, "what was written")
    if not isinstance(value, dict):
        raise BadUsage("what was written must be a JSON object")
    return value


def _in_editor(text: str) -> str:
    import click

    try:
        return click.edit(text, extension=".json", require_save=False) or ""
    except click.ClickException as error:
        raise BadUsage(error.format_message()) from error
