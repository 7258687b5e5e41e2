"""Additions to click for both programs, `cdd` and `cdd-toolbox`: messages, arguments and output."""

from __future__ import annotations

import errno
import io
import sys
from typing import Any

import click

from cdd.refusals import Refused


class ReportingCommand(click.Command):
    """A command that reports file system errors as sentences, not as tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        return _report_os_errors(super().invoke, ctx)


class ReportingGroup(click.Group):
    """A group of commands that reports file system errors as sentences, not as tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        return _report_os_errors(super().invoke, ctx)


class DocumentedArgument(click.Argument):
    """An argument with a help text, for every version of click. `or_stdin` tells programs that wrap the command that a
    missing argument is read from standard input."""

    def __init__(self, declarations: list[str], *, explanation: str, or_stdin: bool = False, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.help = explanation
        self.or_stdin = or_stdin


class Count(click.IntRange):
    """The type of an option: a whole number from 1 up. `things` says what is counted, in the error message."""

    def __init__(self, things: str) -> None:
        super().__init__(min=1)
        self.things = things

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            count: int = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"'{value}' is not a number of {self.things}: give a whole number from 1 up.", param, ctx)
        return count


def is_at_terminal() -> bool:
    """Whether standard input is a terminal, where a person can answer. A closed standard input is not a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def standard_input(most: int) -> str:
    """Standard input, up to a number of bytes. Bytes that are not UTF-8 are kept as surrogates."""
    if sys.stdin is None:
        return ""
    if is_at_terminal():
        click.echo("Type the message; end it with Ctrl-D on a line of its own.", err=True)
    return sys.stdin.buffer.read(most).decode("utf-8", "surrogateescape")


def _report_os_errors(invoke: Any, ctx: click.Context) -> Any:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode must not make a command fail
    try:
        return invoke(ctx)
    except OSError as problem:
        if problem.errno == errno.EPIPE:
            raise
        where = f"{problem.filename}: " if problem.filename else ""
        raise Refused(f"{where}{problem.strerror or problem}.") from problem
