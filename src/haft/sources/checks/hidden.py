"""Finds characters that people do not see, in texts for agents and in source code that people approve.

Characters that some writing systems need are allowed: joiners between emoji or between letters of scripts other than
Latin, and the selector that makes an emoji colourful. Look-alike letters are not searched for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from haft.sources.checks.findings import Finding

_KINDS: Final = (
    ("a mark that turns the direction of writing", "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"),
    ("a character without width", "\u200b-\u200d\u2060-\u2064\ufeff\u00ad"),
    ("a tag character", "\U000e0000-\U000e007f\U000e0100-\U000e01ef"),
    (
        "an invisible character",
        "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u206a-\u206f\u2800\u3164\ufe00-\ufe0f\uffa0\ufff9-\ufffb",
    ),
    ("a terminal escape", "\x1b\x9b"),
    ("a control character", "\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f"),
)
_HIDDEN: Final = re.compile("[" + "".join(characters for _kind, characters in _KINDS) + "]")
_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "\ufe0e\ufe0f"
_FIRST_FOREIGN: Final = "\u0300"
"""Characters after this one may be joined by an invisible joiner."""
MOST_DEPTH: Final = 40
MOST_LINES: Final = 10


def hidden_in(text: str) -> Iterator[tuple[int, str]]:
    """The positions of hidden characters in a text, and what kind of character each is."""
    for match in _HIDDEN.finditer(text):
        at = match.start()
        if not _is_needed(text, at):
            yield at, f"{_kind(match[0])} (U+{ord(match[0]):04X})"


def _is_needed(text: str, at: int) -> bool:
    before = text[at - 1] if at else ""
    after = text[at + 1 : at + 2]
    if text[at] in _SELECTORS:
        return before > "\u007f" or (before.isdigit() and after == "\u20e3") or before in "#*©®"
    if text[at] in _JOINERS:
        return all(
            side > _FIRST_FOREIGN and (side in _SELECTORS or not _HIDDEN.match(side)) for side in (before, after)
        )
    return False


def _kind(character: str) -> str:
    return next(kind for kind, characters in _KINDS if re.match(f"[{characters}]", character))


def hidden_in_source(source: str) -> Iterator[Finding]:
    """One finding for each line with a hidden character, up to `MOST_LINES`."""
    from haft.sources.checks.findings import Finding

    found = 0
    for number, line in enumerate(source.removeprefix("\ufeff").split("\n"), 1):
        for _at, what in islice(hidden_in(line), 1):
            found += 1
            yield Finding(
                "hidden-characters", f"the source holds {what}", "write it as an escape, or remove it", number
            )
        if found == MOST_LINES:
            return


def hidden_in_definition(name: str, description: str, schema: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding for each text of a definition with a hidden character."""
    from haft.sources.checks.findings import Finding

    texts = [("the name", name), ("the description", description), *texts_of("the parameters", schema, 0)]
    found: dict[str, str] = {}
    for where, text in texts:
        for _at, what in islice(hidden_in(text), 1):
            found.setdefault(where, what)
    for where, what in found.items():
        yield Finding("hidden-characters", f"{where} {'hold' if where[-1] == 's' else 'holds'} {what}", "remove it")


def texts_of(where: str, value: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    """All texts in a JSON value, the keys of objects too, each with `where`."""
    if isinstance(value, str):
        yield where, value
    elif depth < MOST_DEPTH and isinstance(value, Mapping):
        for key, inner in value.items():
            yield where, str(key)
            yield from texts_of(where, inner, depth + 1)
    elif depth < MOST_DEPTH and isinstance(value, list | tuple):
        for inner in value:
            yield from texts_of(where, inner, depth + 1)
