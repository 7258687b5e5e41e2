"""The text about a program before it starts: what it may reach, and which limits apply."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from haft.contracts import PROCESS_LIMITS
from haft.surfaces.text.sandbox import sandbox_words
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.service import ProgramPlan


def grant_lines(plan: ProgramPlan, workspace: str, *, times: int = 1) -> Iterator[str]:
    """What the program may reach, line by line."""
    program = plan.program
    often = f", {times} times side by side" if times > 1 else ""
    yield f"program: {one_line(shlex.join(program.argv))}{often}"
    where = os.path.normpath(os.path.join(workspace, program.cwd))
    how = "each in a layer of its own" if times > 1 else "in a layer of its own"
    when = "held until you apply or drop them" if program.holds else "committed when it ends"
    yield f"  works in: {one_line(where)}, {how}: its changes are {when}"
    yield f"  sandbox: {sandbox_words(plan.confinement, workspace)}"
    limits = [f"timeout {program.timeout:g} s" if program.timeout is not None else "no deadline"]
    limits += [_limit(name, amount) for name in PROCESS_LIMITS if (amount := getattr(plan.limits, name))]
    yield f"  limits: {', '.join(limits)}"


def _limit(name: str, amount: float) -> str:
    """A limit in words, such as `memory 2.0 GB`."""
    from haft.service import format_bytes

    label = name.removeprefix("max_").removesuffix("_bytes").replace("_", " ")
    return f"{label} {format_bytes(int(amount))}" if name.endswith("_bytes") else f"{label} {amount:_}"
