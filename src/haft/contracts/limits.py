"""How much a call may use. The configuration fills these values, the pipeline applies them, the outcome shows them."""

from __future__ import annotations

from typing import Any, Final

from haft.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a host. 0 means no limit only if the description says so."""

    max_output_bytes: int = 50_000
    """How much of the output the outcome shows. The whole output is stored."""
    max_kept_output_bytes: int = 100_000_000
    """How much of the output is stored on disk: its head and its tail."""
    max_seconds: float = 120.0
    """Wall clock time of a call while it is in progress."""
    max_idle_seconds: float = 0.0
    """Seconds without output or progress before a call is ended; 0: no idle deadline."""
    max_concurrent: int = 10
    """Calls in progress at once in one host; the others are queued."""
    max_file_bytes: int = 10_000_000
    """The largest file that a built-in file tool reads whole or writes."""
    max_files_per_call: int = 100
    """Files that one call of a built-in file tool may write; 0: any number."""
    memory_bytes: int = 2_000_000_000
    """Resident memory of all processes of a call, with its private files in memory; 0: no limit."""
    max_processes: int = 256
    """Processes of a call at one time; 0: any number."""
    cpu_seconds: float = 0.0
    """Processor time of all processes of a call; 0: no limit."""
    max_written_bytes: int = 2_000_000_000
    """Bytes that a call's processes write to disk; 0: no limit."""
    max_written_file_bytes: int = 1_000_000_000
    """The largest file that a call's processes may write; 0: any size."""
    max_changed_files: int = 100_000
    """Files that a call may create or change, checked when it creates many; 0: any number."""
    max_open_files: int = 16_384
    """Files that one process of a call may hold open."""


@dataclass(frozen=True, slots=True)
class LimitsApplied:
    """The limits that applied to one call, and the limit that ended it, if one did."""

    applied: dict[str, Any] = field(default_factory=dict)
    hit: str | None = None
    enforced: dict[str, str] = field(default_factory=dict)
    """The mechanism that enforces each limit on processes: a cgroup, `rlimit`, `watching`, or `nothing`."""

    def to_json(self) -> dict[str, Any]:
        return {"applied": self.applied, "hit": self.hit, "enforced": self.enforced}


PROCESS_LIMITS: Final = (
    "memory_bytes",
    "max_processes",
    "cpu_seconds",
    "max_written_bytes",
    "max_written_file_bytes",
    "max_changed_files",
    "max_open_files",
)
"""The limits on processes. The pipeline itself enforces the others."""
