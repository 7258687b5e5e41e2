"""Finds out in which directory a command ended, so that the agent's own shell can go there too.

Commands that contain `cd`, `pushd` or `popd` get a last line that prints the shell's directory between two marks. The
sink removes marks and directory from the output. A command could print the marks itself; it then only says where the
agent's shell goes, and it could have gone there anyway.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import Final

from haft.contracts import Command, EndedChild, Exit, Launcher, OutputSink, Stream
from haft.lazy import regex
from haft.values import replace

_MOVES: Final = regex(r"(?<![\w./-])(?:cd|pushd|popd)(?![\w./-])")
_END: Final = b"\0"


def may_move(command: str) -> bool:
    """Whether the command may leave its shell in another directory. May be wrong in favour of True."""
    return _MOVES.search(command) is not None and not command.endswith("\\")


class DirectoryReport(OutputSink):
    """An output sink that removes the report of the directory from stdout and passes the rest on."""

    def __init__(self, sink: OutputSink) -> None:
        self._sink = sink
        self._mark = b"\0haft-" + secrets.token_hex(8).encode() + b":"
        self._held = b""
        self.directory: str | None = None
        """The directory in which the command ended; None if the command did not say."""

    def last_line(self) -> str:
        """The line that reports the directory, for the end of a command in bash's language."""
        mark = self._mark[1:].decode()
        return f"\n{{ haft_status=$?; builtin printf '\\0{mark}%s\\0' \"$PWD\"; exit $haft_status; }} 2>/dev/null"

    def output(self, stream: Stream, data: bytes) -> None:
        if stream != "stdout":
            self._sink.output(stream, data)
            return
        data = self._held + data
        begin = data.find(self._mark)
        if begin < 0:
            keep = self._length_of_partial_mark(data)
            self._held = data[len(data) - keep :]
            data = data[: len(data) - keep]
        else:
            end = data.find(_END, begin + len(self._mark))
            if end < 0:
                self._held, data = data[begin:], data[:begin]
            else:
                self.directory = os.fsdecode(data[begin + len(self._mark) : end])
                self._held, data = b"", data[:begin] + data[end + 1 :]
        if data:
            self._sink.output(stream, data)

    def _length_of_partial_mark(self, data: bytes) -> int:
        """How many bytes at the end of `data` may be the beginning of the mark."""
        for length in range(min(len(self._mark) - 1, len(data)), 0, -1):
            if data.endswith(self._mark[:length]):
                return length
        return 0

    def end(self) -> None:
        """Pass on what was held because it could have been the beginning of a report."""
        held, self._held = self._held, b""
        if held:
            self._sink.output("stdout", held)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._sink.processes_ended(children)


class ReportingLauncher:
    """Runs a bash command, and then knows in which directory it ended."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self.directory: str | None = None

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        report = DirectoryReport(sink)
        *words, line = command.argv
        try:
            return await self._launcher.run(replace(command, argv=[*words, line + report.last_line()]), report)
        finally:
            report.end()
            self.directory = report.directory
