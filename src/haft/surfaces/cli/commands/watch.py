"""`haft watch`: follow a run of any process until it ends, or the calls of a thread as they come."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, Self

import click

from haft.contracts import EXIT_CODES, BadUsage, Event, HaftError, RunId
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import history_with, recover
from haft.surfaces.cli.screen.printing import complain, data, lines, say
from haft.surfaces.cli.screen.progress import Progress, waiting_words
from haft.surfaces.cli.screen.task_lines import task_lines
from haft.surfaces.cli.words.run_completion import complete_run
from haft.surfaces.cli.words.times import clock, lasted
from haft.surfaces.cli.words.usage_errors import RUNS_HINT
from haft.surfaces.text.home import state_home
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import is_terminal, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from haft.service import RunRecord

RECOVER_SECONDS = 2.0
"""How often haft checks whether the host of a silent run is still alive."""
THREAD_PAUSE: Final = 0.3
"""How often haft looks for new calls of a thread, in seconds."""
MOST_FOLLOWED: Final = 500
MOST_SHOWN: Final = 500
"""How many characters of the arguments a line shows."""


@click.command("watch", cls=HaftCommand)
@click.argument(
    "run",
    required=False,
    metavar="[RUN]",
    shell_complete=complete_run,
    help="A run: its id, or the beginning of the id.",
)
@click.option("--thread", metavar="T", help="Follow the calls of this thread instead, until you interrupt.")
@click.pass_context
def watch_run(context: click.Context, run: str | None, thread: str | None) -> None:
    """Follow a run, even if another process started it. haft prints the run's output on stdout, and its states and
    progress on stderr. haft exits with the exit code of the run. With `--json`, haft prints each event as one line of
    JSON, and the outcome as the last line.

    With `--thread`, haft prints a line for each call of the thread: when it begins, when it waits for an answer, and
    when it has ended. With `--json`, the lines are the runs as JSON."""
    options = context.find_object(Globals) or Globals()
    if (run is None) == (thread is None):
        raise BadUsage("`haft watch` takes a run or `--thread`", hint=RUNS_HINT)
    if run is None:
        _watch_thread(str(thread), options)
        return
    from haft.service import follow

    show = _Stream() if options.json else _Show(options)
    with history_with(run) as kept, _Tasks(options) as tasks:
        record = kept.find(run)
        for event in follow(kept, record.id, _keep_recovering()):
            show(event)
            tasks.follow_child(event)
        ended = kept.find(record.id)
    error = ended.outcome["error"]
    if error is not None and not options.quiet:
        complain(error["message"], error["hint"])
    context.exit(0 if error is None else EXIT_CODES.get(error["code"], 1))


def _watch_thread(thread: str, options: Globals) -> None:
    """Print each new status of the runs of a thread, until the process is interrupted. Runs that have ended before are
    not printed."""
    from haft.service import Filter, open_history

    pause = _keep_recovering()
    if not options.quiet and is_terminal(sys.stderr):
        say(f"waiting for calls of the thread {one_line(thread)}; Ctrl-C ends")
    begun, known = time.time(), dict[str, str]()
    while True:
        kept = open_history(state_home())
        if kept is not None:
            with contextlib.closing(kept):
                for run in reversed(kept.runs(Filter(thread=thread, limit=MOST_FOLLOWED))):
                    was = known.get(run.id)
                    known[run.id] = run.status
                    is_new = run.is_open or (run.ended_at or 0) >= begun
                    if run.status != was and (is_new if was is None else True):
                        _print_status(run, options)
        pause()
        time.sleep(THREAD_PAUSE)


def _print_status(run: RunRecord, options: Globals) -> None:
    if options.json:
        data(to_json_text(run.to_json()) + "\n")
        return
    words = [clock(run.started_at if run.ended_at is None else run.ended_at), run.id, run.status, run.tool]
    if run.is_open:
        words.append(to_json_text(run.to_json()["arguments"])[:MOST_SHOWN])
    else:
        words.append(f"after {lasted((run.ended_at or 0) - run.started_at)}")
        changed = len(run.changed_paths)
        words += (
            [f"{changed} {'path' if changed == 1 else 'paths'} {run.record['changes']['state']}"] if changed else []
        )
        error = run.outcome["error"]
        words += [] if error is None else [error["message"]]
    lines([one_line("  ".join(words))])
    if run.status == "blocked-on-user" and not options.quiet:
        say(f"`haft approve {run.id}`, `haft reject {run.id}`")


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


class _Tasks:
    """Follows the tasks that a task starts, and prints what they tell, indented. With `--json`, only the run itself is
    followed."""

    def __init__(self, options: Globals, depth: int = 1) -> None:
        self._options = options
        self._depth = depth
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._threads:
            each.join()

    def follow_child(self, event: Event) -> None:
        """Begin to follow the child that the event is about, if it is a task."""
        facts = event.facts
        is_new = event.type == "child" and facts["tool"] == "task" and facts["became"] == "queued"
        if is_new and not self._options.json and not self._options.quiet:
            thread = threading.Thread(target=self._follow, args=(facts["child"],), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _follow(self, run: str) -> None:
        from haft.service import follow

        before = "  " * self._depth
        below = _Tasks(self._options, self._depth + 1)
        with contextlib.suppress(HaftError), below, history_with(run) as kept:
            for event in follow(kept, RunId(run)):
                for line in task_lines(event):
                    say(f"{before}{line}")
                below.follow_child(event)


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
                    words = waiting_words(event)
                    say(f"{event.run} {event.status}{f': {words}' if words else ''}")
            case "outcome":
                self._progress.clear()
                if not self._any:
                    self._write(event.facts["outcome"]["output"])
                self._end_line()
            case "child":
                self._progress.clear()
                if not self._quiet:
                    self._end_line()
                    say(one_line(f"{event.facts['child']} {event.facts['tool']} {event.facts['became']}"))
            case "connection":
                self._progress.clear()
                if not self._quiet:
                    self._end_line()
                    say(visible(event.text))
            case "progress":
                self._show_progress(event)

    def _show_progress(self, event: Event) -> None:
        if "task" not in event.facts:
            self._progress.take(event, may_draw=not self._line_open)
        elif not self._quiet and event.facts["task"]["type"] != "error":  # The error is printed at the end.
            self._progress.clear()
            self._end_line()
            for line in task_lines(event):
                say(line)

    def _write(self, text: str) -> None:
        if text:
            self._progress.clear()
            self._any, self._line_open = True, not text.endswith("\n")
            data(visible(text) if is_terminal(sys.stdout) else text)

    def _end_line(self) -> None:
        if self._line_open and is_terminal(sys.stdout):
            data("\n")
            self._line_open = False
