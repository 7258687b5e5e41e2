"""What an undo or a redo would do, path by path, and the ways to settle its conflicts, before anything happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.surfaces.http.console.call_words import short_id
from haft.surfaces.http.console.figures import clock, counted
from haft.surfaces.http.console.run_facts import RunFacts
from haft.values import dataclass

_ACTIONS: Final = {
    "restore": ("undone", "as it was before this run"),
    "create": ("create", "it comes back"),
    "delete": ("remove", "this run created it"),
    "keep": ("edit", "it stays, because others put files into it"),
}
_REDONE: Final = {
    "restore": ("redo", "as this run left it"),
    "create": ("create", "this run created it"),
    "delete": ("remove", "this run deleted it"),
}


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What would happen to one path."""

    action: str
    picture: str
    path: str
    words: str
    by: str | None = None
    """For a conflict: the run that changed the path since; None if that was outside haft."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to settle the conflicts."""

    value: str
    title: str
    words: str
    say: str
    """What the button says."""
    runs: tuple[str, ...]
    force: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan."""

    direction: str
    rows: list[PlanRow]
    conflicts: int
    ways: list[Way]
    problem: str | None = None
    """Why it is not possible."""
    hint: str | None = None

    @property
    def summary(self) -> str:
        nothing = "Nothing has been touched."
        return f"{counted(self.conflicts, 'conflict')}. {nothing}" if self.conflicts else f"No conflict. {nothing}"


def plan_of(run: RunFacts, direction: str, found: Mapping[str, Any], others: Mapping[str, RunFacts]) -> Plan:
    """The plan as it is shown. `others` are the runs that changed the same paths since."""
    conflicts = found["conflicts"]
    clashing = {each["path"] for each in conflicts}
    rows = [_conflict(each, others) for each in conflicts]
    words = _ACTIONS if direction == "undo" else {**_ACTIONS, **_REDONE}
    for each in found["plan"]:
        if each["path"] not in clashing:
            picture, sentence = words[each["action"]]
            rows.append(PlanRow(each["action"], picture, each["path"], sentence))
    return Plan(direction, rows, len(conflicts), _ways(run, direction, conflicts, others))


def _conflict(conflict: Mapping[str, str], others: Mapping[str, RunFacts]) -> PlanRow:
    other = others.get(conflict["by"])
    if other is None:
        return PlanRow("conflict", "conflict", conflict["path"], "Changed again since, outside haft.")
    words = f"Changed again at {clock(other.ended or other.began)} by {other.tool} of {other.who}."
    return PlanRow("conflict", "conflict", conflict["path"], words, other.id)


def _ways(
    run: RunFacts, direction: str, conflicts: Sequence[Mapping[str, str]], others: Mapping[str, RunFacts]
) -> list[Way]:
    verb, past = ("Undo", "undoing this undo") if direction == "undo" else ("Redo", "undoing this redo")
    if not conflicts:
        return [Way("plain", f"{verb} {run.short}", "", f"{verb} {run.short}", (run.id,), force=False)]
    ways = []
    names = [*dict.fromkeys(each["by"] for each in conflicts)]
    if direction == "undo" and all(name in others for name in names):
        shorts = " and ".join(map(short_id, names))
        words = "All in one step, the newest first: all or nothing."
        ways.append(Way("both", f"Undo {shorts} too", words, f"Undo {run.short} and {shorts}", (run.id, *names), False))
    paths = [*dict.fromkeys(each["path"].rpartition("/")[2] for each in conflicts)]
    named = paths[0] if len(paths) == 1 else f"{len(paths)} files"
    words = f"What others wrote there since leaves the workspace. It is kept: {past} brings it back."
    title = f"Put the old {named} there anyway" if direction == "undo" else f"Put {named} of this run there anyway"
    ways.append(Way("force", title, words, f"{verb} {run.short}, replace {named}", (run.id,), force=True))
    return ways
