"""Checks whether a description tells an agent what it needs: what the tool does, when to use it, its constraints.

This is a heuristic over English words. It finds descriptions that are too short, that only name a thing, or that use
filler words. It does not judge whether a long sentence is true or good. For scripts other than Latin it checks only the
length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from haft.sources.checks.findings import Finding

FEWEST_WORDS: Final = 4
"""A description with fewer words is too vague."""
FEW_WORDS: Final = 6
"""A description with fewer words must name something particular, or say when to use the tool."""

MANY_WORDS: Final = 20
"""A description with more words is not called vague because of one filler word."""
MOST_READ: Final = 5_000
"""How many characters of a description are checked."""

_WORD: Final = re.compile(r"[^\W_]+(?:['’./_-][^\W_]+)*")
_FILLER: Final = re.compile(
    r"\b(stuff|thingy|thingies|thing|things|whatever|blah|foobar|lorem|todo|tbd|fixme|xxx|various tasks|misc"
    r"|miscellaneous)\b",
    re.IGNORECASE,
)
_ALLOWED_FILLER: Final = re.compile(
    r"\b(the (?:first|last|next|only|same|right|wrong) things?|among other things|all things considered)\b"
    r"|(?<=[\w'’,)][\s-])(?-i:Things)\b"
    r"|[`'\"“][^`'\"”\n]{1,40}[`'\"”]|\b(?:todo|fixme|xxx)s?\b(?=[^.]*\b(?:comments?|markers?|notes?|items?|lists?|entries)\b)",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = re.compile(
    r"what (?:the|this|your) tool does|describe (?:the|this|your) tool|your description|description (?:goes )?here"
    r"|insert .*description|^\W*(?:an? )?(?:example|sample|test|placeholder|description|my tool|new tool)\W*$",
    re.IGNORECASE,
)
_THING: Final = re.compile(
    r"^\W*(?:(?:this|it) is )?(?:an?|the|my|our|some|this)\s+(?:\w+[\s-]+){0,3}?"
    r"(?:tool|utility|util|helper|script|command|function|program|wrapper|plugin|thing|executable)s?\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_PURPOSE: Final = re.compile(
    r"\b(?:that|which|to|for|who|it)\b\s+\w+|^\s+(?:(?:can|will|may)\s+\w+|(?!is\b|was\b|has\b)\w+s)\s+\w+",
    re.IGNORECASE,
)
_PARTICULAR: Final = re.compile(r"\w*[A-Z]\w*[A-Z]|\d|[`\"“]")
_BARE: Final = re.compile(
    r"(?:\w+[\s-]+){0,2}(?:tool|utility|utilities|util|helper|helpers|script|command|function|wrapper|plugin|stuff"
    r"|things|management|operations|functionality)\W*",
    re.IGNORECASE,
)
_USE: Final = re.compile(
    r"\b(use[ds]?|using|when|whenever|if|instead|rather|before|after|prefer(?:red)?|unless|until|only|never|always|must"
    r"|not|cannot|can't|don't|doesn't|won't|without|requires?|needs?|required|safe(?:r|ly|ty)?|careful|at most|at least"
    r"|up to|limit(?:ed|s)?|default(?:s)?|because|so that|for (?:\w+ing|which)|in order|avoid|read-only|dry[- ]run"
    r"|returns?|prints?|gives?|handles?|optional(?:ly)?|takes?|works?|ideal|useful|helps?|faster|slower|may|should|except|fails?|refuses?"
    r"|otherwise|else|even|also|supports?)\b",
    re.IGNORECASE,
)


def why_vague(description: str) -> str | None:
    """Why a description says too little; None if it says enough."""
    text = description.strip()[:MOST_READ]
    words = _WORD.findall(text)
    if len(words) <= MANY_WORDS and _PLACEHOLDER.search(text):
        return "it is a placeholder"
    if (thing := _THING.match(text)) and not _PURPOSE.search(thing["rest"]):
        return "it only names a thing and does not say what the thing does"
    if _BARE.fullmatch(text):
        return "it only names a thing and does not say what the thing does"
    filler = _FILLER.search(_ALLOWED_FILLER.sub(" ", text)) if len(words) <= MANY_WORDS else None
    if filler is not None:
        return f"`{filler[0]}` does not say what it means"
    if not _is_latin(text):
        return "it is too short to choose by" if len(text) < FEWEST_WORDS else None
    if len(words) < FEWEST_WORDS:
        return f"it has {len(words)} word{'s' * (len(words) != 1)}: too vague to choose by"
    if len(words) < FEW_WORDS and not _PARTICULAR.search(text) and not _says_more(text):
        return "it is short and gives neither the use nor a constraint"
    return None


def lacks_use(description: str) -> bool:
    """Whether a clear description neither says when to use the tool nor names a constraint."""
    text = description.strip()[:MOST_READ]
    return _is_latin(text) and not _says_more(text)


def _says_more(text: str) -> bool:
    """Whether a text has a second sentence, or words about use and constraints."""
    sentences = [part for part in re.split(r"[.!?;:](?:\s|$)|\n", text.strip()) if len(_WORD.findall(part)) > 1]
    return len(sentences) > 1 or _USE.search(text) is not None


def _is_latin(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    return sum(letter < "\u0250" for letter in letters) * 2 >= len(letters)


_FRESH_TOOL: Final = (
    "Print the first lines of a text file. Use this tool instead of reading a whole file when only its beginning "
    "matters, as in a long log or table. It reads one file and changes nothing; it prints at most 1000 lines."
)
"""The description of every tool that `haft tools make` writes."""
_FRESH_SKILL: Final = "Say what this skill teaches. Use when: say which work it is for."
FRESH: Final = {_FRESH_TOOL: "haft tools make", _FRESH_SKILL: "haft skills make"}
"""The descriptions of newly made tools and skills, and the command that writes each."""

_GOOD: Final = "say what it does, when to use it rather than something else, and which constraints it has"


def check_description(description: str) -> Iterator[Finding]:
    """Check whether a description exists, was changed from the template's text, and says enough."""
    if not description.strip():
        yield Finding("no-description", "it has no description", _GOOD)
    elif (maker := FRESH.get(" ".join(description.split()))) is not None:
        yield Finding("unchanged-template", f"the description is still the one that `{maker}` wrote", _GOOD)
    elif (why := why_vague(description)) is not None:
        yield Finding("vague-description", f"the description is vague: {why}", _GOOD)
    elif lacks_use(description):
        yield Finding(
            "description-without-use",
            "the description gives neither the use of the tool nor a constraint",
            "add a sentence such as `Use this instead of … when …`",
        )
