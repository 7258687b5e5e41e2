"""The fewest narrow rules that would have answered past approvals.

A greedy cover: again and again the candidate that saves the most prompts, the narrowest of several. One line of
commands may need several rules; these are then proposed together. Nothing is taken on trust: each choice is replayed by
the judge itself over all past calls. A choice that would let pass a call that a person rejected is never proposed, nor
one that does not do what it was chosen for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from haft.contracts import BadConfig, Decision
from haft.policy.analysis.verdict import Part
from haft.policy.candidates import Candidate, candidates_of
from haft.policy.judge import Judge
from haft.policy.question import Question
from haft.policy.rules.rule import Rule

FEWEST_SAVED: Final = 2
"""A rule that would have saved fewer prompts is not worth reading."""
MOST_TOGETHER: Final = 4
"""Rules that are proposed for one line."""
MOST_SUGGESTED: Final = 20
MOST_TRIED: Final = 300
"""Choices that are replayed. Each costs a decision for every past call."""

HowAnswered = Literal["approved", "rejected", "other"]
Unit = tuple[int, int]
"""A call by number, and a part of it by number."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call as it was recorded, and every run of exactly it that ended alike."""

    question: Question
    runs: tuple[str, ...]
    answered: HowAnswered
    """By a person; `other`: by nobody, or by a rule."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Rules that go together, mostly one."""

    rules: tuple[Candidate, ...]
    saved: tuple[PastCall, ...]
    also: tuple[PastCall, ...]
    """What they would have let pass besides: calls that no person answered."""
    is_alone: bool
    """Whether they save all of it without the suggestions before this one."""

    @property
    def prompts(self) -> int:
        return sum(len(call.runs) for call in self.saved)


@dataclass(frozen=True, slots=True)
class _Reach:
    """What a candidate speaks of, by the judge's own matching. No decision about any other call can change by it."""

    units: frozenset[Unit]
    """Among the parts that asked."""
    asked: frozenset[int]
    """Calls that a person approved, by number."""
    rejected: frozenset[int]
    others: frozenset[int]


class Suggester:
    """Finds rules for one workspace. `judge_with` makes the judge that has these rules after those in force."""

    def __init__(self, past: Sequence[PastCall], judge: Judge, judge_with: Callable[[Sequence[Rule]], Judge]) -> None:
        self._judge = judge
        self._judge_with = judge_with
        self.asked: list[PastCall] = []
        """What a person approved, and would be asked about again."""
        self._needed: list[tuple[int, ...]] = []
        """Of each of these the parts that ask, by number."""
        self._rejected: list[PastCall] = []
        self._others: list[PastCall] = []
        for call in past:
            decision = judge.decide(call.question)
            # A rule that says `ask` is somebody's will: nothing is proposed against it.
            if call.answered == "approved" and decision.action == "ask" and decision.layer != "rules":
                self.asked.append(call)
                self._needed.append(_asking(decision))
            elif call.answered != "approved" and decision.action != "allow":
                (self._rejected if call.answered == "rejected" else self._others).append(call)
        self._units = [{(at, n) for n in needed} for at, needed in enumerate(self._needed)]
        self._index = {name: self._indexed(calls) for name, calls in self._kinds().items()}

    def suggestions(self) -> list[Suggestion]:
        """The best first."""
        reaches = self._reaches()
        found: list[Suggestion] = []
        rules: list[Candidate] = []
        answered: set[int] = set()
        refused: set[frozenset[Candidate]] = set()
        while len(found) < MOST_SUGGESTED and len(found) + len(refused) < MOST_TRIED:
            covered = {unit for each in rules for unit in reaches[each].units}
            choices = {frozenset((each,)) for each in reaches} | self._together(reaches, covered, answered)
            best = self._best(choices - refused, reaches, covered, answered)
            if best is None:
                break
            tried = self._tried(best, rules, answered, reaches)
            if tried is None:
                refused.add(best)
                continue
            suggestion, saved = tried
            found.append(suggestion)
            rules += suggestion.rules
            answered |= saved
        return found

    def _kinds(self) -> dict[str, list[PastCall]]:
        return {"asked": self.asked, "rejected": self._rejected, "others": self._others}

    def _indexed(self, calls: Sequence[PastCall]) -> dict[tuple[str, str | None], list[tuple[int, int, Part | None]]]:
        """Every part by its tool and its first word; calls without command lines by their tool."""
        found: dict[tuple[str, str | None], list[tuple[int, int, Part | None]]] = {}
        for at, call in enumerate(calls):
            tool = call.question.spec.name
            parts = self._judge.parts(call.question)
            for n, part in enumerate((None,) if parts is None else parts):
                word = None if part is None else part.words[0] if part.words else ""
                found.setdefault((tool, word), []).append((at, n, part))
        return found

    def _reaches(self) -> dict[Candidate, _Reach]:
        """Of each candidate that could save enough. Of several that speak of the same calls, the narrowest."""
        made: Counter[Candidate] = Counter()
        for places in self._index["asked"].values():
            for at, _n, part in places:
                call = self.asked[at]
                for each in candidates_of(call.question, None if part is None else (part,)):
                    made[each] += len(call.runs)
        found: dict[Candidate, _Reach] = {}
        taken: set[frozenset[Unit]] = set()
        # What few calls brought up fits few, unless it has a pattern that others brought up alone.
        likely = [each for each, runs in made.items() if runs >= FEWEST_SAVED or each.has_several_patterns]
        for each in sorted(likely, key=_narrow):
            units, asked = self._fitting(each, "asked")
            needed = frozenset(unit for unit in units if unit in self._units[unit[0]])
            if needed in taken or sum(len(self.asked[at].runs) for at, _n in needed) < FEWEST_SAVED:
                continue
            taken.add(needed)
            rejected, others = (self._fitting(each, name)[1] for name in ("rejected", "others"))
            found[each] = _Reach(needed, asked, rejected, others)
        return found

    def _fitting(self, candidate: Candidate, name: str) -> tuple[frozenset[Unit], frozenset[int]]:
        calls = self._kinds()[name]
        units = frozenset(
            (at, n)
            for at, n, part in self._index[name].get((candidate.tool, candidate.first), ())
            if self._judge.fits(candidate.rule, calls[at].question, part)
        )
        return units, frozenset(at for at, _n in units)

    def _together(
        self, reaches: dict[Candidate, _Reach], covered: set[Unit], answered: set[int]
    ) -> set[frozenset[Candidate]]:
        """For lines that need more than one rule: the best for each of their parts."""
        fitting: dict[Unit, list[Candidate]] = {}
        for each, reach in reaches.items():
            for unit in reach.units:
                fitting.setdefault(unit, []).append(each)
        found = set()
        for at, units in enumerate(self._units):
            missing = units - covered
            if at in answered or not 1 < len(missing) <= MOST_TOGETHER or not missing <= fitting.keys():
                continue
            best = (
                min(fitting[unit], key=lambda each: (-len(reaches[each].units), *_narrow(each))) for unit in missing
            )
            found.add(frozenset(best))
        return found

    def _best(
        self,
        choices: Iterable[frozenset[Candidate]],
        reaches: dict[Candidate, _Reach],
        covered: set[Unit],
        answered: set[int],
    ) -> frozenset[Candidate] | None:
        """The choice that would save the most prompts for each rule; of several the narrowest."""
        ranked = []
        for choice in choices:
            calls = {at for each in choice for at in reaches[each].asked} - answered
            saves = sum(
                len(self.asked[at].runs)
                for at in calls
                if all(
                    unit in covered or any(unit in reaches[each].units for each in choice) for unit in self._units[at]
                )
            )
            if saves >= FEWEST_SAVED:
                ranked.append((-saves / len(choice), sorted(map(_narrow, choice)), choice))
        return min(ranked, key=lambda one: one[:2])[2] if ranked else None

    def _tried(
        self,
        choice: frozenset[Candidate],
        rules: list[Candidate],
        answered: set[int],
        reaches: dict[Candidate, _Reach],
    ) -> tuple[Suggestion, set[int]] | None:
        """The choice as the judge replays it, with the rules before it and alone; None where it is not worth proposing,
        or would let pass what a person rejected."""
        new = tuple(sorted(choice, key=_narrow))
        try:
            judge, alone = (self._judge_with([each.rule for each in some]) for some in ((*rules, *new), new))
        except BadConfig:
            return None  # It can never match, where it would stand.
        rejected = {at for each in new for at in reaches[each].rejected}
        if any(_passes(each, self._rejected[at]) for at in rejected for each in (judge, alone)):
            return None
        asked = {at for each in new for at in reaches[each].asked}
        passing = {at for at in asked if _passes(judge, self.asked[at])}
        if asked & answered - passing:
            return None
        saved = passing - answered
        before = self._judge_with([each.rule for each in rules]) if rules else self._judge
        others = sorted({at for each in new for at in reaches[each].others})
        also = tuple(
            call for call in map(self._others.__getitem__, others) if _passes(judge, call) and not _passes(before, call)
        )
        calls = tuple(self.asked[at] for at in sorted(saved))
        suggestion = Suggestion(new, calls, also, all(_passes(alone, call) for call in calls))
        return (suggestion, saved) if suggestion.prompts >= FEWEST_SAVED else None


def _asking(decision: Decision) -> tuple[int, ...]:
    """The parts that asked, by number; of a call without command lines, itself."""
    return tuple(n for n, part in enumerate(decision.parts) if part.action == "ask") or (0,)


def _passes(judge: Judge, call: PastCall) -> bool:
    return judge.decide(call.question).action == "allow"


def _narrow(candidate: Candidate) -> tuple[int, str]:
    """The narrowest first, and the order is always the same."""
    return candidate.width, repr(candidate.matches)
