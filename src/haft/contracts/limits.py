"""How much a call may use. A value: config fills it, the pipeline applies it, the outcome shows it."""

from __future__ import annotations

from typing import Any, Final

from haft.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits in force for a host. Zero means none, where the line says so."""

    max_output_bytes: int = 50_000
    """Of the output, how much the outcome shows; the whole is kept."""
    max_kept_output_bytes: int = 100_000_000
    """Of the output, how much is kept on disk: its head and its tail."""
    max_seconds: float = 120.0
    """Wall clock of a call while in progress."""
    max_idle_seconds: float = 0.0
    """Seconds without output or progress before a call is ended; 0: no idle deadline."""
    max_concurrent: int = 10
    """Calls in progress at once in one host; the others are queued."""
    max_file_bytes: int = 10_000_000
    """The largest file that a built-in file tool reads whole or writes."""
    max_files_per_call: int = 100
    """Files that one call of a built-in file tool may write; 0: any number."""
    memory_bytes: int = 2_000_000_000
    """Resident memory of everything a call started, its private files in memory included; 0: as much as there is."""
    max_processes: int = 256
    """Processes of a call at one time; 0: any number."""
    cpu_seconds: float = 0.0
    """Processor time of everything a call started; 0: no limit."""
    max_written_bytes: int = 2_000_000_000
    """Bytes that a call's processes write to disk; 0: no limit."""
    max_written_file_bytes: int = 1_000_000_000
    """The largest file that a call's processes may write; 0: any size."""
    max_changed_files: int = 100_000
    """Files that a call may make or change, looked at where it makes many; 0: any number."""
    max_open_files: int = 16_384
    """Files that one process of a call may hold open."""


@dataclass(frozen=True, slots=True)
class LimitsApplied:
    """What one call was held to, and which limit ended it, if one did."""

    applied: dict[str, Any] = field(default_factory=dict)
    hit: str | None = None
    enforced: dict[str, str] = field(default_factory=dict)
    """By which mechanism each limit on processes holds: a cgroup, `rlimit`, `watching`, or `nothing`."""

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
"""The limits that hold for processes, as opposed to those that the pipeline keeps itself."""
