"""The names of tools and the ids of runs, batches, threads and hosts.

All are plain strings at run time, and distinct types for the type checker. Ids of runs, batches and hosts sort
by their creation time, so that a table with such a key is also sorted by age.
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
BatchId = NewType("BatchId", str)

TOOL_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
RUN_ID = regex(r"r_[0-9a-f]{24}")


def is_tool_name(text: str) -> bool:
    """Whether `text` is a valid name of a tool."""
    return TOOL_NAME.fullmatch(text) is not None


def clean_tool_name(text: str) -> ToolName:
    """A valid tool name made from `text`: characters that are not allowed become `_`, and the name is cut to 64
    characters."""
    return ToolName(re.sub(r"[^A-Za-z0-9_-]", "_", text)[:64] or "_")


# The generator is seeded by the system, and once more in a forked child. To ask the system for each id would cost more
# than the rest of making it.
_chance = random.Random(os.urandom(16))  # noqa: S311  names must differ, not be secret
_last = 0
_turn = threading.Lock()


def _begin_anew() -> None:
    global _last, _turn
    _chance.seed(os.urandom(16))
    _last, _turn = 0, threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def _stamp() -> str:
    """24 hexadecimal digits: 11 for the time in milliseconds, 13 random. Always greater than the previous stamp of this
    process, even if the clock steps back or two ids are made in the same millisecond."""
    global _last
    with _turn:
        now = (time.time_ns() // 1_000_000 << 52) | _chance.getrandbits(52)
        _last = now = max(now, _last + 1)
    return f"{now:024x}"


def new_run_id() -> RunId:
    """A new run id: `r_` and 24 characters. Later ids sort after earlier ones."""
    return RunId("r_" + _stamp())


def new_batch_id() -> BatchId:
    """A new batch id: `b_` and 24 characters. Later ids sort after earlier ones."""
    return BatchId("b_" + _stamp())


def is_batch_id(text: str) -> bool:
    """Whether `text` is the id of a batch, and not of a run or a request."""
    return text.startswith("b_")


def new_host_id() -> HostId:
    """A new host id: `h_` and 24 characters."""
    return HostId("h_" + _stamp())


def new_thread_id() -> ThreadId:
    """A new thread id, `T-<uuid>`. Published tools expect this form."""
    import uuid

    return ThreadId(f"T-{uuid.uuid4()}")
