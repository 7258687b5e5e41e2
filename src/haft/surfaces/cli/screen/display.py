"""A running call as it is seen: live on a terminal, one JSON object or one event a line for programs.

A display is told every event and then the outcome. Writing happens in a thread: a reader that is slow, or stopped, must
keep neither the tool nor a Ctrl-C waiting.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Protocol

from haft.contracts import Changes, Event, Outcome
from haft.surfaces.cli.screen.printing import complain, data, facts, say, to_json_text
from haft.surfaces.cli.screen.progress import Progress
from haft.surfaces.cli.screen.terminal import is_terminal, visible


class Display(Protocol):
    """Someone who shows a run."""

    @property
    def for_a_person(self) -> bool: ...

    async def show(self, event: Event) -> None: ...

    async def show_trial_output(self, output: str) -> None:
        """What a call printed that was tried, before a person is asked about it; on stderr, where it is shown nowhere
        else."""
        ...

    async def end(self, outcome: Outcome) -> None: ...


class Live:
    """For a person: output as it comes, progress below it, nothing at the end unless there is something to say."""

    for_a_person = True

    def __init__(self, progress: Progress) -> None:
        self._blocked = asyncio.Event()
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
            if event.type == "status" and event.status == "blocked-on-user":
                self._blocked.set()

    async def show_trial_output(self, output: str) -> None:
        await self._blocked.wait()  # What was printed comes before the question about it.
        await self._whole(output)

    async def _write(self, text: str) -> None:
        if text:
            self._progress.clear()
            self._any, self._line_open = True, not text.endswith("\n")
            await asyncio.to_thread(data, visible(text))

    async def _whole(self, output: str) -> None:
        """The output of a tool that did not stream it, and its last line ended."""
        self._progress.clear()
        if not self._any:
            await self._write(output)
        if self._line_open:
            self._line_open = False
            await asyncio.to_thread(data, "\n")

    async def end(self, outcome: Outcome) -> None:
        await self._whole(outcome.output)
        if outcome.truncated and not self._progress.quiet:
            say(f"the output was long: `haft output {outcome.run_id}` shows all that was kept")
        tell_ended_children(outcome, quiet=self._progress.quiet)


RAW_FIELDS = ("output", "stderr")
"""Fields that are printed to the letter; the others end with a newline."""


class Collected:
    """For programs: progress on stderr, and at the end the outcome, or one field of it."""

    for_a_person = False

    def __init__(self, progress: Progress, only: str | None, *, json: bool) -> None:
        self._progress = progress
        self._only = only
        self._json = json

    async def show(self, event: Event) -> None:
        self._progress.take(event, may_draw=True)

    async def show_trial_output(self, output: str) -> None:
        _aside(output)

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

    for_a_person = False

    async def show(self, event: Event) -> None:
        await asyncio.to_thread(data, to_json_text(event.to_json()) + "\n")

    async def show_trial_output(self, output: str) -> None:
        _aside(output)

    async def end(self, outcome: Outcome) -> None:
        """The outcome was the last event."""


def _aside(output: str) -> None:
    if output:
        say(output.removesuffix("\n"))


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


def tell_notes(outcome: Outcome) -> None:
    """What the call met and did not fail for, on stderr."""
    for note in outcome.notes:
        say(f"note: {note}")


def tell_failure(outcome: Outcome, *, for_a_person: bool) -> None:
    """Why it failed, on stderr. What a person has just read as the last line is not said again."""
    if outcome.error is None:
        return
    message = outcome.error.message
    if for_a_person and is_terminal(sys.stderr) and outcome.error.code == "tool-failed":
        last = outcome.output.rstrip().rpartition("\n")[2].strip()
        message = message.removesuffix(f": {last}") if last else message
    complain(message, outcome.error.hint)


def tell_changes(outcome: Outcome, *, for_a_person: bool) -> None:
    """What a call changed, and what can be done about it, in one line. Programs read it in the outcome, and are told
    only what waits for someone."""
    changes, run = outcome.changes, outcome.run_id
    if changes.state == "held":
        if outcome.error is not None and "haft changes" in (outcome.error.hint or ""):
            return  # The hint has said it.
        why = f" ({changes.reason})" if changes.reason else ""
        say(f"{_count(changes)} held, not in the workspace{why}: `haft diff {run}`, then")
        say(f"  `haft changes apply {run}` to commit, `haft changes drop {run}` to throw away")
    elif changes.state == "committed" and for_a_person:
        say(f"changed {_count(changes)} (haft diff {run}, haft undo {run})")


def _count(changes: Changes) -> str:
    files = sum(change.kind != "directory" for change in changes.files)
    if files:
        return "1 file" if files == 1 else f"{files:_} files"
    directories = len(changes.files)
    return "1 directory" if directories == 1 else f"{directories:_} directories"
