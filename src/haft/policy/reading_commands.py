"""Whether a command line only reads, whatever the rules say."""

from __future__ import annotations

from haft.policy.analysis import analyse
from haft.policy.analysis.verdict import AnalysisContext


def only_reads(command: str, context: AnalysisContext) -> bool:
    """Whether analysis understands the whole line and finds that it changes nothing."""
    found = analyse(command, context)
    return found.understood and bool(found.parts) and all(part.safe for part in found.parts)
