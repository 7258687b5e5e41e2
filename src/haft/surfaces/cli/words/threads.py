"""The thread of a call from the command line: the one given with `--thread`, else that of the terminal, else a new one
for each call.

A terminal is identified by its session leader, usually a shell: its pid, its start time, and the boot of the machine.
"""

from __future__ import annotations

import hashlib
import os
from typing import Final

from haft.contracts import Outcome
from haft.values import replace

OWN_TMP: Final = "without a terminal, each call has its own /tmp: `--thread NAME` shares one between calls"

# Fields of /proc/PID/stat, counted from the one after the program's name.
_TERMINAL: Final = 4
_STARTED: Final = 19


def terminal_thread() -> str | None:
    """The thread of this terminal; None if there is no terminal, or if this machine cannot identify it."""
    try:
        if int(_fields("self")[_TERMINAL]) == 0:
            return None
        leader = os.getsid(0)
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            words = f"{leader} {int(_fields(str(leader))[_STARTED])} {file.read().strip()}"
    except (OSError, ValueError, IndexError):
        return None
    return f"T-terminal-{hashlib.sha256(words.encode()).hexdigest()[:16]}"


def thread_lifetime(thread: str | None, terminal: str | None) -> str | None:
    """How long an answer for the thread holds, in words; None if it would hold for one call only."""
    if thread is not None:
        return "for all calls that name this thread with --thread"
    return None if terminal is None else "until this terminal is closed"


def with_scratch_note(outcome: Outcome) -> Outcome:
    """The outcome of a call with a thread of its own. If the call did not find a file in `/tmp`, a note says that its
    `/tmp` was new."""
    if outcome.sandbox.scratch is None:
        return outcome
    from haft.service import missed_scratch

    if not missed_scratch(outcome):
        return outcome
    return replace(outcome, notes=(*outcome.notes, OWN_TMP))


def _fields(pid: str) -> list[bytes]:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rsplit(b")", 1)[1].split()  # The name in parentheses may contain anything, even a `)`.
