"""Code in five colours: keywords, strings, numbers, names of functions, and comments. Pygments finds them; what it does
not know stays plain."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Final, Literal

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound

Colour = Literal["k", "s", "n", "f", "c", ""]
Piece = tuple[Colour, str]
LONGEST: Final = 200_000
"""A longer text gets no colours, and neither does one with a line longer than `LONGEST_LINE`."""
LONGEST_LINE: Final = 2000


def coloured(lines: Sequence[str], path: str) -> list[list[Piece]]:
    """The lines, each as pieces with a colour. The path says which language it is."""
    plain: list[list[Piece]] = [[("", line)] if line else [] for line in lines]
    lexer = _lexer(os.path.basename(path))
    if lexer is None or sum(map(len, lines)) > LONGEST or any(len(line) > LONGEST_LINE for line in lines):
        return plain
    found: list[list[Piece]] = [[]]
    for kind, text in lexer.get_tokens("\n".join(lines)):
        colour = _colour(str(kind))
        for number, piece in enumerate(text.split("\n")):
            if number:
                found.append([])
            if piece and found[-1] and found[-1][-1][0] == colour:
                found[-1][-1] = (colour, found[-1][-1][1] + piece)
            elif piece:
                found[-1].append((colour, piece))
    found = found[: len(lines)]
    # Lexers may drop or change characters, such as a carriage return. Then the text counts, and not its colours.
    is_whole = len(found) == len(lines) and all(
        "".join(piece for _, piece in pieces) == line for pieces, line in zip(found, lines, strict=True)
    )
    return found if is_whole else plain


@functools.lru_cache(maxsize=64)
def _lexer(name: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@functools.lru_cache(maxsize=512)
def _colour(kind: str) -> Colour:
    if ".Comment" in kind:
        return "c"
    if ".String" in kind:
        return "s"
    if ".Number" in kind:
        return "n"
    if ".Keyword" in kind or kind.endswith(("Operator.Word", "Name.Tag")):
        return "k"
    return "f" if ".Function" in kind or ".Name.Class" in kind or ".Attribute" in kind or ".Heading" in kind else ""
