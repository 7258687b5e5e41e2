"""What came of fuzzing a tool: the values, their JSON form, and lines for people."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from haft.testing.fuzz.findings import Problem
from haft.testing.scenarios.report import Styled, plain
from haft.values import dataclass, field

_LONGEST_SHOWN: Final = 400
_LINE: Final = re.compile(r"in line \d+$")


@dataclass
class Finding:
    """One problem, with the smallest arguments that bring it about."""

    problem: Problem
    args: Mapping[str, Any]
    is_valid: bool
    """Whether the arguments fit the schema of the tool."""
    is_known: bool = False
    """Whether a scenario file of an earlier run has it."""
    scenario: str | None = None
    """The file that has the finding as a scenario; None if no scenario brings it about again."""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.problem.kind,
            "message": self.problem.message,
            "args": dict(self.args),
            "valid": self.is_valid,
            "known": self.is_known,
            "scenario": self.scenario,
        }


@dataclass
class Made:
    """How many arguments were made, and how many of them were discarded before a call."""

    made: int = 0
    discarded: int = 0

    @property
    def share(self) -> str:
        return f"{round(100 * self.discarded / self.made)} % of {self.made:,}"

    def to_json(self) -> dict[str, Any]:
        return {"made": self.made, "discarded": self.discarded}


@dataclass
class Report:
    """What came of fuzzing one tool."""

    tool: str
    seed: int
    findings: list[Finding] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    """Scenario files of earlier findings that the tool no longer has."""
    done: int = 0
    """How many calls ended well."""
    refused: int = 0
    """How many calls with valid arguments the tool refused with an error."""
    broken: int = 0
    """How many calls with valid arguments had one of the problems."""
    invalid: int = 0
    """How many calls had arguments that break the schema."""
    of_valid: Made = field(default_factory=Made)
    """Arguments that were made to fit the schema."""
    of_invalid: Made = field(default_factory=Made)
    """Arguments that were made to break the schema."""
    not_followed: tuple[str, ...] = ()
    """The keywords of the schema that no strategy follows."""
    seconds: float = 0
    ended: str = "examples"
    """Why it ended: `examples`, `seconds` or `interrupted`."""

    @property
    def calls(self) -> int:
        return self.done + self.refused + self.broken + self.invalid

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.tool,
            "seed": self.seed,
            "findings": [each.to_json() for each in self.findings],
            "mended": list(self.mended),
            "calls": {"done": self.done, "refused": self.refused, "broken": self.broken, "invalid": self.invalid},
            "arguments": {"valid": self.of_valid.to_json(), "invalid": self.of_invalid.to_json()},
            "notFollowed": list(self.not_followed),
            "seconds": round(self.seconds, 1),
            "ended": self.ended,
        }


_WORDS: Final = {
    "crash": "crash",
    "hang": "no end",
    "limit": "limit",
    "changed": "not read-only",
    "not-json": "not JSON",
    "broken-result": "wrong result",
}


def lines_of(finding: Finding, styled: Styled = plain) -> Iterator[str]:
    """A finding for a person."""
    problem = finding.problem
    first = problem.message.partition("\n")[0]  # A traceback may follow; the scenario shows it.
    line = _LINE.search(problem.sign)
    yield f"{styled(_WORDS[problem.kind], 'bad')}: {_short(first)}{f' ({line[0]})' if line else ''}"
    yield f"  arguments: {_short(json.dumps(dict(finding.args), ensure_ascii=False))}"
    if not finding.is_valid:
        yield "  These arguments break the schema of the tool. haft does not pass such arguments; other hosts may."
    if finding.scenario is None:
        yield "  A scenario did not bring this about again, so none was written."
    else:
        yield f"  scenario: {_near(finding.scenario)}{' (known)' if finding.is_known else ''}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"


def summary_of(report: Report) -> Iterator[str]:
    """The end of a report for a person."""
    ended = {"examples": "", "seconds": "; the time is over", "interrupted": "; interrupted"}[report.ended]
    counts = (
        (report.done, "done"),
        (report.refused, "refused"),
        (report.broken, "with a problem"),
        (report.invalid, "with invalid arguments"),
    )
    told = ", ".join(f"{count} {word}" for count, word in counts if count) or "none"
    yield f"{report.calls} calls in {report.seconds:.1f} s ({told}); seed {report.seed}{ended}"
    if report.of_valid.made:
        yield f"discarded: {report.of_valid.share} generated arguments, because they did not fit the schema"
    if report.of_invalid.discarded:
        yield f"discarded: {report.of_invalid.share} arguments that should break the schema, because they fitted it"
    if report.not_followed:
        yield f"these parts of the schema were not followed: {', '.join(report.not_followed)}"
    if report.refused and not report.done and not report.broken:
        yield "the tool refused every call with valid arguments, so this says little about the tool"
    for path in report.mended:
        yield f"{_near(path)}: the tool no longer does this"
    many = len(report.findings)
    yield f"{many} finding{'s' * (many != 1)}" if many else "nothing found"


def _near(path: str) -> str:
    near = os.path.relpath(path)
    return path if near.startswith("..") else near
