"""Functions that many commands use: for the workspace, warnings about its configuration, and access to past runs and
changes."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from haft.contracts import BadUsage, HaftError, UnknownRun
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.printing import say, warn
from haft.surfaces.text.home import state_home

if TYPE_CHECKING:
    from haft.service import ChangesFacade, Config, ForeignFile, History, Ignored, RunRecord, StateHome

TRUST_HINT: Final = "hint: `haft trust` shows the workspace's whole file, and makes these settings count"


def workspace_of(options: Globals) -> str:
    """The workspace given with `-w`. Without `-w`, the nearest workspace: the current directory or a directory above
    it."""
    if options.workspace is not None:
        return options.workspace
    return _nearest(current_directory(), state_home().path, quiet=options.quiet)


def workspace_quietly(options: Globals) -> str:
    """The workspace, for a command that works without one: prints no warning about directories that cannot be it."""
    return workspace_of(Globals(workspace=options.workspace, quiet=True))


def current_directory() -> str:
    """The directory that the command was started in."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise BadUsage("the current directory does not exist any more", hint="`-w DIR` names a workspace") from error


@functools.cache
def _nearest(start: str, home: str, *, quiet: bool) -> str:
    """The nearest workspace, searched from `start` upwards. Prints a warning, once, for each directory on the way that
    cannot be the workspace."""
    from haft.service import find_workspace

    def report_skipped(stranger: ForeignFile) -> None:
        if not quiet:
            warn(stranger.sentence())
            say(f"hint: {stranger.hint()}")

    return find_workspace(start, home, report_skipped)


def require_person(command: str) -> None:
    """Raise `RefusedToClient` if this process belongs to an agent that uses haft now. Every command that counts as a
    person's calls this first. `command` is without the word `haft`."""
    from haft.service import refuse_clients

    refuse_clients(state_home(), f"haft {command}")


def agent_of_this_process() -> str | None:
    """The living client that this process belongs to, in words; None if this process is a person's."""
    from haft.service import belongs_to

    return next((f"{client.words()}: {why}" for client, why in belongs_to(state_home())), None)


def tell_ignored(config: Config, options: Globals, *, is_brief: bool = False) -> None:
    """Warn about settings that do not count. If `is_brief`, the settings that wait for trust take one line."""
    if options.quiet:
        return
    waiting = [one for one in config.ignored if one.waits]
    if not is_brief:
        _tell_waiting(config, waiting)
    elif waiting:
        warn(_brief(config, len(waiting)))
    for one in config.ignored:
        if not one.waits:
            warn(one.sentence())
    for unset in config.unset:
        # For other settings, the list of tools names the missing variable.
        if unset.setting in ("templates.paths", "toolbox.paths"):
            warn(unset.sentence())
    if not is_brief:
        tell_trust_hint(config)


def _brief(config: Config, count: int) -> str:
    settings, wait = ("setting", "waits") if count == 1 else ("settings", "wait")
    if config.since_trusted is not None:
        changed = config.since_trusted.sentence()
        return f"{changed}: {count} {settings} in it {wait} for `haft trust`, which shows the difference"
    file = os.path.basename(config.files[-1])
    return f"{count} {settings} of {file} {wait} for `haft trust`, which shows {'it' if count == 1 else 'them'}"


def _tell_waiting(config: Config, waiting: Sequence[Ignored]) -> None:
    new = waiting if config.since_trusted is None else _new_since_trusted(config, waiting)
    for one in new:
        warn(one.sentence())
    others = len(waiting) - len(new)
    if others and config.since_trusted is not None:
        settings, do = ("setting", "does") if others == 1 else ("settings", "do")
        file = os.path.basename(config.since_trusted.before.path)
        warn(f"{others} more {settings} of {file}, which counted before the file changed, {do} not count now")


def tell_trust_hint(config: Config) -> None:
    """Print how to trust the file, if some of its settings wait for trust."""
    if any(one.waits for one in config.ignored):
        change = config.since_trusted
        say(TRUST_HINT if change is None else f"hint: {change.sentence()}: `haft trust` shows the difference")


def _new_since_trusted(config: Config, waiting: Sequence[Ignored]) -> Sequence[Ignored]:
    from haft.service import newly_ignored

    return newly_ignored(waiting, config.since_trusted, os.environ)


def tell_what_is_logged(options: Globals) -> None:
    """From now on, print haft's log messages as warnings, for example that this machine has no sandbox."""
    import logging

    class Warn(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not options.quiet:
                warn(record.getMessage())

    log = logging.getLogger("haft")
    log.handlers = [Warn()]
    log.propagate = False


def recover(home: StateHome) -> None:
    """Clean up after hosts that were killed. If that fails, only a warning is printed."""
    from haft.service import recover_dead_hosts

    try:
        recover_dead_hosts(home)
    except (HaftError, OSError) as error:
        warn(f"runs of a host that was killed could not be ended: {error}")


@contextlib.contextmanager
def history() -> Iterator[History | None]:
    """A context manager that cleans up after dead hosts, and yields the history of runs; None if there is no state home
    yet."""
    from haft.service import open_history

    home = state_home()
    opened = open_history(home)
    if opened is not None:
        recover(home)
    try:
        yield opened
    finally:
        if opened is not None:
            opened.close()


@contextlib.contextmanager
def history_with(run: str) -> Iterator[History]:
    """A context manager that yields the history of runs. Raises `UnknownRun` for `run` if there is no state home
    yet."""
    with history() as opened:
        if opened is None:
            raise UnknownRun(run)
        yield opened


@contextlib.contextmanager
def change_sets() -> Iterator[ChangesFacade | None]:
    """A context manager that yields the change sets; None if there is no state home yet. Enter `history` first, because
    `history` cleans up after dead hosts."""
    from haft.service import open_changes

    opened = open_changes(state_home())
    try:
        yield opened
    finally:
        if opened is not None:
            opened.close()


def find_changed(kept: History, changes: ChangesFacade | None, name: str) -> tuple[str, RunRecord | None]:
    """The full name of a run, and its record. If a process that outlives its calls changed files between two calls,
    these changes have a change set but no run: the record is then None."""
    try:
        record = kept.find(name)
    except UnknownRun:
        with contextlib.suppress(UnknownRun):
            if changes is not None:
                return changes.ledger.find(name).run, None
        raise
    return record.id, record
