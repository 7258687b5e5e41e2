"""How both programs behave as programs: what click lacks for messages, arguments and output."""

from __future__ import annotations

import errno
import io
import sys
from typing import Any

import click

from cdd.refusals import Refused


class Talking(click.Command):
    """A command whose failures at the file system are sentences, not tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        return _told(super().invoke, ctx)


class TalkingGroup(click.Group):
    """The same for a group of commands, for all of which it stands."""

    def invoke(self, ctx: click.Context) -> Any:
        return _told(super().invoke, ctx)


class Explained(click.Argument):
    """An argument with a help text, whichever version of click there is. `or_stdin` says to whoever wraps the command
    that it is read from standard input when it is absent."""

    def __init__(self, declarations: list[str], *, explanation: str, or_stdin: bool = False, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.help = explanation
        self.or_stdin = or_stdin


class Count(click.IntRange):
    """A number of things, from 1 up."""

    def __init__(self, things: str) -> None:
        super().__init__(min=1)
        self.things = things

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            count: int = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"'{value}' is no number of {self.things}: give a whole number from 1 up.", param, ctx)
        return count


def is_at_terminal() -> bool:
    """Whether a person could answer. Standard input may be closed, too."""
    return sys.stdin is not None and sys.stdin.isatty()


def standard_input(most: int) -> str:
    """What comes in, up to a number of bytes; bytes that are no UTF-8 stay recognisable as such."""
    if sys.stdin is None:
        return ""
    if is_at_terminal():
        click.echo("Type the message; end it with Ctrl-D on a line of its own.", err=True)
    return sys.stdin.buffer.read(most).decode("utf-8", "surrogateescape")


def _told(invoke: Any, ctx: click.Context) -> Any:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow terminal must not turn an answer into a failure
    try:
        return invoke(ctx)
    except OSError as problem:
        if problem.errno == errno.EPIPE:
            raise
        where = f"{problem.filename}: " if problem.filename else ""
        raise Refused(f"{where}{problem.strerror or problem}.") from problem
