"""May this happen: rules, the analysis of commands, what people answered, and the explanation of every decision."""

from haft.policy.enablement import Enablement
from haft.policy.judge import Judge
from haft.policy.question import Explained, Question, Step

__all__ = ["Enablement", "Explained", "Judge", "Question", "Step"]
