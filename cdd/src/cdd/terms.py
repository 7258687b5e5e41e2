"""The terms of a text: a search compares these instead of words.

Words are converted to one case, split where code joins them (`parseUrl`, `parse_url`), and shortened by the most common
English endings, so that `caches`, `cached` and `caching` are one term. In scripts without spaces, each pair of
characters is a term. Common words such as `the` are left out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPACELESS: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]+")
_ENDING: Final = re.compile(r"(?<=[a-z]{4})(?:ing|ed)$|(?<=[a-z]{3})(?<![sui])s$")

_STOP_WORDS: Final = frozenset(
    """
    a about all an and any are as at be been but by can could did do does for from had has have how i if in into is it
    its may might must no nor not of on one or our shall should so some such than that the their them then there these
    they this those to too us was we were what when where which who why will with would you your
    """.split()  # noqa: SIM905 - seventy words read better as words
)


def terms(text: str) -> list[str]:
    """The terms of a text, in order, as often as they occur."""
    runs = _WORD.findall(unicodedata.normalize("NFKC", text))
    return [_shortened(word) for run in runs for word in _words(run) if word not in _STOP_WORDS]


def _words(run: str) -> list[str]:
    """The words in one run of letters and digits: `parseUrl` gives `parseurl`, `parse` and `url`. In scripts without
    spaces, each pair of characters is a word."""
    found = []
    rest = _SPACELESS.sub(" ", run)
    for block in _SPACELESS.findall(run):
        found += [block[at : at + 2] for at in range(max(1, len(block) - 1))]
    for word in rest.split():
        parts = _HUMP.split(word)
        found.append(word.casefold())
        if len(parts) > 1:
            found += [part.casefold() for part in parts]
    return found


def _shortened(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    word = _ENDING.sub("", _ENDING.sub("", word) if word.endswith("s") else word)
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
