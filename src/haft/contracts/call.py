"""One call on its way through the pipeline. Each stage may hand on a changed copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from haft.contracts.decision import Decision
from haft.contracts.limits import LimitsApplied
from haft.contracts.names import RunId, ThreadId, ToolName

if TYPE_CHECKING:
    from haft.contracts.tool import Tool


@dataclass(frozen=True)
class Call:
    """Who wants what done. The first fields come from the caller, the last are filled in by stages."""

    run: RunId
    name: ToolName
    arguments: Mapping[str, Any]
    who: str
    thread: ThreadId
    parent: RunId | None = None
    timeout: float | None = None
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    tool: Tool | None = None
    decision: Decision | None = None
    limits: LimitsApplied | None = None
