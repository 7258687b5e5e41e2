"""Renames with edits: a deleted and a created file with similar content.

This is tried only if there are few candidates and their texts are small. Renames with equal content are found by
digest, in `commit.manifest.renames`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from haft.changes.commit.entry import Entry
from haft.changes.commit.manifest import PathChange
from haft.changes.diff.text_content import Open, content_of
from haft.values import dataclass

MOST_CANDIDATES: Final = 50
LARGEST: Final = 256 * 1024
LEAST_SIMILARITY: Final = 60
"""The least percentage of equal lines that makes two files a rename."""
MOST_WORK: Final = 3_000_000
"""If comparing all pairs would look up more lines than this, no pair is compared."""

OpenSide = Callable[[PathChange], Open]


@dataclass(frozen=True, slots=True)
class _Text:
    path: str
    count: int
    lines: Counter[str]


def edited_renames(
    gone: Sequence[PathChange], came: Sequence[PathChange], read: OpenSide
) -> dict[str, tuple[str, int]]:
    """Maps the new path of each file that was renamed and edited to its old path and the percentage of equal lines."""
    old = [(each, each.before) for each in gone if _is_candidate(each.before)]
    new = [(each, each.after) for each in came if _is_candidate(each.after)]
    if not old or not new or max(len(old), len(new)) > MOST_CANDIDATES:
        return {}
    old_texts, new_texts = _texts(old, read), _texts(new, read)
    if sum(len(text.lines) for text in old_texts) * len(new_texts) > MOST_WORK:
        return {}
    return _best_first((_similarity(one, other), one.path, other.path) for one in old_texts for other in new_texts)


def _is_candidate(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "file" and 0 < entry.size <= LARGEST


def _texts(candidates: Sequence[tuple[PathChange, Entry | None]], read: OpenSide) -> list[_Text]:
    contents = [(each.path, content_of(entry, read(each))) for each, entry in candidates]
    return [
        _Text(path, len(content.lines), Counter(content.lines)) for path, content in contents if content.trouble is None
    ]


def _similarity(one: _Text, other: _Text) -> int:
    more = max(one.count, other.count)
    if min(one.count, other.count) * 100 < LEAST_SIMILARITY * more:
        return 0
    shared = sum(min(times, other.lines[line]) for line, times in one.lines.items() if line in other.lines)
    # Never 100: the same lines in another order are not the same file.
    return min(99, shared * 100 // more)


def _best_first(scores: Iterable[tuple[int, str, str]]) -> dict[str, tuple[str, int]]:
    """Maps new paths to old paths, with the percentage of equal lines. Each file is paired at most once. The most
    similar files are paired first. Among equally similar files, files with the same file name come first."""
    found: dict[str, tuple[str, int]] = {}
    taken: set[str] = set()
    ranked = sorted(
        (score for score in scores if score[0] >= LEAST_SIMILARITY),
        key=lambda score: (-score[0], os.path.basename(score[1]) != os.path.basename(score[2]), score),
    )
    for percent, old, new in ranked:
        if old not in taken and new not in found:
            taken.add(old)
            found[new] = (old, percent)
    return found
