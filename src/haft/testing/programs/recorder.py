"""Notes the calls of program stubs, and chooses their answers. It reads what the stubs report; it does no I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from haft.testing.programs.stub import BEGIN, HEADER, INPUT, MAGIC, OUTPUT, REFUSED, UNKNOWN
from haft.testing.scenarios.scenario import ProgramAnswer
from haft.values import dataclass

MAX_CALLS: Final = 10_000
MAX_BYTES: Final = 64_000_000
"""The most that is kept of all reports together."""

Reply = Callable[[int, bytes, int], None]
"""Gets the pipe for the answer, the id of the call, and the number of the answer."""


@dataclass(slots=True)
class _Call:
    facts: dict[str, Any]
    end: int | None = None
    """The position among the calls whose stdin is known."""


class Recorder:
    """The calls of the stubs of one service."""

    def __init__(self, answers: Mapping[str, Sequence[tuple[int, ProgramAnswer]]], reply: Reply) -> None:
        """`answers` are the answers of each program, each with its number."""
        self._answers = answers
        self._reply = reply
        self._used: set[int] = set()
        self._rest = b""
        self._parts: dict[tuple[bytes, int], list[bytes]] = {}
        self._calls: dict[bytes, _Call] = {}
        self._bytes = 0
        self._ended = 0
        self.is_disturbed = False
        """Whether nothing more can be read from the pipe."""
        self._is_full = False
        self.problems: dict[str, None] = {}
        """Why the recorded calls do not hold, in sentences."""

    def calls(self) -> tuple[dict[str, Any], ...]:
        """The calls in the order in which the stubs had read their stdin; then those that were killed before."""
        found = sorted(self._calls.values(), key=lambda call: (call.end is None, call.end or 0))
        return tuple(dict(call.facts) for call in found)

    def take(self, data: bytes) -> None:
        """Take what the pipe had."""
        if self.is_disturbed:
            return
        self._rest += data
        while len(self._rest) >= HEADER.size:
            magic, identity, slot, part, is_last, length = HEADER.unpack_from(self._rest)
            if magic != MAGIC or part not in (BEGIN, INPUT, OUTPUT):
                self._disturb()
                return
            if len(self._rest) < HEADER.size + length:
                return
            piece = self._rest[HEADER.size : HEADER.size + length]
            self._rest = self._rest[HEADER.size + length :]
            self._take_piece(identity, slot, part, piece, is_last=bool(is_last))

    def _disturb(self) -> None:
        self.is_disturbed = True
        self.problems["something else than a stub wrote to the pipe of the program stubs"] = None

    def _take_piece(self, identity: bytes, slot: int, part: int, piece: bytes, *, is_last: bool) -> None:
        self._bytes += len(piece)
        if self._is_full or self._bytes > MAX_BYTES or (part == BEGIN and len(self._calls) >= MAX_CALLS):
            self._is_full = True
            self.problems[f"the stubs were called more than {MAX_CALLS:,} times, or with too much data"] = None
            if is_last and part == INPUT:
                self._reply(slot, identity, REFUSED)
            return
        pieces = self._parts.setdefault((identity, part), [])
        pieces.append(piece)
        if is_last:
            del self._parts[identity, part]
            try:
                self._take_part(identity, slot, part, json.loads(b"".join(pieces)))
            except (ValueError, TypeError, KeyError, RecursionError):
                self._disturb()

    def _take_part(self, identity: bytes, slot: int, part: int, value: Any) -> None:
        if part == BEGIN:
            if identity in self._calls or set(value) != {"program", "args", "cwd", "env"}:
                raise ValueError("no report of a stub")
            args = [str(word) for word in value["args"]]
            facts = {"program": str(value["program"]), "args": args, "stdin": "", "cwd": str(value["cwd"])}
            self._calls[identity] = _Call({**facts, "env": dict(value["env"])})
            return
        call = self._calls[identity]
        if part == OUTPUT:
            if call.end is None or "answer" in call.facts:
                raise ValueError("a second answer of the same stub")
            call.facts["answer"] = dict(value)
            return
        if call.end is not None:
            raise ValueError("a second report of the same stub")
        self._ended += 1
        call.end = self._ended
        call.facts["stdin"] = str(value)
        self._reply(slot, identity, self._choose(call.facts))

    def _choose(self, facts: Mapping[str, Any]) -> int:
        """The number of the next answer that fits the arguments. When all that fit were given, the last one repeats."""
        fitting = [
            number
            for number, answer in self._answers[facts["program"]]
            if answer.args is None or facts["args"][: len(answer.args)] == list(answer.args)
        ]
        if not fitting:
            line = " ".join([facts["program"], *facts["args"]])
            self.problems[f"the tool called `{line}`, for which the scenario has no answer"] = None
            return UNKNOWN
        number = next((each for each in fitting if each not in self._used), fitting[-1])
        self._used.add(number)
        return number
