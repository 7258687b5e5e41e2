"""From files to what they say of themselves: many at once, each on its own behind walls, all within one deadline.

What a file said is kept by its identity, failures too, so that it is asked once. Not kept is what the machine is to
blame for, and what had too little time because many were asked before it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from haft.contracts import Launcher
from haft.sources.amp_toolbox.asking import DESCRIBE_SECONDS, Said, ask
from haft.sources.amp_toolbox.finding import Candidate
from haft.sources.amp_toolbox.interpreters import missing_interpreter
from haft.sources.amp_toolbox.reading import Unreadable, read_description
from haft.sources.amp_toolbox.separator import separator_of

AT_ONCE: Final = 48
FAIR_SECONDS: Final = 2.0
"""Who had less time than this, because many were asked, is asked again next time."""
LEAST_SECONDS: Final = 0.5
LARGEST_SCRIPT: Final = 256_000

Known = dict[str, Any]
"""What is kept of one file: its identity, and its description or its problem."""


async def describe_all(
    wanted: Sequence[Candidate], launcher: Launcher, told: Callable[[int, int], None] = lambda _done, _all: None
) -> dict[str, Known]:
    """What each file says, by path. One without an entry could not be asked in time."""
    slots = asyncio.Semaphore(AT_ONCE)
    until = time.monotonic() + DESCRIBE_SECONDS
    answers: dict[str, Known] = {}

    async def one(each: Candidate) -> None:
        async with slots:
            seconds = until - time.monotonic()
            if seconds >= LEAST_SECONDS:
                answers[each.path] = await describe(each, launcher, seconds)
        told(len(answers), len(wanted))

    async with asyncio.TaskGroup() as group:
        for each in wanted:
            group.create_task(one(each))
    return answers


async def describe(candidate: Candidate, launcher: Launcher, seconds: float = DESCRIBE_SECONDS) -> Known:
    """What one file says."""
    said = await ask(candidate.path, launcher, seconds=seconds, folder=candidate.place.folder)
    known: Known = {"identity": candidate.identity}
    try:
        known |= read(said, candidate.path, seconds)
    except Unreadable as error:
        known["problem"] = f"{error.message}; {error.cure}"
        if said.stderr.strip():
            known["problem"] += f"; stderr: {_tail(said.stderr)}"
        known["needs"] = missing_interpreter(candidate.path)
        known["passing"] = said.is_machine or (said.is_late and seconds < FAIR_SECONDS)
    return known


def read(said: Said, path: str, seconds: float = DESCRIBE_SECONDS) -> Known:
    """What was said, in the form in which it is kept. `Unreadable` where it makes no sense."""
    again = f"`haft tools check {path}` asks it again"
    if said.failure is not None:
        missing = missing_interpreter(path)
        if missing is not None:
            raise Unreadable(f"it is run by `{missing}`, which is not on this machine", f"install `{missing}`")
        raise Unreadable(f"it could not be asked what it is: {said.failure}", again)
    if said.is_flood:
        raise Unreadable("it said more than anyone reads when asked to describe itself", "describe it in a few lines")
    if said.is_late:
        raise Unreadable(f"it did not describe itself within {min(seconds, DESCRIBE_SECONDS):.2g} s", again)
    if said.exit_code != 0:
        raise Unreadable(
            f"it exited {said.exit_code} when asked to describe itself", "exit 0 for TOOLBOX_ACTION=describe"
        )
    described = read_description(said.stdout)
    definition = {
        "name": described.name,
        "description": described.description,
        "inputSchema": dict(described.input_schema),
        "form": described.form,
        "meta": dict(described.meta),
    }
    digest = hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()
    known: Known = {**definition, "digest": digest}
    if described.form == "text":
        known["separator"] = separator_of(script(path))
    return known


def script(path: str) -> str:
    """The text of a script; nothing where it is a program, or very long."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            data = file.read(LARGEST_SCRIPT + 1)
    except OSError:
        return ""
    return "" if b"\0" in data or len(data) > LARGEST_SCRIPT else data.decode("utf-8", "replace")


def _tail(stderr: bytes) -> str:
    text = stderr.decode("utf-8", "replace").strip()
    lines = text.splitlines()
    shown = " ".join(line.strip() for line in lines[-3:])
    return shown if len(shown) <= 300 else f"…{shown[-300:]}"
