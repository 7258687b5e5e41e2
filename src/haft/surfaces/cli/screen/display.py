"""The display of a running call: live on a terminal; for programs one JSON object, or one line per event.

A display gets every event and then the outcome. It writes in a thread, so that a slow or stopped reader blocks neither
the tool nor Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Protocol

from haft.contracts import Changes, Event, Outcome
from haft.surfaces.cli.screen.printing import complain, data, facts, say
from haft.surfaces.cli.screen.progress import Progress
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import is_terminal, visible


class Display(Protocol):
    """Shows a run."""

    @property
    def for_a_person(self) -> bool: ...

    async def show(self, event: Event) -> None: ...

    async def show_trial_output(self, output: str) -> None:
        """Show the output of a trial run before the question about its changes; on stderr if stdout is for JSON."""
        ...

    async def end(self, outcome: Outcome) -> None: ...


class Live:
    """For a person: the output as it comes, with progress below it. At the end, only facts that the output does not
    show."""

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
        await self._blocked.wait()  # All output must be shown before the question.
        await self._whole(output)

    async def _write(self, text: str) -> None:
        if text:
            self._progress.clear()
            self._any, self._line_open = True, not text.endswith("\n")
            await asyncio.to_thread(data, visible(text))

    async def _whole(self, output: str) -> None:
        """Write the output of a tool that sent it only at its end. If the last line has no newline, add one."""
        self._progress.clear()
        if not self._any:
            await self._write(output)
        if self._line_open:
            self._line_open = False
            await asyncio.to_thread(data, "\n")

    async def end(self, outcome: Outcome) -> None:
        await self._whole(outcome.output)
        if outcome.truncated and not self._progress.quiet:
            say(f"the output was cut: `haft output {outcome.run_id}` prints all that was kept")
        tell_ended_children(outcome, quiet=self._progress.quiet)


RAW_FIELDS = ("output", "stderr")
"""Fields of the outcome that are printed unchanged; other fields get a newline at the end."""


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
    """For programs: every event on a line of its own, the outcome last. Nothing is left to do at the end."""

    for_a_person = False

    async def show(self, event: Event) -> None:
        await asyncio.to_thread(data, to_json_text(event.to_json()) + "\n")

    async def show_trial_output(self, output: str) -> None:
        _aside(output)

    async def end(self, outcome: Outcome) -> None:
        """Do nothing: the outcome was the last event."""


def _aside(output: str) -> None:
    if output:
        say(output.removesuffix("\n"))


def raw(text: str) -> None:
    """Print text unchanged; on a terminal with invisible characters escaped and a newline at the end."""
    if not is_terminal(sys.stdout):
        data(text)
    elif text:
        data(visible(text) + ("" if text.endswith("\n") else "\n"))


def tell_ended_children(outcome: Outcome, *, quiet: bool) -> None:
    """Print in one line the processes that haft ended together with the call."""
    children = outcome.ended_children
    if children and not quiet:
        listed = ", ".join(f"{child.command[:60]} ({child.pid})" for child in children[:5])
        more = f" and {len(children) - 5} more" if len(children) > 5 else ""
        say(f"ended with the call: {listed}{more}")


def tell_notes(outcome: Outcome) -> None:
    """Print the notes of a call on stderr."""
    for note in outcome.notes:
        say(f"note: {note}")


def tell_failure(outcome: Outcome, *, for_a_person: bool) -> None:
    """Print on stderr why a call failed, without repeating the last line of the output."""
    if outcome.error is None:
        return
    message = outcome.error.message
    if for_a_person and is_terminal(sys.stderr) and outcome.error.code == "tool-failed":
        last = outcome.output.rstrip().rpartition("\n")[2].strip()
        message = message.removesuffix(f": {last}") if last else message
    complain(message, outcome.error.hint)


def tell_changes(outcome: Outcome, *, for_a_person: bool) -> None:
    """Print which files a call changed, and the commands that show and undo the changes. Programs find changes in the
    outcome, so for them only held changes are printed."""
    changes, run = outcome.changes, outcome.run_id
    if changes.state == "held":
        if outcome.error is not None and "haft changes" in (outcome.error.hint or ""):
            return  # The hint of the error has already named the commands.
        why = f" ({changes.reason})" if changes.reason else ""
        say(f"{_count(changes)} held, not in the workspace{why}: `haft diff {run}`, then")
        say(f"  `haft changes apply {run}` to apply them, `haft changes drop {run}` to discard them")
    elif changes.state == "committed" and for_a_person:
        say(f"changed {_count(changes)} (haft diff {run}, haft undo {run})")


def _count(changes: Changes) -> str:
    files = sum(change.kind != "directory" for change in changes.files)
    if files:
        return "1 file" if files == 1 else f"{files:_} files"
    directories = len(changes.files)
    return "1 directory" if directories == 1 else f"{directories:_} directories"
