"""Faults of the pipes between haft and a program: output that is cut off, garbage in it, and slow pipes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from haft.contracts import BadUsage, Command, Stream
from haft.testing.calls.injection import Injection, Program
from haft.values import replace

GARBAGE: Final = b'\x00\xff\xfe{"garbage": \x1b[31m\xc3\x28 \xf0\x9f [1, 2,, nul\r\x07\xed\xa0\x80 "}} \x1b]0;x\n'
"""What no reader expects: a NUL, invalid UTF-8, control sequences of a terminal, and half a JSON object."""
_PAUSE_SECONDS: Final = 0.002
_SMALL_PIPE_BYTES: Final = 4_096
_SINGLE_BYTES: Final = 2_000
"""How many bytes of output arrive one by one."""
_PIECE_BYTES: Final = 997


class PartialOutput(Injection):
    """Only the first bytes of stdout arrive. Of a program that outlives its calls, nothing comes after that: it is
    ended, because haft would wait for the rest."""

    OPTIONS = ("bytes",)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._left = _whole("bytes", options.get("bytes", 1))

    def passed(self, program: Program, stream: Stream, data: bytes) -> Iterable[bytes]:
        if stream == "stderr":
            return (data,)
        kept, self._left = data[: self._left], max(0, self._left - len(data))
        if len(kept) < len(data) and program.outlives_calls:
            program.kill()
        return (kept,)


class Garbage(Injection):
    """Garbage comes on stdout before the program's own output, or instead of it. A program that outlives its calls is
    ended if its answer is replaced, because haft would wait for the answer."""

    OPTIONS = ("where",)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        where = options.get("where", "before")
        if where not in ("before", "instead"):
            raise BadUsage(f"has `where`, which must be `before` or `instead`, not {where!r}")
        self._replaces = where == "instead"

    def started(self, program: Program) -> None:
        super().started(program)
        program.sink.output("stdout", GARBAGE)

    def passed(self, program: Program, stream: Stream, data: bytes) -> Iterable[bytes]:
        if stream == "stderr" or not self._replaces:
            return (data,)
        if program.outlives_calls:
            program.kill()
        return ()


class SlowPipes(Injection):
    """The pipes are small and slow: the program waits for haft when it reads and writes, and output arrives in small
    pieces."""

    DELAYS_INPUT: ClassVar[bool] = True

    def changed(self, command: Command, *, outlives_calls: bool) -> Command:
        return replace(command, pipe_bytes=_SMALL_PIPE_BYTES, until_writable=command.until_writable or _pause)

    def passed(self, _program: Program, _stream: Stream, data: bytes) -> Iterator[bytes]:
        for index in range(min(len(data), _SINGLE_BYTES)):
            yield data[index : index + 1]
        for index in range(_SINGLE_BYTES, len(data), _PIECE_BYTES):
            yield data[index : index + _PIECE_BYTES]


def _pause() -> Awaitable[None]:
    return asyncio.sleep(_PAUSE_SECONDS)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadUsage(f"has `{name}`, which must be a number of bytes, not {value!r}")
    return value
