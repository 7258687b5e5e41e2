"""The fewest narrow rules that would have answered past approvals.

A greedy cover: again and again the candidate that saves the most prompts, the narrowest of several. One line of
commands may need several rules; these are then proposed together. Nothing is taken on trust: each choice is replayed by
the judge itself over all past calls. A choice that would let pass a call that a person rejected is never proposed, nor
one that does not do what it was chosen for.
"""

from __future__ import annotations

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

Answered = Literal["approved", "rejected", "other"]
Unit = tuple[int, int]
"""A call by number, and a part of it by number."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call as it was recorded, and every run of exactly it that ended alike."""

    question: Question
    runs: tuple[str, ...]
    answered: Answered
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


class Suggester:
    """Finds rules for one workspace. `judge_with` makes the judge that has these rules after those in force."""

    def __init__(self, past: Sequence[PastCall], judge: Judge, judge_with: Callable[[Sequence[Rule]], Judge]) -> None:
        self._judge = judge
        self._judge_with = judge_with
        before = [judge.decide(call.question) for call in past]
        self._rejected = _still_asking(past, before, "rejected")
        self._others = _still_asking(past, before, "other")
        self.asked: list[PastCall] = []
        """What a person approved, and would be asked about again."""
        self._needed: list[tuple[Part | None, ...]] = []
        for call, decision in zip(past, before, strict=True):
            # A rule that says `ask` is somebody's will: nothing is proposed against it.
            if call.answered == "approved" and decision.action == "ask" and decision.layer != "rules":
                self.asked.append(call)
                self._needed.append(self._asked_parts(call.question, decision))
        self._units = [{(at, n) for n in range(len(needed))} for at, needed in enumerate(self._needed)]

    def suggestions(self) -> list[Suggestion]:
        """The best first."""
        covers = self._covers()
        found: list[Suggestion] = []
        rules: list[Candidate] = []
        answered: set[int] = set()
        refused: set[frozenset[Candidate]] = set()
        while len(found) < MOST_SUGGESTED and len(found) + len(refused) < MOST_TRIED:
            covered = {unit for each in rules for unit in covers[each]}
            open_calls = [at for at in range(len(self.asked)) if at not in answered]
            choices = {frozenset((each,)) for each in covers} | self._together(covers, covered, open_calls)
            ranked = self._ranked(choices - refused, covers, covered, open_calls)
            if not ranked:
                return found
            chosen = ranked[0]
            tried = self._tried(chosen, rules, answered)
            if tried is None:
                refused.add(chosen)
                continue
            suggestion, saved = tried
            found.append(suggestion)
            rules += suggestion.rules
            answered |= saved
        return found

    def _asked_parts(self, question: Question, decision: Decision) -> tuple[Part | None, ...]:
        """The parts that asked; of a call without command lines, itself."""
        parts = self._judge.parts(question)
        if parts is None or len(parts) != len(decision.parts):
            return (None,)
        return tuple(part for part, decided in zip(parts, decision.parts, strict=True) if decided.action == "ask")

    def _covers(self) -> dict[Candidate, set[Unit]]:
        """Of each candidate what it speaks of, by the judge's own matching."""
        made = {
            each: None for call in self.asked for each in candidates_of(call.question, self._judge.parts(call.question))
        }
        covers: dict[Candidate, set[Unit]] = {}
        for each in made:
            covers[each] = {
                (at, n)
                for at, call in enumerate(self.asked)
                if call.question.spec.name == each.tool
                for n, part in enumerate(self._needed[at])
                if self._judge.fits(each.rule, call.question, part)
            }
        return covers

    def _together(
        self, covers: dict[Candidate, set[Unit]], covered: set[Unit], open_calls: Iterable[int]
    ) -> set[frozenset[Candidate]]:
        """For lines that need more than one rule: the best for each of their parts."""
        found = set()
        for at in open_calls:
            missing = self._units[at] - covered
            if not 1 < len(missing) <= MOST_TOGETHER:
                continue
            fitting = [[each for each in covers if unit in covers[each]] for unit in sorted(missing)]
            if all(fitting):
                best = (min(any_of, key=lambda each: (-len(covers[each]), *_narrow(each))) for any_of in fitting)
                found.add(frozenset(best))
        return found

    def _ranked(
        self,
        choices: Iterable[frozenset[Candidate]],
        covers: dict[Candidate, set[Unit]],
        covered: set[Unit],
        open_calls: Sequence[int],
    ) -> list[frozenset[Candidate]]:
        """Those that would save enough, the most for each rule first, then the narrowest."""
        ranked = []
        for choice in choices:
            units = covered.union(*(covers[each] for each in choice))
            saves = sum(len(self.asked[at].runs) for at in open_calls if self._units[at] <= units)
            if saves >= FEWEST_SAVED:
                narrowness = sorted(map(_narrow, choice))
                ranked.append(((-saves / len(choice), narrowness), choice))
        return [choice for _key, choice in sorted(ranked, key=lambda one: one[0])]

    def _tried(
        self, choice: frozenset[Candidate], rules: list[Candidate], answered: set[int]
    ) -> tuple[Suggestion, set[int]] | None:
        """The choice as the judge replays it, with the rules before it and alone; None where it is not worth proposing,
        or would let pass what a person rejected."""
        new = tuple(sorted(choice, key=_narrow))
        try:
            judge, alone = (self._judge_with([each.rule for each in some]) for some in ((*rules, *new), new))
        except BadConfig:
            return None  # It can never match, where it would stand.
        if any(_passes(each, call) for call in self._rejected for each in (judge, alone)):
            return None
        if not all(_passes(judge, self.asked[at]) for at in answered):
            return None
        before = self._judge_with([each.rule for each in rules]) if rules else self._judge
        saved = {at for at, call in enumerate(self.asked) if at not in answered and _passes(judge, call)}
        also = tuple(call for call in self._others if _passes(judge, call) and not _passes(before, call))
        calls = tuple(self.asked[at] for at in sorted(saved))
        suggestion = Suggestion(new, calls, also, all(_passes(alone, call) for call in calls))
        return (suggestion, saved) if suggestion.prompts >= FEWEST_SAVED else None


def _passes(judge: Judge, call: PastCall) -> bool:
    return judge.decide(call.question).action == "allow"


def _still_asking(past: Sequence[PastCall], before: Sequence[Decision], answered: Answered) -> list[PastCall]:
    """The calls of one kind that do not pass as it is."""
    return [
        call
        for call, decision in zip(past, before, strict=True)
        if call.answered == answered and decision.action != "allow"
    ]


def _narrow(candidate: Candidate) -> tuple[int, str]:
    """The narrowest first, and the order is always the same."""
    return candidate.width, repr(candidate.matches)
