"""Says what is wrong with the outcome of a call that was made with arguments made by chance.

A tool that refuses its arguments with a message does nothing wrong. Wrong is what no arguments may bring about: a
crash, a call that does not end, a limit that is exceeded, a result that the tool's description does not promise, and a
change by a tool that says that it only reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from haft.contracts import ToolSpec
from haft.testing.crashes import crash_of
from haft.testing.promises import NO_JSON, broken_promise
from haft.values import dataclass

Kind = Literal["crash", "hang", "limit", "changed", "not-json", "broken-result"]
_BROKEN_MCP: Final = re.compile(r"^the result of `.*` of the MCP server `.*` is not valid: (.*)", re.DOTALL)
_NOT_JSON: Final = re.compile(r"cannot be written as JSON|too deeply to be written as JSON|no structured content")
_DENIED_WRITE: Final = re.compile(r"the sandbox denied a write.*", re.DOTALL)
"""The process of an MCP server cannot write without a grant."""
_MOST_PATHS: Final = 5


@dataclass(frozen=True)
class Problem:
    """What is wrong with one outcome."""

    kind: Kind
    sign: str
    """What tells this problem from others of its kind, such as the exception and its line."""
    message: str

    @property
    def key(self) -> str:
        """The same for all arguments that bring about the same problem."""
        return f"{self.kind}: {self.sign}"


def problem_of(
    spec: ToolSpec, outcome: Mapping[str, Any], changed: Sequence[str], *, timeout: float, is_valid: bool
) -> Problem | None:
    """What is wrong with the outcome of a call, given as JSON; None if nothing is. With `is_valid`, the arguments fit
    the schema of the tool. A command line may do anything, so the end of one says nothing about its tool."""
    error = outcome["error"] or {}
    if error and spec.commands:
        return None
    message = error.get("message", "")
    if error.get("code") == "timed-out":
        return Problem("hang", "", f"the call did not end within {timeout:g} s")
    if error.get("code") == "limit-exceeded":
        return Problem("limit", str(outcome["limits"]["hit"]), message)
    if changed and says_readonly(spec):
        shown = ", ".join(changed[:_MOST_PATHS]) + (", …" if len(changed) > _MOST_PATHS else "")
        return Problem("changed", "", f"the tool says that it only reads, and it changed {shown}")
    if says_readonly(spec) and (found := _DENIED_WRITE.search(message)):
        return Problem("changed", "", f"the tool says that it only reads, and {found[0]}")
    if spec.kind == "mcp" and (found := _BROKEN_MCP.match(message)):
        return _broken(found[1])
    if _NOT_JSON.search(message) and spec.output_schema is not None:
        return Problem("not-json", "", message)
    if (sign := crash_of(outcome)) is not None:
        return Problem("crash", sign, message or sign)
    return _broken_result(spec, outcome) if is_valid else None


def says_readonly(spec: ToolSpec) -> bool:
    """Whether the tool itself says that it only reads, also if haft does not believe its MCP server."""
    annotations = spec.meta.get("mcp", {}).get("definition", {}).get("annotations") or {}
    return spec.effects.readonly or annotations.get("readOnlyHint") is True


def _broken_result(spec: ToolSpec, outcome: Mapping[str, Any]) -> Problem | None:
    why = broken_promise(spec, outcome)
    if why is None:
        return None
    return Problem("not-json", "", why) if why == NO_JSON else _broken(why)


def _broken(why: str) -> Problem:
    if "no structured content" in why:
        return Problem("not-json", "", why)
    sign = re.sub(r"not .*", "", why.partition(";")[0])
    return Problem("broken-result", sign.strip(), f"the result breaks the output schema of the tool: {why}")
