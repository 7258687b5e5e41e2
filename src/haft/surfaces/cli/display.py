"""A running call as it is seen: live on a terminal, one JSON object or one event a line for programs.

A display is told every event and then the outcome. Writing happens in a thread: a reader that is slow, or stopped, must
keep neither the tool nor a Ctrl-C waiting.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Protocol

from haft.contracts import Event, Outcome
from haft.surfaces.cli.printing import complain, data, facts, say, to_json_text
from haft.surfaces.cli.progress import Progress
from haft.surfaces.cli.terminal import is_terminal, visible


class Display(Protocol):
    """Someone who shows a run."""

    async def show(self, event: Event) -> None: ...

    async def end(self, outcome: Outcome) -> None: ...


class Live:
    """For a person: output as it comes, progress below it, nothing at the end unless there is something to say."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._any = False
        self._line_open = False

    async def show(self, event: Event) -> None:
        if event.type in ("stdout", "stderr"):
            skipped = event.facts.get("skipped")
            if skipped:
                await self._write(f"\n[… {skipped:_} characters not shown here …]\n")
            await self._write(event.text)
        else:
            self._progress.take(event, may_draw=not self._line_open)

    async def _write(self, text: str) -> None:
        if text:
            self._progress.clear()
            self._any, self._line_open = True, not text.endswith("\n")
            await asyncio.to_thread(data, visible(text))

    async def end(self, outcome: Outcome) -> None:
        self._progress.clear()
        if not self._any:
            await self._write(outcome.output)
        if self._line_open:
            await asyncio.to_thread(data, "\n")
        if outcome.truncated and not self._progress.quiet:
            say(f"the output was long: `haft output {outcome.run_id}` shows all that was kept")
        tell_ended_children(outcome, quiet=self._progress.quiet)


RAW_FIELDS = ("output", "stderr")
"""Fields that are printed to the letter; the others end with a newline."""


class Collected:
    """For programs: progress on stderr, and at the end the outcome, or one field of it."""

    def __init__(self, progress: Progress, only: str | None, *, json: bool) -> None:
        self._progress = progress
        self._only = only
        self._json = json

    async def show(self, event: Event) -> None:
        self._progress.take(event, may_draw=True)

    async def end(self, outcome: Outcome) -> None:
        self._progress.clear()
        shape = outcome.to_json()
        if self._only is None:
            await asyncio.to_thread(facts, shape)
        elif isinstance(value := shape[self._only], str) and not self._json:
            await asyncio.to_thread(raw, value if self._only in RAW_FIELDS else f"{value}\n")
        else:
            await asyncio.to_thread(facts, value)


class Streamed:
    """For programs: every event on a line of its own, the outcome last."""

    async def show(self, event: Event) -> None:
        await asyncio.to_thread(data, to_json_text(event.to_json()) + "\n")

    async def end(self, outcome: Outcome) -> None:
        """The outcome was the last event."""


def raw(text: str) -> None:
    """Text as it is; on a terminal visible, and with the line ended."""
    if not is_terminal(sys.stdout):
        data(text)
    elif text:
        data(visible(text) + ("" if text.endswith("\n") else "\n"))


def tell_ended_children(outcome: Outcome, *, quiet: bool) -> None:
    """Processes that had to be ended, in one line."""
    children = outcome.ended_children
    if children and not quiet:
        named = ", ".join(f"{child.command[:60]} ({child.pid})" for child in children[:5])
        more = f" and {len(children) - 5} more" if len(children) > 5 else ""
        say(f"ended with the call: {named}{more}")


def tell_failure(outcome: Outcome) -> None:
    """Why it failed, on stderr."""
    if outcome.error is not None:
        complain(outcome.error.message, outcome.error.hint)
