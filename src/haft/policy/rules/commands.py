r"""Patterns of commands: held against the words of one simple command, never against the text of a line.

A command's subject is its words with one space between them. A space inside a word becomes a character that no
command line can hold, so that `git commit -m "a b"` and `git commit -m a b` are two different things. A pattern is read
the same way: quotes are taken off, a space inside them belongs to the word, `\` takes the meaning from what follows it,
and `*` is anything, inside quotes too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from haft.policy.analysis.verdict import Part
from haft.policy.rules.disguises import bare_words, disguised, is_wrapper, scripts
from haft.policy.rules.patterns import escaped, glob_fits, glob_occurs, is_regex, text_fits

INNER_SPACE: Final = "\0"
MOST_BEGINNINGS: Final = 200
WHITE_SPACE: Final = (
    *range(0x9, 0xE), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
    0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
)  # fmt: skip
"""As `str.isspace` has it: looking through all characters for it takes milliseconds."""
_INNER: Final = {sign: chr(0xF0000 + sign) for sign in WHITE_SPACE} | {ord(" "): INNER_SPACE}
"""Each white space of a word by a character of its own: a newline in a script is not a space."""


def subject(part: Part) -> str | None:
    """What a pattern is held against; None where nobody can tell what would run, or what would be written."""
    if part.kind == "syntax" or not part.words:
        return None
    if part.kind == "command" and part.program is None:
        return None
    if part.kind == "redirection" and not part.literal:
        return None
    return joined(part.words)


def joined(words: Sequence[str]) -> str:
    """Words as one subject."""
    return " ".join(word.translate(_INNER) for word in words)


def part_fits(matcher: Any, part: Part, *, widely: bool = False) -> bool:
    """Whether a part fits what a rule says of the command. `widely`, for rules that forbid or ask: any way to look at
    the part will do."""
    if isinstance(matcher, list | tuple):
        return any(part_fits(one, part, widely=widely) for one in matcher)
    if not isinstance(matcher, str):
        return False
    certain = subject(part)
    if certain is not None and _fits(matcher, certain):
        return True
    return widely and _fits_widely(matcher, part)


def _fits_widely(pattern: str, part: Part) -> bool:
    return (
        _text_fits(pattern, part)
        or any(_fits(pattern, joined(words)) for words in disguised(part))
        or any(occurs(pattern, script) for script in scripts(part))
        or (is_wrapper(part) and _fits_behind(pattern, bare_words(part)))
    )


def _fits_behind(pattern: str, words: Sequence[str]) -> bool:
    """Whether a command that fits begins at any word but the first."""
    if is_regex(pattern):
        # Each beginning is a text of its own: of too many, one is taken to fit.
        begins = range(1, len(words))
        return len(words) > MOST_BEGINNINGS or any(text_fits(pattern, joined(words[at:])) for at in begins)
    text, behind = joined(words), command_pattern(pattern)
    return glob_fits(f"* {behind}", text) or glob_fits(f"* */{behind}", text)


def occurs(matcher: Any, line: str) -> bool:
    """Whether a pattern of a command stands anywhere in a line that was not understood."""
    if isinstance(matcher, list | tuple):
        return any(occurs(one, line) for one in matcher)
    if not isinstance(matcher, str):
        return False
    if is_regex(matcher):
        return text_fits(matcher, line)
    bare = _one_spaced(_unquoted(line))
    return glob_occurs(matcher, line) or glob_occurs(command_pattern(matcher).replace(INNER_SPACE, " "), bare)


# A line can be long, and rules many: what is made of the line is made once.
@lru_cache(maxsize=16)
def _unquoted(line: str) -> str:
    return line.replace('"', "").replace("'", "").replace("\\", "")


@lru_cache(maxsize=16)
def _one_spaced(text: str) -> str:
    return " ".join(text.split())


def _fits(pattern: str, text: str) -> bool:
    return text_fits(pattern, text) if is_regex(pattern) else glob_fits(command_pattern(pattern), text)


def _text_fits(pattern: str, part: Part) -> bool:
    return text_fits(pattern, part.text) or (not is_regex(pattern) and glob_fits(pattern, _one_spaced(part.text)))


@lru_cache(maxsize=4096)
def command_pattern(written: str) -> str:
    """A pattern as it is held against subjects; `ValueError` where a quote is not closed."""
    made: list[str] = []
    quote, at = "", 0
    while at < len(written):
        sign, after = written[at], written[at + 1 : at + 2]
        if sign == "\\" and after and (quote != "'" or after in "\\*"):
            made.append(escaped(after.translate(_INNER)))
            at += 1
        elif sign == "\\":
            made.append("\\\\")
        elif sign == quote or (not quote and sign in "\"'"):
            quote = "" if quote else sign
        else:
            made.append(sign.translate(_INNER) if quote else sign)
        at += 1
    if quote:
        raise ValueError(f"has a {quote} that is not closed; `\\{quote}` stands for the sign itself")
    return "".join(made)


def exactly(words: Sequence[str]) -> str:
    """The pattern, as one writes it, that only these words fit."""
    pattern = " ".join(map(_exact_word, words))
    return f"\\{pattern}" if is_regex(pattern) else pattern


def _exact_word(word: str) -> str:
    safe = "".join(f"\\{sign}" if sign in "\\*\"'" else sign for sign in word)
    return f'"{safe}"' if not word or any(sign.isspace() or sign in "&|;<>:" for sign in word) else safe
