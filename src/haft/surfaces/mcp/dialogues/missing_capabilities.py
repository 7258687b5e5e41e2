"""The errors for clients that did not declare what a call needs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from mcp.shared.exceptions import MCPError

from haft.contracts import Outcome
from haft.surfaces.mcp.dialogues.clients import TASKS

MISSING_CAPABILITY: Final = -32021
CAPABILITIES: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The capability that a client declares to answer a kind of question."""


def missing_tasks(message: str) -> Exception:
    """The error for a client that did not declare the tasks extension."""
    required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return MCPError(code=MISSING_CAPABILITY, message=f"{message}: declare the extension {TASKS}", data=required)


def missing_answers(outcome: Outcome, methods: Collection[str]) -> Exception:
    """The error of a call that failed after its tool asked what the client did not declare that it can answer."""
    required: dict[str, Any] = {CAPABILITIES[method]: {} for method in sorted(methods) if method in CAPABILITIES}
    reason = "" if outcome.error is None else f": {outcome.error.message}"
    return MCPError(
        code=MISSING_CAPABILITY,
        message=f"`{outcome.tool}` needs a client that answers {', '.join(sorted(methods))}{reason}",
        data={"requiredCapabilities": required, "run": outcome.run_id},
    )
