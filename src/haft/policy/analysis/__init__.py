"""What a command line would do, before it does it: parsed, taken apart, each part judged."""

from haft.policy.analysis.analysing import analyse
from haft.policy.analysis.verdict import DANGERS, Analysis, Danger, Ground, Part

__all__ = ["DANGERS", "Analysis", "Danger", "Ground", "Part", "analyse"]
