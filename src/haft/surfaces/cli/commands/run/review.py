"""The end of `haft run`: shows what the program changed, and lets the person apply it, whole or in part, or drop it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from haft.contracts import HaftError, Outcome
from haft.surfaces.cli.commands.diff import print_changes
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.person.line_input import NO, YES, not_understood, read_line
from haft.surfaces.cli.place import change_sets
from haft.surfaces.cli.screen.printing import complain, complain_of, say
from haft.surfaces.cli.words.change_states import WORDS
from haft.surfaces.text.terminal import is_terminal

if TYPE_CHECKING:
    from haft.service import ToolService

QUESTION: Final = "Apply these changes? [y/N, p: only some paths, d: show the diff, x: drop them] "


def can_review() -> bool:
    """Whether there is a terminal at which a person can answer."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


async def review(service: ToolService, run: str, options: Globals) -> None:
    """Let a person decide about the held changes of a run. Without an answer, they stay held."""
    show(run, options, is_stat=True)
    while not tell_decided(run):
        line = await read_line(QUESTION)
        answer = line.strip().lower()
        if tell_decided(run):
            return
        if answer in ("", *NO):
            tell_held(run)
            return
        if answer in ("d", "diff"):
            show(run, options, is_stat=False)
        elif answer in ("x", "drop"):
            if _tell(await service.changes.drop(run), f"{run}: its changes were dropped"):
                return
        elif answer in YES:
            if _tell(await service.changes.apply(run), f"{run}: its changes are in the workspace; `haft undo {run}`"):
                return
        elif answer in ("p", "paths", "some"):
            paths = (await read_line("paths, separated by blanks: ")).split()
            if paths and await _apply_some(service, run, paths):
                return
        else:
            say(not_understood(answer, "y, n, p, d or x"))


async def _apply_some(service: ToolService, run: str, paths: list[str]) -> bool:
    """Apply the changes of some paths. Returns whether no change of the run is held any more."""
    try:
        outcome = await service.changes.apply(run, paths=paths)
    except HaftError as error:
        complain_of(error)
        return False
    if not _tell(outcome, f"{run}: {', '.join(paths)} applied; `haft undo {outcome.run_id}`"):
        return False
    if not outcome.result.get("left"):
        return True
    show(run, Globals(), is_stat=True)
    return False


def _tell(outcome: Outcome, text: str) -> bool:
    if outcome.error is not None:
        complain(outcome.error.message, outcome.error.hint)
        return False
    say(text)
    return True


def decided(run: str) -> str | None:
    """What became of the changes of a run if they are no longer held, because somebody decided elsewhere."""
    with change_sets() as changes:
        row = None if changes is None else changes.ledger.get(run)
    if row is None or row.state == "held":
        return None
    return f"{run}: its changes were {WORDS.get(row.state, row.state)} meanwhile"


def tell_decided(run: str) -> bool:
    """Say so if somebody decided about the changes elsewhere. Returns whether this is so."""
    text = decided(run)
    if text is not None:
        say(text)
    return text is not None


def tell_held(run: str) -> None:
    """Say how to apply or drop the changes later."""
    say(
        f"held: `haft diff {run}` shows the changes, `haft changes apply {run} [PATH…]` applies them, "
        f"`haft changes drop {run}` drops them"
    )


def show(run: str, options: Globals, *, is_stat: bool) -> None:
    """Print the held changes of a run, on stdout."""
    with change_sets() as changes:
        if changes is not None:
            shown = Globals(quiet=True, workspace=options.workspace)
            print_changes(changes, run, shown, "stat" if is_stat else "patch")
