"""Scenarios as values: one call of a tool, what must be true afterwards, and what a run of it found out.

`mismatches` compares what a call did with what its scenario expects. Others read scenarios from files, and run them.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.scenarios.comparing import Observed, mismatches
    from haft.testing.scenarios.junit import write_junit
    from haft.testing.scenarios.report import (
        call_line,
        explained,
        failure,
        in_one_line,
        last_words,
        lines_of,
        place,
        summary,
    )
    from haft.testing.scenarios.scenario import Answer, Fault, Mismatch, Result, Scenario, Unfit
else:
    __getattr__ = face(
        __name__,
        {
            "comparing": "Observed mismatches",
            "junit": "write_junit",
            "report": "call_line explained failure in_one_line last_words lines_of place summary",
            "scenario": "Answer Fault Mismatch Result Scenario Unfit",
        },
    )

__all__ = [
    "Answer",
    "Fault",
    "Mismatch",
    "Observed",
    "Result",
    "Scenario",
    "Unfit",
    "call_line",
    "explained",
    "failure",
    "in_one_line",
    "last_words",
    "lines_of",
    "mismatches",
    "place",
    "summary",
    "write_junit",
]
