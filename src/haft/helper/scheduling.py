"""What a process hands down to its forks besides its memory, and others of the same user may change: how it is
scheduled, its limits, and how soon it is killed for memory."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from haft.helper.kernel import checked, libc

NUMBERS = {"x86_64": (315, 252), "aarch64": (275, 31), "riscv64": (275, 31)}.get(os.uname().machine)
"""Of sched_getattr and ioprio_get."""
ATTRIBUTES_SIZE = 56
WHO_PROCESS = 1
FILES = ("limits", "oom_score_adj", "cgroup")


def scheduling(pid: int) -> tuple[Any, ...]:
    """All of it, to be compared."""
    found: list[Any] = [
        os.getpriority(os.PRIO_PROCESS, pid),
        sorted(os.sched_getaffinity(pid)),
        os.sched_getscheduler(pid),
        os.sched_getparam(pid).sched_priority,
    ]
    if NUMBERS is not None:
        # The first also tells what Python has no function for: clamps, and the length of a turn.
        attributes = ctypes.create_string_buffer(ATTRIBUTES_SIZE)
        checked(libc.syscall(NUMBERS[0], pid, attributes, ATTRIBUTES_SIZE, 0), "sched_getattr")
        found += [attributes.raw, checked(libc.syscall(NUMBERS[1], WHO_PROCESS, pid), "ioprio_get")]
    for name in FILES:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            found.append(file.read())
    return tuple(found)
