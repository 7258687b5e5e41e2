"""What must be true after a call with a fault, unless its scenario expects something else.

In every case nothing in the workspace may have changed, except what the scenario expects. That holds by itself: see
`Expected.only_changed`.
"""

from __future__ import annotations

from typing import Final

from haft.contracts import Kind, ToolSpec
from haft.testing.scenarios.scenario import Expected, Fault
from haft.values import replace

_ENDS: Final[dict[Fault, tuple[str, str | None]]] = {
    "deadline": ("error", "timed-out"),
    "kill": ("error", None),
    "full-disk": ("error", None),
    "no-memory": ("error", None),
    "no-network": ("error", None),
    "host-killed": ("error", "interrupted"),
    "slow-pipes": ("done", None),
}
"""The status after each fault, and the code of the error."""
_WITHOUT_ANSWER: Final[frozenset[Kind]] = frozenset({"agent-studio", "python", "mcp"})
"""The formats whose programs send their answer in a form of its own. Without it, the call fails."""


def with_ending(expected: Expected, fault: Fault, options: object, spec: ToolSpec | None) -> Expected:
    """The expectations of a scenario; where it says nothing of how the call ends, what the fault leaves."""
    if expected.status is not None or expected.error is not None:
        return expected
    status, error = _ENDS.get(fault) or _after_stream(fault, options, spec)
    return replace(expected, status=status, error=error)


def _after_stream(fault: Fault, options: object, spec: ToolSpec | None) -> tuple[str, str | None]:
    """The status after output that was cut off, or that has garbage in it. Garbage before an answer is taken for other
    output of the program."""
    is_lost = fault == "partial-output" or options == {"where": "instead"}
    return ("error", None) if is_lost and spec is not None and spec.kind in _WITHOUT_ANSWER else ("done", None)
