"""Finds tools by words: first in the name, then in the description, then in the parameters.

The score depends only on words, so the same query always gives the same list. A word of the query also matches other
words, with less weight: its plural, longer words that begin with the query's word, shorter words with which the query's
word begins, words that mean the same in names of tools (`remove` and `delete`), and words that differ by one typing
error. Words that many tools have count less. Results that are much worse than the best result are not shown.

Thousands of tools share a few thousand words. So the query is compared with the words, not with the tools; the table of
words is kept as long as the tools stay the same.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import Listing, ToolSpec

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")

IN_NAME: Final = 8.0
IN_SERVER: Final = 6.0
"""In the part of the name that all tools of an MCP server share. A tool whose own name has the word is better."""
IN_SUMMARY: Final = 3.0
IN_PARAMETER_NAME: Final = 3.0
IN_DESCRIPTION: Final = 2.0
IN_PARAMETER_DESCRIPTION: Final = 1.0

EXACT: Final = 1.0
PLURAL: Final = 0.9
BEGINS: Final = 0.7
STEM: Final = 0.6
SAME_MEANING: Final = 0.5
SLIP: Final = 0.4

WORTH_SHOWING: Final = 0.25
"""A result is shown if its score is at least this fraction of the best score."""
LEAST_MATCHED: Final = 0.25
"""The share of the query's words that a tool must match. Of those that match any tool, it must match half."""
_LITTLE: Final = """
a all am an and are at be by can did do does for from how i in into is it its me my of on or our please so some that the
their them there this to was we what when where which who will with would you your
"""
_LITTLE_WORDS: Final = frozenset(_LITTLE.split())
_SAME_MEANING: Final = tuple(
    frozenset(group.split())
    for group in (
        "add create insert make new open",
        "delete discard drop erase remove trash",
        "fetch get read retrieve show view",
        "all fetch list show",
        "change edit modify set update write",
        "find look query search",
        "answer reply respond",
        "deliver mail post publish send",
        "call execute invoke launch run start",
        "abort cancel end kill stop terminate",
        "restore revert rollback undo",
        "move rename",
        "mute silence",
        "mail email emails mails",
        "image photo picture png screenshot",
        "directory folder",
        "issue ticket",
        "song track",
        "repo repository",
        "link url web",
        "db database sql",
    )
)


class _Index:
    """The words of a list of tools, and for each word the tools that have it with their weights."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self.specs = specs
        self.tools: dict[str, dict[int, float]] = {}
        for number, spec in enumerate(specs):
            for weight, text in _texts(spec):
                for found in _WORDS.findall(text):
                    tools = self.tools.setdefault(found.lower(), {})
                    if weight > tools.get(number, 0.0):
                        tools[number] = weight

    def is_of(self, specs: Sequence[ToolSpec]) -> bool:
        return len(specs) == len(self.specs) and all(map(_is, specs, self.specs))

    def scores(self, want: str) -> dict[int, float]:
        """How well each tool matches a word of the query; tools that do not match are missing."""
        matches = {word: like for word in self.tools if (like := likeness(want, word, slips=want not in self.tools))}
        everywhere: set[int] = set()
        everywhere.update(*(self.tools[word] for word in matches))
        scores: dict[int, float] = {}
        for word, like in matches.items():
            tools = self.tools[word]
            # A rare word that is only similar would otherwise count more than the common word that was meant.
            value = like * _rarity(len(tools) if like >= PLURAL else len(everywhere))
            for number, weight in tools.items():
                scores[number] = max(scores.get(number, 0.0), weight * value)
        return scores


_last: _Index = _Index([])


def search(listings: Iterable[Listing], query: str, *, limit: int | None = None) -> list[Listing]:
    """The listings that match the query, the best first. A tool must match at least half of the query's words, without
    those that no tool has."""
    global _last
    every = words(query)
    wanted = [word for word in every if word not in _LITTLE_WORDS] or every
    listed = list(listings)
    if not wanted or not listed:
        return []
    specs = [listing.spec for listing in listed]
    index = _last if _last.is_of(specs) else _Index(specs)
    _last = index
    totals: dict[int, float] = {}
    matched: dict[int, int] = {}
    known = 0
    for want in wanted:
        scores = index.scores(want)
        known += bool(scores)
        for number, score in scores.items():
            totals[number] = totals.get(number, 0.0) + score
            matched[number] = matched.get(number, 0) + 1
    least_matched = max(known / 2, len(wanted) * LEAST_MATCHED)
    whole = query.strip().lower()
    ranked: list[tuple[float, str, int]] = []
    for number, count in matched.items():
        if count >= least_matched:
            name = specs[number].name
            score = totals[number] + (IN_NAME if name.lower() == whole else 0.0)
            ranked.append((-score * count / known, name, number))
    ranked.sort()
    least = ranked[0][0] * WORTH_SHOWING if ranked else 0.0
    return [listed[number] for score, _name, number in ranked[:limit] if score <= least]


def words(text: str) -> list[str]:
    """The words of a text, in lower case, each once: `readFile_v2` gives `read`, `file`, `v`, `2`."""
    return list(dict.fromkeys(word.lower() for word in _WORDS.findall(text)))


def _is(one: object, other: object) -> bool:
    return one is other


def _rarity(tools: int) -> float:
    return 1 / (1 + math.log2(1 + tools))


def _texts(spec: ToolSpec) -> Iterator[tuple[float, str]]:
    parts = spec.name.split("__", 2)
    if spec.kind == "mcp" and len(parts) == 3:
        yield IN_SERVER, f"{parts[0]} {parts[1]}"
        yield IN_NAME, parts[2]
    else:
        yield IN_NAME, spec.name
    yield IN_SUMMARY, spec.summary
    yield IN_DESCRIPTION, spec.description
    properties: Any = spec.input_schema.get("properties")
    if isinstance(properties, Mapping):
        for name, schema in properties.items():
            yield IN_PARAMETER_NAME, str(name)
            if isinstance(schema, Mapping) and isinstance(schema.get("description"), str):
                yield IN_PARAMETER_DESCRIPTION, schema["description"]


def likeness(want: str, word: str, *, slips: bool = True) -> float:
    """How well a word of the query matches a word of a tool, from 0 to 1. Typing errors only with `slips`."""
    if want == word:
        return EXACT
    if word == f"{want}s" or want == f"{word}s":
        return PLURAL
    if len(want) >= 2 and word.startswith(want):
        return BEGINS
    if len(word) >= 4 and want.startswith(word):
        return STEM
    if any(want in group and word in group for group in _SAME_MEANING):
        return SAME_MEANING
    # With one typing error, a short word would match far too many others.
    if slips and min(len(want), len(word)) >= 4 and abs(len(want) - len(word)) <= 2:
        matcher = difflib.SequenceMatcher(None, want, word, autojunk=False)
        if matcher.real_quick_ratio() >= 0.8 and matcher.quick_ratio() >= 0.8 and matcher.ratio() >= 0.8:
            return SLIP
    return 0.0
