"""Reads the attributes of a process that its forks inherit and that other processes of the same user may change: its
scheduling, its limits, its OOM score, and its cgroup."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from haft.helper.kernel import checked, libc

NUMBERS = {"x86_64": (315, 252), "aarch64": (275, 31), "riscv64": (275, 31)}.get(os.uname().machine)
"""The system call numbers of sched_getattr and ioprio_get."""
ATTRIBUTES_SIZE = 56
WHO_PROCESS = 1
FILES = ("limits", "oom_score_adj", "cgroup")


def scheduling(pid: int) -> tuple[Any, ...]:
    """The scheduling, limits, OOM score and cgroup of a process, to be compared with later values."""
    found: list[Any] = [
        os.getpriority(os.PRIO_PROCESS, pid),
        sorted(os.sched_getaffinity(pid)),
        os.sched_getscheduler(pid),
        os.sched_getparam(pid).sched_priority,
    ]
    if NUMBERS is not None:
        # sched_getattr also returns attributes for which Python has no function: clamps, and the time slice.
        attributes = ctypes.create_string_buffer(ATTRIBUTES_SIZE)
        checked(libc.syscall(NUMBERS[0], pid, attributes, ATTRIBUTES_SIZE, 0), "sched_getattr")
        found += [attributes.raw, checked(libc.syscall(NUMBERS[1], WHO_PROCESS, pid), "ioprio_get")]
    for name in FILES:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            found.append(file.read())
    return tuple(found)
