"""A patch in colour, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from haft.surfaces.text.terminal import styled, visible


def coloured_lines(text: str, stream: IO[Any]) -> Iterator[str]:
    """The lines of a patch, in colour. Inside a hunk, a line such as `--- a` is not a header: it is the removed line
    `-- a`."""
    in_hunk = False
    for line in text.removesuffix("\n").split("\n"):
        # `line` has no newline any more, so that `visible` also escapes a carriage return at its end.
        shown = visible(line)
        in_hunk = line.startswith("@@") or (in_hunk and line[:1] in (" ", "+", "-", "\\"))
        if not in_hunk:
            yield styled(shown, "bold", stream)
        elif line.startswith(("@@", "\\")):
            yield styled(shown, "dim", stream)
        elif line.startswith(("+", "-")):
            yield styled(shown, "good" if line.startswith("+") else "bad", stream)
        else:
            yield shown
