"""Finds the fewest narrow rules that would have allowed the calls which a person approved in past prompts.

This is a greedy cover: repeatedly choose the candidate that saves the most prompts; of equals, choose the narrowest. A
command line may need several rules, which are then suggested together. Every choice is verified: with its rules added,
the policy engine decides the past calls again. A choice is never suggested if it would allow a call that a person
rejected, or if it does not save the prompts that it was chosen for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from haft.contracts import BadConfig, Decision
from haft.policy.analysis.verdict import Part
from haft.policy.candidates import Candidate, candidates_of
from haft.policy.policy_engine import PolicyEngine
from haft.policy.query import PolicyQuery
from haft.policy.rules.rule import Rule

FEWEST_SAVED: Final = 2
"""A rule that would have saved fewer prompts is not suggested."""
MOST_TOGETHER: Final = 4
"""The maximum number of rules that are suggested together for one line."""
MOST_SUGGESTED: Final = 20
MOST_REPLAYED: Final = 300
"""The maximum number of choices that are replayed. Each costs a decision for every past call."""

PastAnswer = Literal["approved", "rejected", "other"]
Unit = tuple[int, int]
"""A part of a past call: the index of the call, and the index of the part in it."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call from the log, with all runs of exactly this call that got the same answer."""

    query: PolicyQuery
    runs: tuple[str, ...]
    answered: PastAnswer
    """The answer of a person; `other` if nobody answered, or a rule did."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Rules that belong together, usually one."""

    rules: tuple[Candidate, ...]
    saved: tuple[PastCall, ...]
    also: tuple[PastCall, ...]
    """Other calls that these rules would have allowed; no person answered them."""
    is_alone: bool
    """Whether these rules save all their prompts even if the suggestions before this one are not accepted."""

    @property
    def prompts(self) -> int:
        return sum(len(call.runs) for call in self.saved)


@dataclass(frozen=True, slots=True)
class _Reach:
    """The past calls that a candidate (a rule that may be suggested) matches, according to the policy engine. The
    candidate cannot change the decision about any other call."""

    units: frozenset[Unit]
    """The parts that need approval and that the candidate matches."""
    asked: frozenset[int]
    """The indices of calls that a person approved."""
    rejected: frozenset[int]
    others: frozenset[int]


class Suggester:
    """Finds rules for one workspace. `engine_with` makes a policy engine with the rules in force, and the given rules
    after them."""

    def __init__(
        self, past: Sequence[PastCall], engine: PolicyEngine, engine_with: Callable[[Sequence[Rule]], PolicyEngine]
    ) -> None:
        self._engine = engine
        self._engine_with = engine_with
        self.asked: list[PastCall] = []
        """Calls that a person approved and that would need approval again."""
        self._needed: list[tuple[int, ...]] = []
        """For each call in `asked`, the indices of the parts that need approval."""
        self._rejected: list[PastCall] = []
        self._others: list[PastCall] = []
        for call in past:
            decision = engine.decide(call.query)
            # Somebody wrote a rule with `ask` on purpose, so nothing is suggested against it.
            if call.answered == "approved" and decision.action == "ask" and decision.layer != "rules":
                self.asked.append(call)
                self._needed.append(_parts_to_approve(decision))
            elif call.answered != "approved" and decision.action != "allow":
                (self._rejected if call.answered == "rejected" else self._others).append(call)
        self._units = [{(at, n) for n in needed} for at, needed in enumerate(self._needed)]
        self._index = {name: self._indexed(calls) for name, calls in self._kinds().items()}

    def suggestions(self) -> list[Suggestion]:
        """The suggestions, the best first."""
        reaches = self._reaches()
        found: list[Suggestion] = []
        rules: list[Candidate] = []
        answered: set[int] = set()
        refused: set[frozenset[Candidate]] = set()
        while len(found) < MOST_SUGGESTED and len(found) + len(refused) < MOST_REPLAYED:
            covered = {unit for each in rules for unit in reaches[each].units}
            choices = {frozenset((each,)) for each in reaches} | self._together(reaches, covered, answered)
            best = self._best(choices - refused, reaches, covered, answered)
            if best is None:
                break
            replayed = self._replayed(best, rules, answered, reaches)
            if replayed is None:
                refused.add(best)
                continue
            suggestion, saved = replayed
            found.append(suggestion)
            rules += suggestion.rules
            answered |= saved
        return found

    def _kinds(self) -> dict[str, list[PastCall]]:
        return {"asked": self.asked, "rejected": self._rejected, "others": self._others}

    def _indexed(self, calls: Sequence[PastCall]) -> dict[tuple[str, str | None], list[tuple[int, int, Part | None]]]:
        """The parts of all calls, by their tool and first word. Each item consists of the index of the call in `calls`,
        the index of the part in the call, and the part. For a call without command lines, the part and the first word
        are None."""
        found: dict[tuple[str, str | None], list[tuple[int, int, Part | None]]] = {}
        for at, call in enumerate(calls):
            tool = call.query.spec.name
            parts = self._engine.parts(call.query)
            for n, part in enumerate((None,) if parts is None else parts):
                word = None if part is None else part.words[0] if part.words else ""
                found.setdefault((tool, word), []).append((at, n, part))
        return found

    def _reaches(self) -> dict[Candidate, _Reach]:
        """The reach of each candidate that could save enough prompts. Of several candidates that match the same parts,
        only the narrowest is kept."""
        made: Counter[Candidate] = Counter()
        for places in self._index["asked"].values():
            for at, _n, part in places:
                call = self.asked[at]
                for each in candidates_of(call.query, None if part is None else (part,)):
                    made[each] += len(call.runs)
        found: dict[Candidate, _Reach] = {}
        taken: set[frozenset[Unit]] = set()
        # A candidate that was made from few calls matches few calls, unless it has several patterns, of which one may
        # match other calls, too.
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
            if self._engine.fits(candidate.rule, calls[at].query, part)
        )
        return units, frozenset(at for at, _n in units)

    def _together(
        self, reaches: dict[Candidate, _Reach], covered: set[Unit], answered: set[int]
    ) -> set[frozenset[Candidate]]:
        """For each command line that needs more than one rule, a set of candidates: the best candidate for each part of
        the line."""
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
        """The choice that would save the most prompts for each of its rules; of equals, the narrowest. None if no
        choice saves enough prompts."""
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

    def _replayed(
        self,
        choice: frozenset[Candidate],
        rules: list[Candidate],
        answered: set[int],
        reaches: dict[Candidate, _Reach],
    ) -> tuple[Suggestion, set[int]] | None:
        """The suggestion for a choice, and the calls that it newly allows. The policy engine decides the past calls
        again, once with the rules already chosen and once with this choice alone. None if the choice saves too little,
        or would allow a call that a person rejected."""
        new = tuple(sorted(choice, key=_narrow))
        try:
            engine, alone = (self._engine_with([each.rule for each in some]) for some in ((*rules, *new), new))
        except BadConfig:
            return None  # After the other rules, this one could never match.
        rejected = {at for each in new for at in reaches[each].rejected}
        if any(_passes(each, self._rejected[at]) for at in rejected for each in (engine, alone)):
            return None
        asked = {at for each in new for at in reaches[each].asked}
        passing = {at for at in asked if _passes(engine, self.asked[at])}
        if asked & answered - passing:
            return None
        saved = passing - answered
        before = self._engine_with([each.rule for each in rules]) if rules else self._engine
        others = sorted({at for each in new for at in reaches[each].others})
        also = tuple(
            call
            for call in map(self._others.__getitem__, others)
            if _passes(engine, call) and not _passes(before, call)
        )
        calls = tuple(self.asked[at] for at in sorted(saved))
        suggestion = Suggestion(new, calls, also, all(_passes(alone, call) for call in calls))
        return (suggestion, saved) if suggestion.prompts >= FEWEST_SAVED else None


def _parts_to_approve(decision: Decision) -> tuple[int, ...]:
    """The indices of the parts that need approval; only 0 for a call without command lines."""
    return tuple(n for n, part in enumerate(decision.parts) if part.action == "ask") or (0,)


def _passes(engine: PolicyEngine, call: PastCall) -> bool:
    return engine.decide(call.query).action == "allow"


def _narrow(candidate: Candidate) -> tuple[int, str]:
    """A sort key that puts the narrowest candidate first, and always gives the same order."""

    return candidate.width, repr(candidate.matches)
