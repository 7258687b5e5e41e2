"""Analyses what a command line (in this package: a line) would do, before it runs: the line is split into parts, and
each part is classified.

A *part* is one simple command, one redirection, or syntax that haft does not analyse. A part is *safe* if it only
reads, inside the workspace. A table has an *entry* for each known program, which lists the options and operands with
which the program only reads. A *pattern* of file names is a word such as `*.py`, which the shell expands. The parser
and the table are loaded when the first line is analysed, because most processes that import this package never analyse
a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from haft.policy.analysis.verdict import DANGERS, Analysis, AnalysisContext, Danger, Part

if TYPE_CHECKING:
    from haft.policy.analysis.program import Program

__all__ = ["DANGERS", "Analysis", "AnalysisContext", "Danger", "Part", "analyse", "prepare_analysis"]


def prepare_analysis() -> None:
    """Load the parser and the table of programs now, so that the first `analyse` is fast."""
    from haft.policy.analysis import analyser, programs

    _ = analyser, programs


def analyse(command: str, context: AnalysisContext, programs: Mapping[str, Program] | None = None) -> Analysis:
    """Split a line into parts, and say of each whether it only reads. Accepts any text and never raises."""
    from haft.policy.analysis.analyser import analyse_line

    return analyse_line(command, context, programs)
