"""The words that identify things: tools, runs, threads.

Plain strings at run time, distinct types for the reader and the type checker. Identifiers sort by the time they
were made, so that a table keyed by them is also ordered by age.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from typing import NewType

from haft.lazy import regex

ToolName = NewType("ToolName", str)
RunId = NewType("RunId", str)
ThreadId = NewType("ThreadId", str)
HostId = NewType("HostId", str)

TOOL_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
RUN_ID = regex(r"r_[0-9a-f]{24}")


def is_tool_name(text: str) -> bool:
    """Whether `text` may stand as the name of a tool."""
    return TOOL_NAME.fullmatch(text) is not None


def clean_tool_name(text: str) -> ToolName:
    """`text` with everything that may not stand in a tool's name replaced by `_`, cut to 64 characters."""
    return ToolName(re.sub(r"[^A-Za-z0-9_-]", "_", text)[:64] or "_")


# Seeded by the system, and again in a child that was forked: a system call for each name would cost more than the rest.
_chance = random.Random(os.urandom(16))  # noqa: S311  names must differ, not be secret
_last = 0
_turn = threading.Lock()


def _begin_anew() -> None:
    global _last, _turn
    _chance.seed(os.urandom(16))
    _last, _turn = 0, threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def _stamp() -> str:
    """24 characters: 11 of time in milliseconds, 13 of chance. Never less than the one before: clocks step back, and
    a millisecond is long."""
    global _last
    with _turn:
        now = (time.time_ns() // 1_000_000 << 52) | _chance.getrandbits(52)
        _last = now = max(now, _last + 1)
    return f"{now:024x}"


def new_run_id() -> RunId:
    """A fresh run's name: `r_` and 24 characters, later ones sorting after earlier ones."""
    return RunId("r_" + _stamp())


def new_host_id() -> HostId:
    """A fresh host's name: `h_` and 24 characters."""
    return HostId("h_" + _stamp())


def new_thread_id() -> ThreadId:
    """A fresh thread's name, `T-<uuid>`: the shape that published tools expect."""
    import uuid

    return ThreadId(f"T-{uuid.uuid4()}")
