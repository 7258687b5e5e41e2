"""Finds the paragraphs of `.context/specs` that fit a text, best first.

Blank lines separate paragraphs; a code block stays whole, and a heading belongs to the paragraph after it. The score of
a paragraph is the sum over the terms it shares with the text (the BM25 weighting): a rare term counts more, a repeated
term counts little more than once, and length is no advantage. The terms of the titles above a paragraph count half.
Only words are compared: a paragraph that uses other words is not found.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cdd import files
from cdd.plan import Fence, heading_of
from cdd.refusals import Refused
from cdd.terms import terms
from cdd.workspace import Workspace

_SATURATION: Final = 1.2
_LENGTH: Final = 0.75
_TITLE: Final = 0.5
_WORTH: Final = 0.1
"""A paragraph with less than this share of the best score is dropped: it shares a word only by chance."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a specification, and its location."""

    file: str
    """The path of the file, relative to `.context/specs`."""
    lines: tuple[int, int]
    titles: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Library:
    """All paragraphs of the specifications. `skipped` has the files that could not be read, each with the reason."""

    paragraphs: tuple[Paragraph, ...]
    skipped: tuple[tuple[str, str], ...]


def read_specs(workspace: Workspace) -> Library:
    """Every text in `.context/specs`, except hidden files. Links are not followed."""
    paragraphs: list[Paragraph] = []
    skipped: list[tuple[str, str]] = []
    for path in _files(workspace.required().specs):
        name = os.path.relpath(path, workspace.specs)
        try:
            content = files.read(path) or b""
        except (OSError, Refused) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else problem.format_message()
            skipped.append((name, reason or "it cannot be read"))
            continue
        if b"\0" in content:
            skipped.append((name, "it is not text"))
            continue
        paragraphs += split(name, files.text_of(content))
    return Library(tuple(paragraphs), tuple(skipped))


def split(file: str, text: str) -> list[Paragraph]:
    """The paragraphs of one file, in order."""
    found: list[Paragraph] = []
    titles: list[tuple[int, str]] = []
    block: list[str] = []
    has_body = False
    first = 1
    fence = Fence()

    def close(last: int) -> None:
        while block and not block[-1].strip():
            block.pop()
            last -= 1
        if block:
            trail = tuple(title for _level, title in titles if title)
            found.append(Paragraph(file, (first, last), trail, "\n".join(block)))
        block.clear()

    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        is_code = fence.holds(line)
        heading = None if is_code else heading_of(line)
        ends = not is_code and (not line.strip() and has_body)
        if heading or ends:
            close(number - 1)
            has_body = False
        if heading:
            titles = [*(one for one in titles if one[0] < heading[0]), heading]
        if not block:
            first = number
        if block or line.strip():
            block.append(line)
        has_body = has_body or (bool(line.strip()) and not heading)
    close(len(lines))
    return [paragraph for paragraph in found if not _is_title_alone(paragraph)]


def ranked(paragraphs: tuple[Paragraph, ...], focus: str) -> list[Paragraph]:
    """The paragraphs that fit the focus, best first; paragraphs with equal scores in the order of the files."""
    focus_terms = set(terms(focus))
    weights = [_weights(paragraph) for paragraph in paragraphs]
    if not focus_terms or not weights:
        return []
    holders = Counter(term for held in weights for term in focus_terms & held.keys())
    mean = sum(sum(held.values()) for held in weights) / len(weights) or 1.0
    scored = []
    for paragraph, held in zip(paragraphs, weights, strict=True):
        size = _SATURATION * (1 - _LENGTH + _LENGTH * sum(held.values()) / mean)
        score = 0.0
        for term in sorted(focus_terms & held.keys()):
            rarity = math.log(1 + (len(weights) - holders[term] + 0.5) / (holders[term] + 0.5))
            score += rarity * held[term] * (_SATURATION + 1) / (held[term] + size)
        scored.append((score, paragraph))
    least = _WORTH * max(score for score, _paragraph in scored)
    fitting = [one for one in scored if one[0] > 0 and one[0] >= least]
    return [paragraph for _score, paragraph in sorted(fitting, key=lambda one: -one[0])]


def grouped(paragraphs: list[Paragraph]) -> dict[str, list[Paragraph]]:
    """Ranked paragraphs by file: the file with the best paragraph comes first, and each file's best paragraph first in
    its list."""
    groups: dict[str, list[Paragraph]] = {}
    for paragraph in paragraphs:
        groups.setdefault(paragraph.file, []).append(paragraph)
    return groups


def _files(folder: str) -> Iterator[str]:
    for where, folders, found in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in list(folders):
            if os.path.islink(os.path.join(where, name)):
                folders.remove(name)
                yield os.path.join(where, name)  # reading the link fails, and the reason is reported
        yield from (os.path.join(where, name) for name in sorted(found) if not name.startswith("."))


def _weights(paragraph: Paragraph) -> dict[str, float]:
    held: dict[str, float] = {}
    for term in terms(paragraph.text):
        held[term] = held.get(term, 0.0) + 1.0
    for term in terms(" ".join((*paragraph.titles, os.path.splitext(paragraph.file)[0]))):
        held[term] = held.get(term, 0.0) + _TITLE
    return held


def _is_title_alone(paragraph: Paragraph) -> bool:
    return all(not line.strip() or heading_of(line) for line in paragraph.text.split("\n"))
