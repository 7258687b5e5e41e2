"""How much a call may use. The configuration fills these values, the pipeline applies them, the outcome shows them."""

from __future__ import annotations

from typing import Any, Final

from haft.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a host. The value 0 means "no limit" only where the description of a field says so."""

    max_output_bytes: int = 50_000
    """How much of the output the outcome shows. `max_kept_output_bytes` says how much is stored."""
    max_kept_output_bytes: int = 100_000_000
    """How much of the output is stored on disk. Of a longer output, the beginning and the end are stored."""
    max_seconds: float = 120.0
    """How many seconds a call may be in progress."""
    max_idle_seconds: float = 0.0
    """How many seconds a call may be without output or progress before haft ends it; 0: no limit."""
    max_concurrent: int = 10
    """How many calls of one host may be in progress at the same time; the others are queued."""
    max_concurrent_per_user: int = 0
    """How many of these calls one user may have in progress; 0: no limit of its own."""
    max_queued: int = 2000
    """How many calls of one host may wait for their turn. Further calls end with the error `busy`."""
    max_open_per_user: int = 0
    """How many calls of one user may be open in one host, whatever they wait for; 0: no limit. Further calls end with
    the error `busy`."""
    max_file_bytes: int = 10_000_000
    """The largest file that a built-in file tool reads whole or writes."""
    max_files_per_call: int = 100
    """How many files one call of a built-in file tool may write; 0: any number."""
    memory_bytes: int = 2_000_000_000
    """The resident memory of all processes of a call together. Files in the call's private directories count too,
    because these directories are in memory. 0: no limit."""
    max_processes: int = 256
    """How many processes a call may have at the same time; 0: any number."""
    cpu_seconds: float = 0.0
    """The processor time of all processes of a call together; 0: no limit."""
    max_written_bytes: int = 2_000_000_000
    """How many bytes a call's processes may write to disk; 0: no limit."""
    max_written_file_bytes: int = 1_000_000_000
    """The largest file that a call's processes may write; 0: any size."""
    max_changed_files: int = 100_000
    """How many files a call may create or change; 0: any number. Checked only if the call creates many files."""
    max_open_files: int = 16_384
    """How many files one process of a call may have open."""


@dataclass(frozen=True, slots=True)
class LimitsApplied:
    """The limits that applied to one call, and the limit that ended the call, if a limit did."""

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
