"""`haft tools test`: runs test scenarios of tools, several at once."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from haft.contracts import BadUsage, HaftError
from haft.surfaces.cli.commands.recording import is_recording, record, recording_options
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.screen.printing import facts, lines, say, warn
from haft.surfaces.text.terminal import styled, visible

if TYPE_CHECKING:
    from haft.testing.scenarios import Result, Scenario

FAILED: Final = 1
UNREADABLE: Final = 2
NONE_FOUND: Final = 5


@click.command("test", cls=HaftCommand)
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    type=click.Path(),
    help="Scenario files, and folders with files `NAME.scenario.yaml`, `.toml` or `.json`. Default: the current "
    "directory.",
)
@click.option(
    "-k",
    "words",
    metavar="TEXT",
    multiple=True,
    help="Run only scenarios with this text in the name or the path, in upper or lower case. May be given several "
    "times: a scenario needs one of the texts.",
)
@click.option(
    "-j", "--jobs", metavar="N", type=click.IntRange(1), help="How many scenarios run at once. Default: the cores."
)
@click.option("--junit", metavar="FILE", type=click.Path(dir_okay=False), help="Write the results as JUnit XML, too.")
@click.option("--update", is_flag=True, help="Write what the calls did into the scenario files, as what they expect.")
@click.option("--watch", is_flag=True, help="Run scenarios again when they or their tools change, until Ctrl-C.")
@click.option("--no-skips", is_flag=True, help="Fail if a scenario cannot run on this machine.")
@recording_options
@click.pass_context
def test_tools(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    words: tuple[str, ...],
    jobs: int | None,
    junit: str | None,
    update: bool,
    watch: bool,
    no_skips: bool,
    **recording: Any,
) -> None:
    """Run test scenarios. The exit code is 0 if all passed, 1 if one failed, 2 if one cannot be read, and 5 if there
    are none."""
    options = context.find_object(Globals) or Globals()
    if is_recording(recording):
        given = {"-k": words, "--jobs": jobs, "--junit": junit}
        flags = {"--update": update, "--watch": watch, "--no-skips": no_skips}
        if wrong := next((name for name, value in {**given, **flags}.items() if value), None):
            raise BadUsage(f"`{wrong}` is for running scenarios, and cannot be combined with a recording")
        record(recording, paths, options)
        return
    if watch and (options.json or junit or update):
        raise BadUsage("`--watch` cannot be combined with `--json`, `--junit` or `--update`")
    places = paths or (".",)
    found = _read(places)
    scenarios = _with_words(found, words)
    if watch:
        with _interruptible():
            _watch(places, scenarios, words, jobs, options)
        return
    began = time.monotonic()
    with _interruptible():
        results = _run(scenarios, jobs, options)
    seconds = time.monotonic() - began
    if junit is not None:
        _write_junit(junit, results, seconds)
    if not results:
        say(_why_none(found, words))
    if options.json:
        facts([_form(each) for each in results])
    else:
        _sum_up(results, seconds, options)
    is_updated = update and _update(results)
    context.exit(_exit_code(results, is_updated=is_updated, no_skips=no_skips))


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, so that tools are ended and temporary directories removed."""

    from multiprocessing.resource_tracker import ensure_running

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    for each in numbers:
        signal.signal(each, signal.SIG_IGN)
    ensure_running()  # Python's own helper inherits that: it notes what must be removed, and must end last.
    for each in numbers:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each in numbers:
            signal.signal(each, signal.SIG_DFL)


def _exit_code(results: Sequence[Result], *, is_updated: bool, no_skips: bool) -> int:
    if not results:
        return NONE_FOUND
    if no_skips and any(each.skipped is not None for each in results):
        return FAILED
    return 0 if is_updated or not any(each.mismatches for each in results) else FAILED


def _read(paths: Sequence[str]) -> list[Scenario]:
    """The scenarios in files and folders. Names every file that cannot be read, and not only the first."""
    from haft.testing.reading import find_scenario_files, read_scenario_file

    found: list[Scenario] = []
    broken: list[HaftError] = []
    for path in find_scenario_files(paths):
        try:
            found += read_scenario_file(path)
        except HaftError as error:
            broken.append(error)
    for each in broken[:-1]:
        warn(str(each))
    if broken:
        raise broken[-1]
    return found


def _with_words(scenarios: Sequence[Scenario], words: Sequence[str]) -> list[Scenario]:
    """The scenarios with one of the words in the name or the path; all of them if there are no words."""

    def has(scenario: Scenario, word: str) -> bool:
        return any(word.lower() in each.lower() for each in (scenario.name, scenario.location.path))

    return [each for each in scenarios if not words or any(has(each, word) for word in words)]


def _why_none(found: Sequence[Scenario], words: Sequence[str]) -> str:
    if not found:
        return "there are no scenarios; haft looks for files such as `NAME.scenario.yaml`"
    said = " or ".join(repr(each) for each in words)
    return f"-k: {said} is in the name or path of none of the scenarios ({len(found)})"


def _run(scenarios: Sequence[Scenario], jobs: int | None, options: Globals) -> list[Result]:
    from haft.testing.running import run_scenarios
    from haft.testing.scenarios import lines_of

    def report(result: Result) -> None:
        if not options.json and (not options.quiet or result.mismatches):
            lines(visible(line) for line in lines_of(result, _styled))

    return run_scenarios(scenarios, jobs=jobs, report=report)


def _styled(text: str, style: str) -> str:
    return styled(text, style, sys.stdout)


def _sum_up(results: Sequence[Result], seconds: float, options: Globals) -> None:
    from haft.testing.scenarios import summary

    if results and not options.quiet:
        say(summary(results, seconds))


def _form(result: Result) -> dict[str, Any]:
    location = result.scenario.location
    return {
        "file": location.path,
        "line": location.line,
        "name": result.scenario.name,
        "seconds": round(result.seconds, 3),
        **result.to_json(),
    }


def _write_junit(path: str, results: Sequence[Result], seconds: float) -> None:
    from haft.testing.scenarios import write_junit

    try:
        write_junit(path, results, seconds)
    except OSError as error:
        raise BadUsage(f"{path} cannot be written: {error.strerror}") from error


def _update(results: Sequence[Result]) -> bool:
    """Update the files. Returns whether nothing is left that fails."""
    from haft.testing.reading import update_files

    is_whole = all(each.outcome is not None for each in results if each.mismatches)
    for each in update_files(results):
        if each.replaced:
            say(f"{each.path}: updated {', '.join(each.replaced)}")
        if each.left:
            is_whole = False
            warn(f"{each.path}: these cannot be updated, change them by hand: {', '.join(each.left)}")
    return is_whole


def _watch(
    paths: Sequence[str], scenarios: Sequence[Scenario], words: Sequence[str], jobs: int | None, options: Globals
) -> None:
    """Run scenarios now, and again when something changes, until the person presses Ctrl-C."""
    from haft.testing.running import Watch

    watch = Watch(paths)
    try:
        while True:
            began = time.monotonic()
            _sum_up(_run(scenarios, jobs, options), time.monotonic() - began, options)
            say("waiting for changes; Ctrl-C ends this")
            while not (files := watch.changed()):
                pass
            try:
                scenarios = _with_words(_read(files), words)
            except HaftError as error:
                warn(str(error))
                scenarios = []
    except KeyboardInterrupt:
        return
