"""The diff of a run's changes as a person sees it who approves them. The stage `review` shows it, and `service/inbox`
compares it with the changes that are held when an answer comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from haft.changes.diff.difference import FileDifference, differences
from haft.files import shown

if TYPE_CHECKING:
    from haft.changes.kept_changes import KeptChanges

MOST_SHOWN: Final = 1_000_000
"""After this many characters, the rest of a diff is not shown to a person."""


def diff_text(kept: KeptChanges, run: str) -> str:
    """The diff of a run's changes, cut after about `MOST_SHOWN` characters."""
    found = kept.find(run)
    pieces: list[str] = []
    size = 0
    for each in differences(found.entries, lambda each, side: kept.read(found, each, side)):
        if each.renamed_to is None:
            pieces.append(_shown(each))
            size += len(pieces[-1])
        if size > MOST_SHOWN:
            pieces.append(f"… and more, {len(found.entries)} paths in all: `haft diff {run}` shows them\n")
            break
    return "".join(pieces)


def _shown(each: FileDifference) -> str:
    """The patch of one file, or one line with its name, followed by the facts that a patch cannot show."""
    text = each.text or f"{each.change.type} {shown(each.change.path)}\n"
    return text + (f"({each.note})\n" if each.note else "")
