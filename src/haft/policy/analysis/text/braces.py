"""Expands braces: the words that `{a,b}` and `{1..3}` stand for."""

from __future__ import annotations

import itertools
from typing import Final

from haft.lazy import regex

_MAX_WORDS: Final = 200
_MAX_BRACES: Final = 8
_RANGE: Final = regex(r"(0|[1-9][0-9]{0,5})\.\.(0|[1-9][0-9]{0,5})")

Characters = tuple[tuple[str, bool], ...]
"""The characters of a word, each with True if it is quoted."""


def expand_braces(characters: Characters) -> list[Characters] | None:
    """The words that braces expand to; None if the braces are not as simple as `{a,b}` or `{1..3}`."""
    done: list[Characters] = []
    waiting = [characters]
    while waiting:
        now = waiting.pop()
        # Each quoted character is replaced by one that means nothing here, so that positions stay the same.
        plain = "".join("_" if is_quoted else character for character, is_quoted in now)
        if plain.count("{") > _MAX_BRACES:
            return None
        found = _braces(plain)
        if found is None:
            # Bash drops an empty word that results from braces.
            if not now and characters:
                return None
            done.append(now)
            continue
        # Bash expands braces first, so the result may begin with a home directory or contain a variable.
        if "~" in plain or "$" in plain:
            return None
        start, end = found
        if end < 0:
            return None
        choices = _choices(now[start + 1 : end], plain[start + 1 : end])
        if choices is None or len(done) + len(waiting) + len(choices) > _MAX_WORDS:
            return None
        waiting += [now[:start] + each + now[end + 1 :] for each in reversed(choices)]
    return done


def _braces(plain: str) -> tuple[int, int] | None:
    """The start and end of the first braces that expand to several words; the end is -1 if they contain other braces.
    None if there are no such braces."""
    start = plain.find("{")
    while start >= 0:
        rest = plain[start + 1 :]
        parting = [at for at in (rest.find(","), rest.find("..")) if at >= 0]
        close, other = rest.find("}"), rest.find("{")
        if parting and min(parting) < close and (other < 0 or close < other):
            return start, start + 1 + close
        last = max(rest.rfind(","), rest.rfind(".."))
        first_brace = min((at for at in (close, other) if at >= 0), default=len(rest))
        if parting and (first_brace < last or min(parting) < rest.rfind("}")):
            return start, -1
        start = plain.find("{", start + 1)
    return None


def _choices(marked: Characters, inside: str) -> list[Characters] | None:
    if "," in inside:
        cuts = [-1, *(at for at, character in enumerate(inside) if character == ","), len(inside)]
        return [marked[before + 1 : after] for before, after in itertools.pairwise(cuts)]
    bounds = _RANGE.fullmatch(inside)
    if bounds is None:
        return None
    first, last = int(bounds[1]), int(bounds[2])
    if abs(last - first) >= _MAX_WORDS:
        return None
    step = 1 if last >= first else -1
    return [tuple((digit, False) for digit in str(each)) for each in range(first, last + step, step)]
