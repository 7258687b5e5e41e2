"""`haft diff RUN`: what a run changed.

Into a pipe goes the patch and nothing else, byte for byte, so that `haft diff RUN | git apply -R` works; what a patch
cannot tell is said on stderr. On a terminal all of it is shown together, in colour, with nothing that could steer the
terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

import click

from haft.contracts import Conflicting, UnknownRun
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import state_home
from haft.surfaces.cli.printing import facts, lines, say, warn, writing
from haft.surfaces.cli.run_names import complete_run
from haft.surfaces.cli.terminal import is_terminal, one_line, styled, visible, width

if TYPE_CHECKING:
    from haft.changes.diff import FileDifference
    from haft.changes.manifest import Altered


class ChangeSet(Protocol):
    """What a run changed, as it is kept."""

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
    def conflicts(self) -> tuple[Conflicting, ...]: ...
    @property
    def entries(self) -> tuple[Altered, ...]: ...


class KeptChanges(Protocol):
    """Where change sets and their content are kept."""

    def find(self, run: str, /) -> ChangeSet: ...
    def read(self, change_set: ChangeSet, altered: Altered, side: Literal["before", "after"], /) -> BinaryIO | None: ...


@click.command("diff", cls=HaftCommand)
@click.argument("run", shell_complete=complete_run, help="A run, by its name or the beginning of it.")
@click.option("--stat", is_flag=True, help="Only which files, and how many lines of each.")
@click.pass_obj
def print_diff(said: Globals, run: str, stat: bool) -> None:
    """What a run changed in the files of its workspace, as a patch."""
    from haft.service import open_changes

    kept: KeptChanges | None = open_changes(state_home())
    if kept is None:
        raise UnknownRun(run)
    print_changes(kept, run, said, "stat" if stat else "patch")


def print_changes(kept: KeptChanges, run: str, said: Globals, form: Literal["patch", "stat"]) -> None:
    """The change set of `run`, as the options want it."""
    from haft.changes.diff import differences
    from haft.changes.diffstat import stat_lines

    found = kept.find(run)
    each_file = differences(found.entries, lambda altered, side: kept.read(found, altered, side))
    if said.json:
        facts(_gathered(found, each_file))
        return
    _tell_state(found, said)
    if not found.entries:
        if not said.quiet:
            say(f"{found.run} changed nothing" if found.complete else f"no changes of {found.run} are known")
    elif form == "stat":
        counted = stat_lines((replace(each, text=each.text and "") for each in each_file), width())
        lines(_coloured_bar(line) for line in counted)
    elif is_terminal(sys.stdout):
        lines(line for each in each_file for line in _for_person(each))
    else:
        _print_patch(each_file, said)


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


def _tell_state(found: ChangeSet, said: Globals) -> None:
    """Where these changes are, and whether they are all."""
    if not found.complete:
        warn(f"the change set is not complete: {found.reason}")
    if said.quiet:
        return
    for conflict in found.conflicts:
        by = "outside of haft" if conflict.by == "outside" else f"by {conflict.by}"
        say(f"in conflict: {one_line(conflict.path)}, changed {by}")
    if found.state == "held":
        say(f"held: not in the workspace; `haft changes apply {found.run}` or `haft changes drop {found.run}`")
    elif found.state in ("undone", "discarded"):
        say(f"{found.state}: not in the workspace")


def _print_patch(each_file: Iterable[FileDifference], said: Globals) -> None:
    """The patch as it is; what is missing in it is said."""
    for each in each_file:
        if each.text:
            with writing():
                # Not by the encoding of the terminal: a patch holds the bytes of files.
                sys.stdout.buffer.write(each.text.encode("utf-8", "surrogateescape"))
        if each.note and each.renamed_to is None and not said.quiet:
            say(f"not in the patch: {one_line(each.change.path)}: {one_line(each.note)}")
    with writing():
        sys.stdout.flush()


def _for_person(each: FileDifference) -> Iterator[str]:
    if each.renamed_to is not None:
        return
    if each.text is None:
        yield styled(one_line(f"{each.change.type} {each.change.path}"), "bold", sys.stdout)
    else:
        yield from _coloured(each.text)
    if each.note:
        yield styled(one_line(each.note), "dim", sys.stdout)


def _coloured(text: str) -> Iterator[str]:
    """Line by line. A removed `-- a` looks like a header: only its place in a hunk tells."""
    in_hunk = False
    for line in text.removesuffix("\n").split("\n"):
        # Without its newline, a carriage return at the end of a line is made visible too.
        shown = visible(line)
        in_hunk = line.startswith("@@") or (in_hunk and line[:1] in (" ", "+", "-", "\\"))
        if not in_hunk:
            yield styled(shown, "bold", sys.stdout)
        elif line.startswith(("@@", "\\")):
            yield styled(shown, "dim", sys.stdout)
        elif line.startswith(("+", "-")):
            yield styled(shown, "good" if line.startswith("+") else "bad", sys.stdout)
        else:
            yield shown


def _coloured_bar(line: str) -> str:
    start, bar, signs = visible(line).rpartition(" ")
    if " | " not in start or signs.strip("+-"):
        return start + bar + signs
    plus = signs.rstrip("-")
    minus = signs[len(plus) :]
    return (
        start + bar + "".join(styled(part, how, sys.stdout) for part, how in ((plus, "good"), (minus, "bad")) if part)
    )
