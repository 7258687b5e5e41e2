"""Separates the answer from the rest of a template's output. The answer is the text after the template's key, or all
output if there is no key.

The key is searched for while the output arrives, and is found even if it is split between two reads. Output before the
key is kept with stderr.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import EndedChild, Secrets, Stream, ToolContext, texts_in

MOST_HELD: Final = 4_000_000
"""How many bytes are held until the key appears. Earlier bytes are passed on to stderr."""
LARGEST_RESULT: Final = 4_000_000
MOST_TOLD: Final = 4_000
LONGEST_LINE: Final = 100_000
"""The most bytes of stderr that are held until their line ends."""
SHORTEST_SECRET: Final = 6
_GIVEN: Final = re.compile(rb"input_value=.*?(?=, input_type=|\]|$)", re.MULTILINE)
_BLANKS: Final = b" \t\r\n\f\v"


class TemplateOutput:
    """Receives the output of one call."""

    def __init__(self, context: ToolContext, key: str | None, user: Mapping[str, Any] | None = None) -> None:
        """`user` has the user parameters. Their values are masked in stderr, whether they are secret or not."""
        self._masked = (context.secrets | Secrets(texts_in(user or {}), SHORTEST_SECRET)).stream()
        self._is_quiet = bool(user)
        self._unclean = b""
        """The last line of stderr, which is not complete yet."""
        self._context = context
        self._key = key.encode("utf-8", "surrogatepass") if key else None
        self._is_open = self._key is None
        """Whether the next output belongs to the answer."""
        self._held = b""
        self._passed = 0
        self._trailing = b""
        """Blanks that belong to the answer only if more text follows."""
        self._has_begun = False
        self._answer = bytearray()
        self._is_long = False
        self._last = b""

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stderr":
            self._hear(data)
        elif self._is_open:
            self._say(data)
        else:
            self._look(data)

    def _hear(self, data: bytes, *, is_all: bool = False) -> None:
        """Mask stderr, and pass it on in whole lines. In its error messages, pydantic prints the values that it got, or
        a part of them."""
        data = self._unclean + self._masked.feed(data) + (self._masked.end() if is_all else b"")
        end = len(data) if is_all or len(data) > LONGEST_LINE else data.rfind(b"\n") + 1
        self._unclean, whole = data[end:], data[:end]
        if whole:
            said = _GIVEN.sub("input_value=…".encode(), whole) if self._is_quiet else whole
            self._last = (self._last + said)[-MOST_TOLD:]
            self._context.stderr_only(said)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._context.processes_ended(children)

    def close(self) -> Any:
        """Handle the end of the output. Returns the value of the answer if the answer is JSON; otherwise None."""
        self._hear(b"", is_all=True)
        if not self._is_open:
            if self._passed:
                self._say(f"[{self._passed} earlier bytes are kept with stderr]\n".encode())
            held, self._held = self._held, b""
            self._say(held)
        if self._is_long or not self._answer:
            return None
        try:
            return json.loads(self._answer.decode("utf-8"), parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None

    def failure_text(self) -> str:
        """The last output on stderr. If it has a traceback, the text of the exception comes first."""
        lines = self._last.decode("utf-8", "replace").strip().splitlines()
        if not lines:
            return ""
        begin = max((number for number, line in enumerate(lines) if line.startswith("Traceback ")), default=None)
        if begin is None:
            return "\n".join(lines[-10:])
        # The text of an exception may have several lines, even indented ones. It follows the indented frames.
        said = next((n for n in range(begin + 1, len(lines)) if not lines[n].startswith((" ", "\t"))), len(lines) - 1)
        return "\n".join((*lines[said:], *lines[begin:said]))

    def _look(self, data: bytes) -> None:
        assert self._key is not None
        searched = max(0, len(self._held) - len(self._key) + 1)
        self._held += data
        found = self._held.find(self._key, searched)
        if found >= 0:
            before, after = self._held[:found], self._held[found + len(self._key) :]
            self._held, self._is_open = b"", True
            if before:
                self._context.stderr_only(before, "stdout")
            self._say(after)
        elif len(self._held) > 2 * MOST_HELD:
            gone, self._held = self._held[:-MOST_HELD], self._held[-MOST_HELD:]
            self._passed += len(gone)
            self._context.stderr_only(gone, "stdout")

    def _say(self, data: bytes) -> None:
        """Pass on a part of the answer, without the blanks around the answer."""
        data = self._trailing + data
        if not self._has_begun:
            data = data.lstrip(_BLANKS)
        kept = data.rstrip(_BLANKS)
        self._trailing = data[len(kept) :]
        if not kept:
            return
        self._has_begun = True
        self._context.output("stdout", kept)
        if len(self._answer) + len(kept) > LARGEST_RESULT:
            self._is_long = True
        else:
            self._answer += kept


def _refuse(word: str) -> Any:
    raise ValueError(word)
