r"""Patterns of commands. A pattern is matched against the words of one simple command, never against the text of a
line.

The *subject* of a command, the text that patterns are matched against, is its words with one space between them. A
space inside a word is replaced by a character that no command line can contain, so that `git commit -m "a b"` and `git
commit -m a b` differ. A pattern is read the same way: quotes are removed, a space inside them belongs to the word, `\`
removes the special meaning of the next character, and `*` matches anything, inside quotes too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from haft.policy.analysis.verdict import Part
from haft.policy.rules.patterns import escaped, glob_matches, glob_occurs, is_regex, text_matches
from haft.policy.rules.spellings import bare_words, is_wrapper, scripts, spellings

INNER_SPACE: Final = "\0"
MOST_BEGINNINGS: Final = 200
WHITE_SPACE: Final = (
    *range(0x9, 0xE), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
    0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
)  # fmt: skip
"""The characters for which `str.isspace` is true. They are listed here because finding them takes milliseconds."""
_INNER: Final = {sign: chr(0xF0000 + sign) for sign in WHITE_SPACE} | {ord(" "): INNER_SPACE}
"""Maps each white-space character inside a word to its own replacement, so that a newline in a word does not match a
space."""


def subject(part: Part) -> str | None:
    """The text of a part that patterns are matched against; None if haft cannot tell which program would run or which
    file would be written."""
    if part.kind == "syntax" or not part.words:
        return None
    if part.kind == "command" and part.program is None:
        return None
    if part.kind == "redirection" and not part.literal:
        return None
    return joined(part.words)


def joined(words: Sequence[str]) -> str:
    """The subject of a command with these words: the text that patterns are matched against."""
    return " ".join(word.translate(_INNER) for word in words)


def part_matches(matcher: Any, part: Part, *, widely: bool = False) -> bool:
    """Whether a part matches a rule's pattern for the command. With `widely`, other spellings of the command (see
    `spellings`) are tried, too; this is for rules that reject or ask."""
    if isinstance(matcher, list | tuple):
        return any(part_matches(one, part, widely=widely) for one in matcher)
    if not isinstance(matcher, str):
        return False
    certain = subject(part)
    if certain is not None and _matches_subject(matcher, certain):
        return True
    return widely and _matches_widely(matcher, part)


def _matches_widely(pattern: str, part: Part) -> bool:
    return (
        _text_matches(pattern, part)
        or any(_matches_subject(pattern, joined(words)) for words in spellings(part))
        or any(occurs(pattern, script) for script in scripts(part))
        or (is_wrapper(part) and _matches_after_first_word(pattern, bare_words(part)))
    )


def _matches_after_first_word(pattern: str, words: Sequence[str]) -> bool:
    """Whether the pattern matches the end of a command, from any word after the first one to the last word."""
    if is_regex(pattern):
        # Each possible beginning is a text of its own. If there are too many, haft assumes that one of them matches.
        begins = range(1, len(words))
        return len(words) > MOST_BEGINNINGS or any(text_matches(pattern, joined(words[at:])) for at in begins)
    text, behind = joined(words), command_pattern(pattern)
    return glob_matches(f"* {behind}", text) or glob_matches(f"* */{behind}", text)


def occurs(matcher: Any, line: str) -> bool:
    """Whether a pattern for a command occurs anywhere in a line that haft could not parse."""
    if isinstance(matcher, list | tuple):
        return any(occurs(one, line) for one in matcher)
    if not isinstance(matcher, str):
        return False
    if is_regex(matcher):
        return text_matches(matcher, line)
    bare = _one_spaced(_unquoted(line))
    return glob_occurs(matcher, line) or glob_occurs(command_pattern(matcher).replace(INNER_SPACE, " "), bare)


# A line can be long, and every rule needs these forms of it, so each form is cached.
@lru_cache(maxsize=16)
def _unquoted(line: str) -> str:
    return line.replace('"', "").replace("'", "").replace("\\", "")


@lru_cache(maxsize=16)
def _one_spaced(text: str) -> str:
    return " ".join(text.split())


def _matches_subject(pattern: str, text: str) -> bool:
    return text_matches(pattern, text) if is_regex(pattern) else glob_matches(command_pattern(pattern), text)


def _text_matches(pattern: str, part: Part) -> bool:
    return text_matches(pattern, part.text) or (not is_regex(pattern) and glob_matches(pattern, _one_spaced(part.text)))


@lru_cache(maxsize=4096)
def command_pattern(written: str) -> str:
    """A pattern that a person wrote, in the form in which it is matched against commands. Raises `ValueError` if a
    quote is not closed."""
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
        raise ValueError(f"has a {quote} that is not closed; write `\\{quote}` for the character itself")
    return "".join(made)


def exactly(words: Sequence[str]) -> str:
    """The pattern, as a person would write it, that matches only these words."""
    pattern = " ".join(map(_exact_word, words))
    return f"\\{pattern}" if is_regex(pattern) else pattern


def _exact_word(word: str) -> str:
    safe = "".join(f"\\{sign}" if sign in "\\*\"'" else sign for sign in word)
    return f'"{safe}"' if not word or any(sign.isspace() or sign in "&|;<>:" for sign in word) else safe
