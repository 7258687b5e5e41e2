"""Analyses what a command line would do, before it runs: the line is parsed and split, and each part is classified.

The parser and the tables are loaded when the first line is analysed, because most programs that import this see no
line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from haft.policy.analysis.verdict import DANGERS, Analysis, AnalysisContext, Danger, Part

if TYPE_CHECKING:
    from haft.policy.analysis.program import Program

__all__ = ["DANGERS", "Analysis", "AnalysisContext", "Danger", "Part", "analyse", "prepare_analysis"]


def prepare_analysis() -> None:
    """Load the parser and the tables in advance, while the program may be waiting for something else."""
    from haft.policy.analysis import analyser, programs

    _ = analyser, programs


def analyse(command: str, context: AnalysisContext, programs: Mapping[str, Program] | None = None) -> Analysis:
    """Every part of a line, and whether it only reads. It accepts any text and never raises."""
    from haft.policy.analysis.analyser import analyse_line

    return analyse_line(command, context, programs)
