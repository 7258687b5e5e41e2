"""Finds tools by words: first in the name, then in the description, then in the parameters.

The score depends only on words, so the same query always gives the same list, and no index is needed. A word of the
query also matches other words, with less weight: longer words that begin with the query's word, shorter words with
which the query's word begins, and words that differ by one typing error. Words that most tools have count less. Results
that are much worse than the best result are not shown.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from haft.contracts import Listing, ToolSpec

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")

IN_NAME: Final = 8.0
IN_SUMMARY: Final = 3.0
IN_PARAMETER_NAME: Final = 3.0
IN_DESCRIPTION: Final = 2.0
IN_PARAMETER_DESCRIPTION: Final = 1.0

EXACT: Final = 1.0
BEGINS: Final = 0.7
STEM: Final = 0.6
SLIP: Final = 0.4

WORTH_SHOWING: Final = 0.25
"""A result is shown if its score is at least this fraction of the best score."""
_LITTLE_WORDS: Final = frozenset(
    ("a", "an", "and", "by", "for", "from", "in", "is", "it", "of", "on", "or", "the", "to", "with")
)


def search(listings: Iterable[Listing], query: str, *, limit: int | None = None) -> list[Listing]:
    """The listings that match the query, the best first. A tool must match at least half of the query's words."""
    every = words(query)
    wanted = [word for word in every if word not in _LITTLE_WORDS] or every
    if not wanted:
        return []
    scored = [(_scores(wanted, listing.spec), listing) for listing in listings]
    rarity = [1 / (1 + math.log2(1 + sum(scores[at] > 0 for scores, _listing in scored))) for at in range(len(wanted))]
    ranked: list[tuple[float, str, Listing]] = []
    for scores, listing in scored:
        matched = sum(score > 0 for score in scores)
        if matched * 2 >= len(wanted):
            whole = IN_NAME if listing.spec.name.lower() == query.strip().lower() else 0.0
            score = sum(map(operator.mul, scores, rarity)) + whole
            ranked.append((-score * matched / len(wanted), listing.spec.name, listing))
    ranked.sort(key=lambda row: row[:2])
    least = ranked[0][0] * WORTH_SHOWING if ranked else 0.0
    return [row[2] for row in ranked[:limit] if row[0] <= least]


def words(text: str) -> list[str]:
    """The words of a text, in lower case, each once: `readFile_v2` gives `read`, `file`, `v`, `2`."""
    return list(dict.fromkeys(word.lower() for word in _WORDS.findall(text)))


def _scores(wanted: list[str], spec: ToolSpec) -> list[float]:
    weights: dict[str, float] = {}
    for weight, text in _texts(spec):
        for word in words(text):
            weights[word] = max(weight, weights.get(word, 0.0))
    return [max((weight * likeness(want, word) for word, weight in weights.items()), default=0.0) for want in wanted]


def _texts(spec: ToolSpec) -> Iterator[tuple[float, str]]:
    yield IN_NAME, spec.name
    yield IN_SUMMARY, spec.summary
    yield IN_DESCRIPTION, spec.description
    properties: Any = spec.input_schema.get("properties")
    if isinstance(properties, Mapping):
        for name, schema in properties.items():
            yield IN_PARAMETER_NAME, str(name)
            if isinstance(schema, Mapping) and isinstance(schema.get("description"), str):
                yield IN_PARAMETER_DESCRIPTION, schema["description"]


def likeness(want: str, word: str) -> float:
    """How well a word of the query matches a word of a tool, from 0 to 1."""
    if want == word:
        return EXACT
    if len(want) >= 2 and word.startswith(want):
        return BEGINS
    if len(word) >= 4 and want.startswith(word):
        return STEM
    # With one typing error, a short word would match far too many others.

    if min(len(want), len(word)) >= 4 and abs(len(want) - len(word)) <= 2:
        matcher = difflib.SequenceMatcher(None, want, word, autojunk=False)
        if matcher.real_quick_ratio() >= 0.8 and matcher.ratio() >= 0.8:
            return SLIP
    return 0.0
