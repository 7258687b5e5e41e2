"""haft: one handle for every agent tool.

The public names. Each is imported when it is first used, so that `import haft` is fast.
"""

import sys
from typing import TYPE_CHECKING, Any

from haft.version import __version__

if TYPE_CHECKING:
    from haft.contracts import (
        Answer,
        ApprovalAnswer,
        ApprovalRequest,
        BadApprover,
        BadConfig,
        Command,
        Effects,
        Event,
        Failure,
        Grants,
        HaftError,
        InvalidArguments,
        Listing,
        Outcome,
        Principal,
        Question,
        QuestionAnswer,
        Rejected,
        Tool,
        ToolFailed,
        ToolResult,
        ToolSpec,
        UnknownTool,
    )
    from haft.contracts import ToolContext as Context
    from haft.pipeline import Run
    from haft.service import ToolService
    from haft.sources.python import tool


__all__ = [
    "Answer",
    "ApprovalAnswer",
    "ApprovalRequest",
    "BadApprover",
    "BadConfig",
    "Command",
    "Context",
    "Effects",
    "Event",
    "Failure",
    "Grants",
    "HaftError",
    "InvalidArguments",
    "Listing",
    "Outcome",
    "Principal",
    "Question",
    "QuestionAnswer",
    "Rejected",
    "Run",
    "Tool",
    "ToolFailed",
    "ToolResult",
    "ToolService",
    "ToolSpec",
    "UnknownTool",
    "__version__",
    "tool",
]

_ELSEWHERE = {
    "Context": ("haft.contracts", "ToolContext"),
    "Run": ("haft.pipeline", "Run"),
    "ToolService": ("haft.service", "ToolService"),
    "tool": ("haft.sources.python", "tool"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if sys.platform == "win32":
        raise ImportError("haft needs Linux or macOS; on Windows it runs in WSL")
    package, attribute = _ELSEWHERE.get(name, ("haft.contracts", name))
    value = getattr(import_module(package), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
