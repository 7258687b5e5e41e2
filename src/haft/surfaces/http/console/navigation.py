"""The pages in the top bar, in their order."""

from __future__ import annotations

from typing import Final

from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the top bar."""

    name: str
    """Also the last part of its address."""
    title: str
    key: str | None = None
    """Typed after G, it goes there."""


ENTRIES: Final = (
    Entry("now", "Now", "n"),
    Entry("approve", "Approve", "a"),
    Entry("runs", "Runs", "r"),
    Entry("files", "Files", "f"),
    Entry("tools", "Tools", "t"),
    Entry("rules", "Rules", "l"),
    Entry("audit", "Audit", "d"),
    Entry("machine", "Machine", "m"),
)
