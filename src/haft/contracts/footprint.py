"""What a call reads and writes, as far as haft knows before the call runs.

Calls are ordered and locked by their footprints. A footprint says what a call may touch, not what it will change: the
change set of a call is known only when the call has ended.
"""

from __future__ import annotations

from typing import Final, Literal

from haft.values import dataclass

Isolation = Literal["snapshot", "serial"]
"""`snapshot`: the call sees one committed state, as of its start, and no update is lost. `serial`: besides, the outcome
is one that some order of the calls would give."""

Paths = tuple[str, ...] | None
"""Paths of the workspace, relative to its root, with links resolved. Each path stands for itself and for everything
below it, and `.` for the whole workspace. None: unknown, so perhaps the whole workspace."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The files and resources that one call may touch."""

    reads: Paths = None
    writes: Paths = None
    resources: tuple[str, ...] = ()
    """Names of things that are no files, such as `postgres:main` or `mcp:github`: calls that share a name keep their
    order."""


UNKNOWN: Final = Footprint()
NOTHING: Final = Footprint((), ())


def meeting_path(some: Paths, others: Paths) -> str | None:
    """A path at which two sets of paths meet; None if they do not meet. Unknown paths meet all paths, but not the empty
    set."""
    if some == () or others == ():
        return None
    if some is None or others is None:
        known = some if others is None else others
        return "." if known is None else known[0]
    for one in some:
        for other in others:
            if one == other or one == "." or other.startswith(f"{one}/"):
                return other
            if other == "." or one.startswith(f"{other}/"):
                return one
    return None


def why_ordered(earlier: Footprint, later: Footprint) -> str | None:
    """Why the later of two calls must wait for the earlier one, as part of a sentence; None if the two may run at
    once."""
    for name in earlier.resources:
        if name in later.resources:
            return f"both use {name}"
    pairs = (
        (earlier.writes, later.writes, "both may write"),
        (earlier.writes, later.reads, "it may read what the earlier call may write:"),
        (earlier.reads, later.writes, "it may write what the earlier call may read:"),
    )
    for some, others, words in pairs:
        path = meeting_path(some, others)
        if path is not None:
            return f"{words} {'any file' if some is None or others is None else path}"
    return None
