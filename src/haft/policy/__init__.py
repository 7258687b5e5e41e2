"""May this happen: the decision about a call, and its explanation."""

from haft.policy.baseline import decide

__all__ = ["decide"]
