"""The options of `haft tools test` that record scenarios instead of running them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from haft.contracts import BadUsage
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.printing import facts, lines, say, warn
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
    click.option(
        "--record-session",
        "session",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Write a scenario into DIR for each call in the workspace from now on, until Ctrl-C.",
    ),
    click.option("--to", metavar="FILE", type=click.Path(dir_okay=False), help="The file that `--record` writes."),
    click.option(
        "--files",
        metavar="GLOB",
        multiple=True,
        help="Add these files of the workspace to recorded scenarios. May be given several times.",
    ),
    click.option(
        "--programs",
        metavar="NAME",
        multiple=True,
        help="Record what this program answers, so that a replay does not start it. For that, haft repeats the call "
        "with the real program. May be given several times.",
    ),
)


def recording_options(command: Command) -> Command:
    """Add the options of recording to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_recording(recording: Mapping[str, Any]) -> bool:
    """Whether the options ask for a recording. Raises `BadUsage` for options that only a recording has."""
    is_one, is_session = recording["recorded_run"] is not None, recording["session"] is not None
    if is_one and is_session:
        raise BadUsage("`--record` and `--record-session` cannot be combined", hint="use one of them")
    if recording["to"] is not None and not is_one:
        raise BadUsage("`--to` belongs to `--record RUN`", hint="`haft log` lists the runs")
    for name in ("files", "programs"):
        if recording[name] and not (is_one or is_session):
            raise BadUsage(f"`--{name}` belongs to `--record RUN` and `--record-session DIR`")
    return is_one or is_session


def record(recording: Mapping[str, Any], paths: Sequence[str], options: Globals) -> None:
    """Record a past run, or the calls from now on."""
    import asyncio

    from haft.testing.recording import record_run

    if paths:
        raise BadUsage("a recording takes no paths of scenarios", hint="`--to FILE` names the file that it writes")
    if recording["session"] is not None:
        _record_session(recording, options)
        return
    recorded = record_run(
        recording["recorded_run"],
        state_home(),
        to=recording["to"],
        files=recording["files"],
        programs=recording["programs"],
    )
    tell(asyncio.run(recorded), options)


def _record_session(recording: Mapping[str, Any], options: Globals) -> None:
    from haft.surfaces.cli.place import workspace_of
    from haft.testing.recording import NotRecorded, RecordingSession

    if options.json:
        raise BadUsage("`--record-session` cannot be combined with `--json`")
    workspace = workspace_of(options)
    session = RecordingSession(
        state_home(), workspace, recording["session"], files=recording["files"], programs=recording["programs"]
    )
    count = 0
    try:
        say(f"recording calls in {workspace}; Ctrl-C ends this")
        for each in session.record():
            if isinstance(each, NotRecorded):
                warn(f"{each.tool} ({each.run}) was not recorded: {each.why}")
            else:
                count += 1
                tell(each, options)
    except KeyboardInterrupt:
        say(f"{count} scenarios were recorded" if count != 1 else "1 scenario was recorded")


def tell(recorded: Recorded, options: Globals) -> None:
    """Print where the scenario is, and what it does not know."""
    if options.json:
        facts(recorded.to_json())
        return
    lines([recorded.path])
    if not options.quiet:
        for note in recorded.notes:
            say(f"note: {one_line(note)}")
