"""`haft store show` and `haft store prune`: show and free the disk space of outputs and of before-images, which are the
contents that files had before they were changed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import recover
from haft.surfaces.cli.screen.printing import facts, lines, say, table, warn
from haft.surfaces.cli.words.times import clock
from haft.surfaces.text.home import state_home
from haft.surfaces.text.terminal import visible

if TYPE_CHECKING:
    from haft.service import HeldChangeSet, StoreFacade, Tidied, Usage

_PARTS: Final = {
    "originals": "files before calls changed them",
    "contents": "contents of files, by digest",
    "held": "held changes, which wait for a person",
    "lists": "the paths that each run changed",
    "underWay": "layers of calls that have not ended",
    "saved": "files that failed commits could not restore",
    "outputs": "whole outputs of runs",
    "scratch": "the /tmp directories of threads",
}
_MANY: Final = 20
_DAY: Final = 86_400.0


@contextlib.contextmanager
def _store() -> Iterator[StoreFacade | None]:
    """A context manager that cleans up after dead hosts, and yields the store; None if there is no state home yet."""
    from haft.service import StoreFacade, bounds_of, has_state, load_config, retention_of

    home = state_home()
    if not has_state(home):
        yield None
        return
    recover(home)
    # All workspaces share the store, so the configuration file of one workspace does not count here.
    store = StoreFacade(home, bounds_of(load_config(None, os.environ), os.environ), retention_of(os.environ))
    try:
        yield store
    finally:
        store.close()


@click.command("show", cls=HaftCommand)
@click.pass_obj
def show_store(options: Globals) -> None:
    """Show how much disk space the stored data uses, and how many runs can be undone. The stored data are mainly
    outputs of runs, and earlier contents of changed files."""
    with _store() as store:
        if store is None:
            _nothing(options)
            return
        usage = store.measure()
    if options.json:
        facts(usage.to_json())
        return
    _print_usage(usage)
    _tell_held(usage.held)


def _nothing(options: Globals) -> None:
    if options.json:
        facts(None)
    elif not options.quiet:
        say("nothing is kept yet")


def _print_usage(usage: Usage) -> None:
    from haft.service import format_bytes

    parts = [(name, size) for name, size in usage.parts().items() if size or name in ("originals", "contents")]
    table([(_dashed(name), format_bytes(size), _PARTS[name]) for name, size in parts])
    share = 100 * usage.used / usage.budget
    used, budget = format_bytes(usage.used), format_bytes(usage.budget)
    lines([f"{used} of {budget} used ({share:.0f} %), kept for {usage.days:g} days"])
    undoable = "1 run" if usage.undoable == 1 else f"{usage.undoable} runs"
    since = "" if usage.oldest is None else f", the oldest of {clock(usage.oldest)}"
    lines([f"{undoable} can be undone{since}"])
    if usage.oldest is not None:
        lines([f"the oldest can be undone until {clock(usage.oldest + usage.days * _DAY)}, if the space is enough"])
    if usage.at is not None:
        lines([f"measured {clock(usage.at)}, plus later additions; `haft store prune` measures again"])
    ranked = sorted(usage.workspaces, key=lambda each: each.total, reverse=True)
    table([(format_bytes(each.total), f"{each.undoable} to undo", each.workspace) for each in ranked[:_MANY]])
    if len(ranked) > _MANY:
        lines([f"and {len(ranked) - _MANY} more workspaces"])


def _dashed(name: str) -> str:
    return "under way" if name == "underWay" else name


def _tell_held(held: list[HeldChangeSet]) -> None:
    """Print the runs with held changes. haft never deletes held changes by itself: a person applies or drops them."""
    for each in held[:_MANY]:
        days = (time.time() - each.since) / _DAY
        age = f"for {days:.0f} days" if days >= 2 else f"since {clock(each.since)}"
        why = f": {each.reason}" if each.reason else ""
        lines([visible(f"held {age}: {each.run}{why}; `haft changes apply {each.run}` or `drop`")])
    if len(held) > _MANY:
        lines([f"and {len(held) - _MANY} more are held"])


@click.command("prune", cls=HaftCommand)
@click.option("--dry-run", is_flag=True, help="Only print what haft would delete.")
@click.pass_obj
def prune_store(options: Globals, dry_run: bool) -> None:
    """Compress old data, and delete data older than `changes.store_days`. If the earlier contents of files use more
    than `changes.store_bytes`, delete the oldest contents. Print which runs can no longer be undone."""
    with _store() as store:
        if store is None:
            _nothing(options)
            return
        done = store.prune(dry_run=dry_run)
    if options.json:
        facts({"dryRun": dry_run, **done.to_json()})
    else:
        _print_pruned(done, dry_run=dry_run)
    if not options.quiet:
        for workspace in done.pruned.busy:
            warn(f"{workspace} has running calls: its entries were not pruned")
        for workspace in done.pruned.missing:
            warn(f"{workspace} does not exist now: its contents are kept in case it comes back")


def _print_pruned(done: Tidied, *, dry_run: bool) -> None:
    from haft.service import format_bytes

    pruned, outputs = done.pruned, done.outputs
    calls = [each for each in pruned.runs if each.row.verb == "call"]
    for each in calls:
        tense = "could no longer be undone" if dry_run else "can no longer be undone"
        lines([visible(f"{each.row.run} of {clock(each.row.at)} {tense}: {each.reason}")])
    if not calls:
        lines(["every run could still be undone" if dry_run else "every run that could be undone still can"])
    if pruned.packed.files:
        lines([f"packed {pruned.packed.files} files of {format_bytes(pruned.packed.bytes)}"])
    if outputs.files:
        verb = "would be removed" if dry_run else "removed"
        lines([f"outputs of old runs {verb}: {format_bytes(outputs.bytes)}"])
    if done.old_runs:
        verb = "would be removed" if dry_run else "removed"
        lines([f"runs older than `[retention]` says, {verb}: {done.old_runs}; the audit log keeps them"])
    if done.scratch.threads:
        verb = "would be removed" if dry_run else "removed"
        lines([f"temporary files of idle threads {verb}: {format_bytes(done.scratch.bytes)}"])
    most = "at most " if dry_run else ""
    freed_words = "would be freed" if dry_run else "freed"
    freed = max(0, pruned.used - pruned.after) + outputs.bytes + done.scratch.bytes
    remain = "would remain" if dry_run else "remain"
    lines([f"{most}{format_bytes(freed)} {freed_words}; {format_bytes(pruned.after)} {remain}"])
    _tell_held(pruned.held)
