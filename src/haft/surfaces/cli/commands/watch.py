"""`haft watch RUN`: follow a run of any process until it ends."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from haft.contracts import EXIT_CODES, Event
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import history_with, recover
from haft.surfaces.cli.screen.printing import complain, data, say
from haft.surfaces.cli.screen.progress import Progress
from haft.surfaces.cli.words.run_completion import complete_run
from haft.surfaces.text.home import state_home
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import is_terminal, visible

if TYPE_CHECKING:
    from collections.abc import Callable

RECOVER_SECONDS = 2.0
"""How often haft checks whether the host of a silent run is still alive."""


@click.command("watch", cls=HaftCommand)
@click.argument("run", shell_complete=complete_run, help="A run: its id, or the beginning of the id.")
@click.pass_context
def watch_run(context: click.Context, run: str) -> None:
    """Follow a run, even if another process started it. haft prints the run's output on stdout, and its states and
    progress on stderr. haft exits with the exit code of the run. With `--json`, haft prints each event as one line of
    JSON, and the outcome as the last line."""
    options = context.find_object(Globals) or Globals()
    from haft.service import follow

    show = _Stream() if options.json else _Show(options)
    with history_with(run) as kept:
        record = kept.find(run)
        for event in follow(kept, record.id, _keep_recovering()):
            show(event)
        ended = kept.find(record.id)
    error = ended.outcome["error"]
    if error is not None and not options.quiet:
        complain(error["message"], error["hint"])
    context.exit(0 if error is None else EXIT_CODES.get(error["code"], 1))


def _keep_recovering() -> Callable[[], None]:
    """A function to call while the run is silent. Now and then, it cleans up after killed hosts; otherwise their runs
    would look open for ever."""
    home = state_home()
    last = time.monotonic()

    def pause() -> None:
        nonlocal last
        if time.monotonic() - last >= RECOVER_SECONDS:
            recover(home)
            last = time.monotonic()

    return pause


class _Stream:
    """Prints each event as a line of JSON, for programs."""

    def __call__(self, event: Event) -> None:
        data(to_json_text(event.to_json()) + "\n")


class _Show:
    """Prints output, states and progress for a person."""

    def __init__(self, options: Globals) -> None:
        self._quiet = options.quiet
        self._progress = Progress(quiet=options.quiet)
        self._any = False
        self._line_open = False

    def __call__(self, event: Event) -> None:
        match event.type:
            case "stdout" | "stderr":
                if event.facts.get("skipped") and not self._quiet:
                    say(f"{event.facts['skipped']:_} bytes were not kept")
                self._write(event.text)
            case "status":
                self._progress.clear()
                if not self._quiet:
                    self._end_line()
                    say(f"{event.run} {event.status}")
            case "outcome":
                self._progress.clear()
                if not self._any:
                    self._write(event.facts["outcome"]["output"])
                self._end_line()
            case "child":
                self._progress.clear()
                if not self._quiet:
                    self._end_line()
                    say(f"{event.facts['child']} {event.facts['tool']} {event.facts['became']}")
            case "connection":
                self._progress.clear()
                if not self._quiet:
                    self._end_line()
                    say(visible(event.text))
            case "progress":
                self._progress.take(event, may_draw=not self._line_open)

    def _write(self, text: str) -> None:
        if text:
            self._progress.clear()
            self._any, self._line_open = True, not text.endswith("\n")
            data(visible(text) if is_terminal(sys.stdout) else text)

    def _end_line(self) -> None:
        if self._line_open and is_terminal(sys.stdout):
            data("\n")
            self._line_open = False
