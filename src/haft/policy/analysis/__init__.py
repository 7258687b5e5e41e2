"""What a command line would do, before it does it: parsed, taken apart, each part judged.

The parser and the tables are fetched when the first line is looked at: most programs that know of parts see none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from haft.policy.analysis.verdict import DANGERS, Analysis, Danger, Ground, Part

if TYPE_CHECKING:
    from haft.policy.analysis.program import Program

__all__ = ["DANGERS", "Analysis", "Danger", "Ground", "Part", "analyse", "prepare_analysis"]


def prepare_analysis() -> None:
    """Fetch the parser and the tables ahead: there may be something to wait for meanwhile."""
    from haft.policy.analysis import analysing, programs

    _ = analysing, programs


def analyse(command: str, ground: Ground, programs: Mapping[str, Program] | None = None) -> Analysis:
    """Every part of a line, and whether it only reads. Answers for any text, and never raises."""
    from haft.policy.analysis.analysing import analyse as analysed

    return analysed(command, ground, programs)
