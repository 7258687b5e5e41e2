"""The search for arguments that break a tool.

First it calls the tool with the arguments of earlier findings, and with the examples in its schema. Then hypothesis
makes arguments until the time or the number of examples is used up: three quarters of them valid. When a problem is
found, hypothesis looks at once for the smallest arguments that bring the same problem about; then the search goes on,
and ignores that problem.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hypothesis import HealthCheck, Phase, Verbosity, given, reject, seed, settings
from hypothesis.errors import HypothesisException, Unsatisfiable
from hypothesis.strategies import SearchStrategy

from haft.contracts import BadUsage
from haft.schema import validator_for, why_not_json
from haft.testing.fuzz.arguments import Arguments
from haft.testing.fuzz.calls import NAMES, Called, Calls
from haft.testing.fuzz.findings import Problem, problem_of
from haft.testing.fuzz.invalid import broken
from haft.testing.fuzz.report import Finding, Report
from haft.values import dataclass

_VALID_SHARE: Final = 0.75
_MOST_SHRINKS: Final = 60
"""How many calls look for smaller arguments of one problem."""
_SHRINK_SHARE: Final = 0.3
"""The share of the time that they may take."""
_MOST_FINDINGS: Final = 20
_MOST_DISCARDED: Final = 50
"""For each example, how many arguments are discarded before the search gives up."""

Told = Callable[[Finding], None]


class _Enough(BaseException):
    """Ends the work of hypothesis, which catches every `Exception`."""


@dataclass
class Budget:
    """What the search may use."""

    examples: int
    seconds: float


class Search:
    """One search. `report` has at any time what was found so far."""

    def __init__(self, calls: Calls, report: Report, budget: Budget, told: Told, *, timeout: float) -> None:
        self._calls = calls
        self._report = report
        self._budget = budget
        self._told = told
        self._timeout = timeout
        self._began = time.monotonic()
        self._schema = calls.spec.input_schema
        self._arguments = Arguments(self._schema, NAMES)
        self._answers: dict[str, Problem | None] = {}
        self._smallest: dict[str, Finding] = {}
        """By the problem's key, the finding that is made smaller now."""
        self._finished: set[str] = set()
        """The keys of the problems for which nothing smaller is looked for any more."""
        self._until = 0.0
        self._left = 0
        self._shrinks = 0
        self._rounds = 0
        self._hangs = 0

    def try_first(self, arguments: Mapping[str, Any]) -> Finding | None:
        """Call the tool with given arguments. Returns the finding if there is a problem, which later calls ignore."""
        is_valid = self._is_valid(arguments)
        problem = self._try(arguments, is_valid=is_valid)
        if problem is None:
            return None
        self._finished.add(problem.key)
        return Finding(problem, arguments, is_valid)

    def run(self) -> None:
        """Search until the budget is used up."""
        valid = max(1, round(self._budget.examples * _VALID_SHARE))
        self._pass(self._arguments.valid, valid, self._budget.seconds * _VALID_SHARE, is_valid=True)
        self._report.not_followed = tuple(self._arguments.not_followed)
        if not self._answers and self._report.ended == "examples":
            missed = self._report.not_followed
            without = f"; haft cannot follow these parts: {', '.join(missed)}" if missed else ""
            raise BadUsage(
                f"no arguments that fit the schema of `{self._calls.spec.name}` could be made{without}",
                hint="write `examples` into the schema: whole arguments, which are tried as they are",
            )
        self._pass(broken(self._arguments.valid), self._budget.examples - valid, self._budget.seconds, is_valid=False)

    def _pass(self, strategy: SearchStrategy[Any], examples: int, seconds: float, *, is_valid: bool) -> None:
        self._left = examples
        while self._left > 0 and len(self._finished) < _MOST_FINDINGS:
            self._until = self._began + seconds
            left, self._shrinks = self._left, 0
            is_over = self._round(strategy, is_valid=is_valid)
            for key, finding in self._smallest.items():
                self._finished.add(key)
                self._add(finding)
            has_found = bool(self._smallest)
            self._smallest = {}
            if time.monotonic() > self._began + seconds:
                self._report.ended = "seconds"
                return
            if not has_found and (is_over or left == self._left):
                return  # hypothesis knows no further arguments.

    def _add(self, finding: Finding) -> None:
        self._report.findings.append(finding)
        self._told(finding)

    def _round(self, strategy: SearchStrategy[Any], *, is_valid: bool) -> bool:
        """Let hypothesis work until it has made a problem as small as it can. Returns whether it found none."""
        self._rounds += 1

        @seed(self._report.seed + self._rounds)
        @settings(
            max_examples=self._left,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
            print_blob=False,
        )
        @given(strategy)
        def one(arguments: Any) -> None:
            self._one(arguments, is_valid=is_valid)

        try:
            one()
        except Unsatisfiable:
            return True
        except (_Found, HypothesisException, BaseExceptionGroup):
            return False  # What was found is in `_smallest`, also if the tool does not fail each time.
        except _Enough:
            return False
        return True

    def _one(self, arguments: Any, *, is_valid: bool) -> None:
        if time.monotonic() > self._until:
            raise _Enough
        counts = self._report.of_valid if is_valid else self._report.of_invalid
        counts.made += 1
        if not isinstance(arguments, dict) or self._is_valid(arguments) != is_valid or why_not_json(arguments):
            counts.discarded += 1
            if counts.discarded > _MOST_DISCARDED * (self._budget.examples + 10):
                raise _Enough
            reject()
        if not self._smallest and _key(arguments) in self._answers:
            reject()  # Nothing new; hypothesis ends by itself when it makes only such arguments.
        if self._smallest:
            self._shrinks += 1
            if self._shrinks > _MOST_SHRINKS:
                raise _Enough
        else:
            self._left -= 1
        problem = self._try(arguments, is_valid=is_valid)
        if problem is None or problem.key in self._finished:
            return
        if not self._smallest:
            self._until = min(self._until, time.monotonic() + self._budget.seconds * _SHRINK_SHARE)
        known = self._smallest.get(problem.key)
        if known is None or _size(arguments) < _size(known.args):
            self._smallest[problem.key] = Finding(problem, arguments, is_valid)
        raise _found(problem.key)

    def _is_valid(self, arguments: Mapping[str, Any]) -> bool:
        return validator_for(self._schema).is_valid(arguments)

    def _try(self, arguments: Mapping[str, Any], *, is_valid: bool) -> Problem | None:
        """What is wrong with the call with these arguments. Equal arguments are tried once."""
        key = _key(arguments)
        if key in self._answers:
            return self._answers[key]
        called = self._calls.call(arguments)
        problem = self._problem(called, self._timeout, is_valid=is_valid)
        if problem is not None and problem.kind == "hang" and not self._hangs:
            # A busy machine can make one call slow. Only the first such call is repeated, because each takes long.
            self._hangs += 1
            called = self._calls.call(arguments, 2 * self._timeout)
            problem = self._problem(called, 2 * self._timeout, is_valid=is_valid)
        self._count(called, problem, is_valid=is_valid)
        self._answers[key] = problem
        return problem

    def _problem(self, called: Called, timeout: float, *, is_valid: bool) -> Problem | None:
        return problem_of(self._calls.spec, called.outcome, called.changed, timeout=timeout, is_valid=is_valid)

    def _count(self, called: Called, problem: Problem | None, *, is_valid: bool) -> None:
        if not is_valid:
            self._report.invalid += 1
        elif problem is not None:
            self._report.broken += 1
        elif called.outcome["status"] == "done":
            self._report.done += 1
        else:
            self._report.refused += 1


class _Found(Exception):
    """Tells hypothesis that arguments bring a problem about. Each problem has a class of its own, because hypothesis
    tells problems apart by the class."""


_classes: dict[str, type[_Found]] = {}


def _found(key: str) -> _Found:
    return _classes.setdefault(key, type("Found", (_Found,), {}))(key)


def _key(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True)


def _size(arguments: Any) -> tuple[int, str]:
    text = _key(arguments)
    return len(text), text


def examples_of(schema: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The whole arguments that a schema has as examples."""
    found = [*(schema.get("examples") or ()), schema.get("default")]
    return [each for each in found if isinstance(each, dict)]
