"""Progress on stderr: on a terminal one line that is redrawn, elsewhere one line for each message."""

from __future__ import annotations

import sys
import time
from typing import Final

from haft.contracts import Event
from haft.surfaces.text.terminal import clipped, is_terminal, one_line, width

_CLEAR: Final = "\r\x1b[2K"
_MOST_A_SECOND: Final = 20
_BAR: Final = 20
_WAITING: Final = {"queued": "waiting in the queue", "cancellation-requested": "cancelling"}


def waiting_words(event: Event) -> str:
    """For which run a run waits, according to its status event; empty if the event does not say so."""
    other = event.facts.get("waitsFor")
    if event.status != "queued" or other is None:
        return ""
    return f"waiting for {other}" + (", which waits for a person" if event.facts.get("blockedOn") == "person" else "")


class Progress:
    """Shows the progress of a run on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self._redraws = is_terminal(sys.stderr)
        self._drawn = False
        self._last_words = ""
        self._last_time = 0.0

    def take(self, event: Event, *, may_draw: bool) -> None:
        """Show a progress event or a status that explains a wait; ignore other events."""
        if self.quiet:
            return
        if event.type == "progress":
            self._show(_words(event), may_draw=may_draw)
        elif event.type == "status" and self._redraws and event.status in _WAITING and event.seq > 0:
            self._show(waiting_words(event) or _WAITING[event.status], may_draw=may_draw)
        elif event.type == "status" and event.status == "blocked-on-user":
            self.clear()

    def passing(self, words: str) -> None:
        """Show a message that the next one replaces. Does nothing if stderr is not a terminal."""
        if self._redraws and not self.quiet:
            self._show(words, may_draw=True)

    def _show(self, words: str, *, may_draw: bool) -> None:
        if not words or words == self._last_words:
            return
        if not self._redraws:
            self._last_words = words
            sys.stderr.write(f"{words}\n")
            sys.stderr.flush()
            return
        now = time.monotonic()
        if may_draw and now - self._last_time >= 1 / _MOST_A_SECOND:
            self._last_words, self._last_time, self._drawn = words, now, True
            sys.stderr.write(f"{_CLEAR}{clipped(words, max(2, width() - 1))}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Clear the progress line before other text is written."""
        if self._drawn:
            self._drawn = False
            self._last_words = ""
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def _words(event: Event) -> str:
    message = one_line(str(event.facts.get("message") or ""))
    fraction = event.facts.get("fraction")
    if not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        return message
    full = round(fraction * _BAR)
    return f"[{'#' * full}{' ' * (_BAR - full)}] {fraction:4.0%} {message}".rstrip()
