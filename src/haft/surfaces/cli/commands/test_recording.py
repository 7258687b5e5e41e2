"""The options of `haft tools test` that record scenarios instead of running them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from haft.contracts import BadUsage
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.printing import facts, lines, say
from haft.surfaces.cli.words.run_completion import complete_run
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.testing.recording import Recorded

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option(
        "--record",
        "recorded_run",
        metavar="RUN",
        shell_complete=complete_run,
        help="Write a scenario that repeats this past run, instead of running scenarios.",
    ),
    click.option("--to", metavar="FILE", type=click.Path(dir_okay=False), help="The file that `--record` writes."),
    click.option(
        "--files",
        metavar="GLOB",
        multiple=True,
        help="Add these files of the workspace to the recorded scenario. May be given several times.",
    ),
)


def recording_options(command: Command) -> Command:
    """Add the options of recording to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_recording(recording: Mapping[str, Any]) -> bool:
    """Whether the options ask for a recording. Raises `BadUsage` for options that only a recording has."""
    if recording["recorded_run"] is not None:
        return True
    if recording["to"] is not None or recording["files"]:
        raise BadUsage("`--to` and `--files` belong to `--record RUN`", hint="`haft log` lists the runs")
    return False


def record(recording: Mapping[str, Any], paths: Sequence[str], options: Globals) -> None:
    """Record a past run."""
    import asyncio

    from haft.testing.recording import record_run

    if paths:
        raise BadUsage("`--record` takes no paths of scenarios", hint="`--to FILE` names the file that it writes")
    run, home = recording["recorded_run"], state_home()
    tell(asyncio.run(record_run(run, home, to=recording["to"], files=recording["files"])), options)


def tell(recorded: Recorded, options: Globals) -> None:
    """Print where the scenario is, and what it does not know."""
    if options.json:
        facts(recorded.to_json())
        return
    lines([recorded.path])
    if not options.quiet:
        for note in recorded.notes:
            say(f"note: {one_line(note)}")
