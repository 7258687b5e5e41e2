"""`haft diff RUN`: the changes of a run.

A pipe gets the patch and nothing else, byte for byte, so that `haft diff RUN | git apply -R` works; facts that a patch
cannot hold go to stderr. A terminal gets the patch and these facts together, in colour, with control characters written
as escapes.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

import click

from haft.contracts import BadUsage, Change, ConflictingPath, UnknownRun
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import change_sets, find_changed, history_with, tell_what_is_logged
from haft.surfaces.cli.screen.printing import facts, say, verbatim, warn, writing
from haft.surfaces.cli.words.change_states import became_of
from haft.surfaces.cli.words.run_completion import complete_run
from haft.surfaces.text.patches import coloured_lines
from haft.surfaces.text.terminal import is_terminal, one_line, styled, visible, width

if TYPE_CHECKING:
    from haft.service import ChangesFacade, ChangesPart, FileDifference, RunRecord

Form = Literal["patch", "stat"]
MOST_NAMED: Final = 10
"""How many paths of a part of the changes are named at most."""


class ChangeSet(Protocol):
    """A stored change set: the state of a run's changes, and its conflicts."""

    @property
    def run(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def complete(self) -> bool: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def conflicts(self) -> tuple[ConflictingPath, ...]: ...
    @property
    def entries(self) -> Sequence[Any]: ...


Kept = TypeVar("Kept", bound=ChangeSet)


class KeptChanges(Protocol[Kept]):
    """The store of change sets and of the content of changed files."""

    def find(self, run: str, /) -> Kept: ...
    def differences(self, found: Kept, /) -> Iterable[FileDifference]: ...


@dataclass(frozen=True, slots=True)
class RecordedChanges:
    """The changes of a run as its record lists them. Used if the content of the changed files is not stored."""

    run: str
    state: str
    engine: str
    complete: bool
    reason: str | None
    files: tuple[FileDifference, ...]
    conflicts: tuple[ConflictingPath, ...] = ()

    @property
    def entries(self) -> tuple[FileDifference, ...]:
        return self.files


@click.command("diff", cls=HaftCommand)
@click.argument("run", shell_complete=complete_run, help="A run: its id, or the beginning of the id.")
@click.option("--stat", is_flag=True, help="List only the files, each with the number of changed lines.")
@click.pass_obj
def print_diff(options: Globals, run: str, stat: bool) -> None:
    """Print the file changes of a run as a patch. If the run has not ended yet, print its changes so far. If someone
    applied only some of the changes, print those that are applied or still held, and say which are which."""
    tell_what_is_logged(options)
    form: Form = "stat" if stat else "patch"
    with history_with(run) as kept, change_sets() as changes:
        name, record = find_changed(kept, changes, run)
        parts = [] if changes is None else changes.parts(name, () if record is None else record.changed_paths)
        if changes is not None and parts:
            _print_parts(changes, name, parts, options, form)
        elif changes is not None and changes.ledger.get(name) is not None:
            print_changes(changes, name, options, form)
        elif record is None:
            raise UnknownRun(run)
        elif record.is_open:
            with changes.live(record.id) if changes is not None else contextlib.nullcontext() as so_far:
                if so_far is None:
                    raise BadUsage(f"{record.id} has not ended yet", hint=f"`haft watch {record.id}` follows it")
                _print(so_far, so_far.differences(), options, form)
        else:
            recorded = _recorded(record)
            _print(recorded, recorded.files, options, form)
            note = None if changes is None else changes.nested_changes_text(kept.made_by(record.id))
            if note is not None and not options.json and not options.quiet:
                say(note)


def print_changes(kept: KeptChanges[Kept], run: str, options: Globals, form: Form) -> None:
    """Print the change set of `run` in the requested form."""
    found = kept.find(run)
    _print(found, kept.differences(found), options, form)


def _print_parts(changes: ChangesFacade, run: str, parts: Sequence[ChangesPart], options: Globals, form: Form) -> None:
    """Print the changes of a run that were applied in parts: all that are in the workspace or held. If there are none,
    those that were undone."""
    there = [part for part in parts if part.state in ("committed", "held")]
    shown = there or [part for part in parts if part.state == "undone"]
    found = [changes.find(part.run) for part in shown]
    files: dict[str, FileDifference] = {}
    for each in found:
        for difference in changes.differences(each):
            files.setdefault(difference.change.path, difference)  # A held part may need a new directory too.
    row = changes.ledger.get(run)
    if options.json:
        whole = RecordedChanges(
            run,
            parts[-1].state if row is None else row.state,
            found[-1].engine if found else "none",
            all(each.complete for each in found),
            None if row is None else row.reason,
            tuple(files.values()),
            tuple(conflict for each in found for conflict in each.conflicts),
        )
        facts({**_gathered(whole, whole.files), "parts": [part.to_json() for part in parts]})
        return
    for each in found:
        if not each.complete:
            warn(f"the change set is not complete: {each.reason}")
    if not options.quiet:
        for part in parts:
            names = f"{', '.join(part.paths[:MOST_NAMED])}"
            more = f" and {len(part.paths) - MOST_NAMED:_} more" if len(part.paths) > MOST_NAMED else ""
            say(one_line(f"{became_of(part, run)}: {names}{more}"))
        if any(part.state == "held" for part in parts):
            say(f"held: not in the workspace; `haft changes apply {run}` or `haft changes drop {run}`")
    _print_files(list(files.values()), options, form)


def _recorded(run: RunRecord) -> RecordedChanges:
    """The changes of a run that has no change set: the run changed nothing, haft did not track it, or its changes were
    discarded."""
    from haft.service import FileDifference

    changes = run.record["changes"]
    files = tuple(
        FileDifference(
            Change(each["path"], each["type"], each["kind"], each.get("before"), each.get("after")),
            0,
            0,
            None,
            "its content is not kept",
        )
        for each in changes["files"]
    )
    return RecordedChanges(run.id, changes["state"], changes["engine"], changes["complete"], changes["reason"], files)


def _print(found: ChangeSet, each_file: Iterable[FileDifference], options: Globals, form: Form) -> None:
    if options.json:
        facts(_gathered(found, each_file))
        return
    _tell_state(found, options)
    if not found.entries:
        if not options.quiet:
            say(f"{found.run} changed nothing" if found.complete else f"haft knows no changes of {found.run}")
    else:
        _print_files(each_file, options, form)


def _print_files(each_file: Iterable[FileDifference], options: Globals, form: Form) -> None:
    from haft.service import stat_lines

    if form == "stat":
        counted = stat_lines((replace(each, text=each.text and "") for each in each_file), width())
        verbatim(_coloured_bar(line) for line in counted)
    elif is_terminal(sys.stdout):
        verbatim(line for each in each_file for line in _for_person(each))
    else:
        print_patch(each_file, options)


def _gathered(found: ChangeSet, each_file: Iterable[FileDifference]) -> dict[str, object]:
    return {
        "run": found.run,
        "engine": found.engine,
        "complete": found.complete,
        "reason": found.reason,
        "state": found.state,
        "conflicts": [conflict.to_json() for conflict in found.conflicts],
        "files": [each.to_json() for each in each_file],
    }


def _tell_state(found: ChangeSet, options: Globals) -> None:
    """Print whether the changes are in the workspace, and whether all of them are known."""
    if not found.complete:
        warn(f"the change set is not complete: {found.reason}")
    if options.quiet:
        return
    for conflict in found.conflicts:
        by = "outside of haft" if conflict.by == "outside" else f"by {conflict.by}"
        say(f"in conflict: {one_line(conflict.path)}, changed {by}")
    if found.state == "held":
        why = f" ({one_line(found.reason)})" if found.complete and found.reason else ""
        say(f"held: not in the workspace{why}; `haft changes apply {found.run}` or `haft changes drop {found.run}`")
    elif found.state in ("undone", "discarded"):
        say(f"{found.state}: not in the workspace")


def print_patch(each_file: Iterable[FileDifference], options: Globals) -> None:
    """Print the patch unchanged on stdout, and on stderr the facts that a patch cannot contain."""
    for each in each_file:
        if each.text:
            with writing():
                # A patch contains bytes of files, so the encoding of stdout must not change them.
                sys.stdout.buffer.write(each.text.encode("utf-8", "surrogateescape"))
        if each.note and each.renamed_to is None and not options.quiet:
            say(f"not in the patch: {one_line(each.change.path)}: {one_line(each.note)}")
    with writing():
        sys.stdout.flush()


def _for_person(each: FileDifference) -> Iterator[str]:
    if each.renamed_to is not None:
        return
    if each.text is None:
        yield styled(one_line(f"{each.change.type} {each.change.path}"), "bold", sys.stdout)
    else:
        yield from coloured_lines(each.text, sys.stdout)
    if each.note:
        yield styled(one_line(each.note), "dim", sys.stdout)


def _coloured_bar(line: str) -> str:
    start, bar, signs = visible(line).rpartition(" ")
    if " | " not in start or signs.strip("+-"):
        return start + bar + signs
    plus = signs.rstrip("-")
    minus = signs[len(plus) :]
    return (
        start + bar + "".join(styled(part, how, sys.stdout) for part, how in ((plus, "good"), (minus, "bad")) if part)
    )
