"""The rights of a sub-agent: those that its type asks for, which the pipeline joins with those of its caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from haft.agents.agent_type import AgentType
from haft.contracts import Rights, ToolSpec

LOWER_LIMITS: Final = (
    ("max_seconds", 60.0),
    ("memory_bytes", 1_000_000_000),
    ("max_processes", 128),
    ("max_written_bytes", 500_000_000),
    ("max_written_file_bytes", 250_000_000),
    ("max_changed_files", 10_000),
)
"""The limits of the calls of a restricted sub-agent, if those of the host are not lower."""


def rights_of(kind: AgentType, tools: Sequence[ToolSpec]) -> Rights:
    """The rights of a sub-agent of this type that has these tools."""
    return Rights(
        f"the sub-agent `{kind.name}`",
        frozenset(spec.name for spec in tools),
        readonly=kind.readonly,
        restricted=kind.restricted,
        limits=LOWER_LIMITS if kind.restricted else (),
    )
