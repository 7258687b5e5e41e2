"""`haft inbox --watch`: shows each waiting call when it comes, and takes answers by one key.

A key only chooses an answer; Enter gives it. Keys that were typed before a call was shown do not count, so no answer
goes to a call that the person has not seen. Without a terminal, the requests are only printed as they come.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import HaftError
from haft.surfaces.cli.screen.printing import complain, data, say
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import one_line, styled

if TYPE_CHECKING:
    from haft.service import InboxFacade, Waiting

PAUSE: Final = 0.4
"""How often haft looks for new requests, in seconds."""
BELL: Final = "\a"
ENTER: Final = ("\r", "\n")
SEVERAL: Final = "\0"
"""Stands for several keys that came at once: pasted text, or an escape sequence."""

Answer = Callable[["Waiting", dict[str, Any]], None]
Show = Callable[["Waiting"], None]
Told = Callable[[Sequence["Waiting"]], None]


def print_as_they_come(
    inbox: InboxFacade, workspace: str | None, document: Callable[[Waiting], Any], on_new: Told | None = None
) -> None:
    """Print each request once, as a line of JSON, until the process is interrupted. `on_new` is told of new ones."""
    seen: set[str] = set()
    while True:
        new = [waiting for waiting in inbox.waiting(workspace) if waiting.id not in seen]
        for waiting in new:
            seen.add(waiting.id)
            data(to_json_text(document(waiting)) + "\n")
        if new and on_new is not None:
            on_new(new)
        time.sleep(PAUSE)


class WatchedInbox:
    """The requests one after the other on a terminal, and the person's answers."""

    def __init__(
        self, inbox: InboxFacade, workspace: str | None, show: Show, answer: Answer, on_new: Told | None = None
    ) -> None:
        self._on_new = on_new
        self._inbox = inbox
        self._workspace = workspace
        self._show = show
        self._answer = answer
        self._shown: Waiting | None = None
        self._chosen: tuple[str, dict[str, Any]] | None = None
        self._passed_over: set[str] = set()
        self._told: set[str] = set()

    def run(self) -> None:
        """Show and answer until the person types `q`."""
        with _single_keys(sys.stdin.fileno()) as read_key:
            while True:
                self._look()
                key = read_key(PAUSE)
                if key == "q" and self._chosen is None:
                    return
                if key:
                    self._take(key)

    def _look(self) -> None:
        """Ring for new requests. Show the next request if none is shown, or if the shown one needs no answer now."""
        waiting = self._inbox.waiting(self._workspace)
        new = {each.id for each in waiting} - self._told
        if new:
            self._told |= new
            sys.stderr.write(BELL)
            sys.stderr.flush()
            if self._on_new is not None:
                self._on_new([each for each in waiting if each.id in new])
        if self._shown is not None and self._shown.id not in {each.id for each in waiting}:
            say(f"{self._shown.id} needs no answer any more")
            self._shown = self._chosen = None
        if self._shown is None:
            self._show_next(waiting)

    def _show_next(self, waiting: list[Waiting]) -> None:
        left = [each for each in waiting if each.id not in self._passed_over]
        if not left:
            return
        self._shown, self._chosen = left[0], None
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        self._show(left[0])
        more = f"; {len(left) - 1} more wait" if len(left) > 1 else ""
        sys.stderr.write(styled(f"{self._keys(left[0])}{more}", "bold", sys.stderr) + "\n")
        sys.stderr.flush()

    @staticmethod
    def _keys(waiting: Waiting) -> str:
        if waiting.shown.get("question") is not None:
            return "n: decline, s: later, q: end (`haft approve ID --args JSON` answers it)"
        longer = " t: approve in its thread, a: approve always," if has_one_rule(waiting) else ""
        return f"y: approve once,{longer} n: reject, s: later, q: end; Enter confirms"

    def _take(self, key: str) -> None:
        shown = self._shown
        if self._chosen is not None:
            label, answer = self._chosen
            self._chosen = None
            if key not in ENTER:
                say(f"not answered: {label} was not confirmed")
            elif shown is not None:
                self._give(shown, answer)
            return
        if shown is None:
            return
        if key == "s":
            self._passed_over.add(shown.id)
            self._shown = None
            say(f"{shown.id} stays in the inbox")
        elif (choice := _choice(shown, key)) is not None:
            self._chosen = choice
            say(f"{choice[0]} {one_line(str(shown.shown['tool']))}? Enter confirms, any other key does not")
        elif key == SEVERAL:
            say("not answered: several keys came at once; type one, and then Enter")

    def _give(self, shown: Waiting, answer: dict[str, Any]) -> None:
        try:
            self._answer(shown, answer)
        except HaftError as error:
            complain(error.message, error.hint)
        self._shown = None


def has_one_rule(waiting: Waiting) -> bool:
    """Whether an answer for later calls needs no choice among rules."""
    offered = waiting.shown.get("toAllow", ())
    return not waiting.tried and (len(offered) == 1 or (bool(offered) and waiting.shown.get("connection") is not None))


def _choice(waiting: Waiting, key: str) -> tuple[str, dict[str, Any]] | None:
    """The answer that a key chooses, with its name; None if the key chooses none here."""
    if key == "n":
        return "reject", {"approved": False}
    if waiting.shown.get("question") is not None:
        return None
    if key == "y":
        return "approve", {"approved": True, "scope": "once"}
    if key in ("t", "a") and has_one_rule(waiting):
        scope, label = ("thread", "approve in its thread") if key == "t" else ("always", "approve always")
        return label, {"approved": True, "scope": scope}
    return None


@contextmanager
def _single_keys(descriptor: int) -> Iterator[Callable[[float], str]]:
    """A function that reads one key within some seconds; empty if none comes. An escape sequence, such as that of an
    arrow key, and pasted text count as one key that means nothing. At the end of input, it reads `q`."""
    before = termios.tcgetattr(descriptor)

    def read_key(seconds: float) -> str:
        if not select.select([descriptor], [], [], seconds)[0]:
            return ""
        read = os.read(descriptor, 64)
        return "q" if not read or read == b"\x04" else read.decode("utf-8", "replace") if len(read) == 1 else SEVERAL

    tty.setcbreak(descriptor, termios.TCSANOW)
    try:
        yield read_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
