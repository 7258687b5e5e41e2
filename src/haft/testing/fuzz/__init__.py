"""Looks for arguments that break a tool: makes them from the schema of the tool, calls the tool where nothing can be
harmed, and writes what it finds as scenarios.

`fuzz_tool` does it all. It needs the package hypothesis, which only `search` and the modules below it import.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.fuzz.findings import Problem
    from haft.testing.fuzz.report import Finding, Report, lines_of, summary_of
    from haft.testing.fuzz.running import EXAMPLES, SECONDS, TIMEOUT, FuzzOptions, fuzz_tool
else:
    __getattr__ = face(
        __name__,
        {
            "findings": "Problem",
            "report": "Finding Report lines_of summary_of",
            "running": "EXAMPLES SECONDS TIMEOUT FuzzOptions fuzz_tool",
        },
    )

__all__ = [
    "EXAMPLES",
    "SECONDS",
    "TIMEOUT",
    "Finding",
    "FuzzOptions",
    "Problem",
    "Report",
    "fuzz_tool",
    "lines_of",
    "summary_of",
]
