"""Shared parts of the checks of several entries: counting operands, and checks that are combined from small ones.

A check receives the words of a command as `Argument` objects. A word that is neither literal nor an expanded pattern
could be anything, so a check that depends on a word refuses the command if that word is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from haft.policy.analysis.program import Argument, Invocation, LinkReason

Check = Callable[[Invocation], str | None]

UNKNOWN: Final = "its arguments are known only when it runs"


def follows_links(*options: str) -> Check:
    """A check that returns a `LinkReason` if one of these options is given: with them, the program follows all links
    that it finds, not only those in its arguments."""

    def check(invocation: Invocation) -> str | None:
        given = next((name for name, _ in invocation.options if name in options), None)
        return LinkReason(f"`{invocation.name} {given}` follows links, even out of the workspace") if given else None

    return check


def word_set(text: str) -> frozenset[str]:
    """The set of words in a text."""
    return frozenset(text.split())


def known_words(operands: Iterable[Argument]) -> list[str] | None:
    """The words that the operands become after expansion; None if one of them is unknown."""
    words: list[str] = []
    for each in operands:
        if each.paths is not None:
            words.extend(each.paths)
        elif each.literal:
            words.append(each.text)
        else:
            return None
    return words


def at_most(most: int, why: str) -> Check:
    """A check that there are at most `most` operands, and that all of them are known."""

    def check(invocation: Invocation) -> str | None:
        if known_words(invocation.operands) is None:
            return UNKNOWN
        count = sum(len(each.paths) if each.paths is not None and each.may_split else 1 for each in invocation.operands)
        return why if count > most else None

    return check


def only_among(allowed: Iterable[str], why: str) -> Check:
    """A check that all operands are known, and are among the `allowed` words."""
    known = frozenset(allowed)

    def check(invocation: Invocation) -> str | None:
        words = known_words(invocation.operands)
        if words is None:
            return UNKNOWN
        return next((f"`{invocation.name} {word}` {why}" for word in words if word not in known), None)

    return check


def needs_option(options: tuple[str, ...], why: str) -> Check:
    """A check that one of these options was given."""

    def check(invocation: Invocation) -> str | None:
        return None if invocation.has(*options) else why

    return check


def all_of(*checks: Check) -> Check:
    """A check that runs several checks, and returns the first reason that one of them gives."""

    def check(invocation: Invocation) -> str | None:
        return next((why for each in checks if (why := each(invocation)) is not None), None)

    return check


def no_dashed_values(invocation: Invocation) -> str | None:
    """Refuse option values that begin with a dash, for programs that may read such a word as an option. Returns the
    reason, or None."""
    values = (value for _, value in invocation.options if value is not None)
    return next((f"`{value}` may be read as an option" for value in values if value.startswith("-")), None)


def leads_out(word: str) -> bool:
    """Whether a word, read as a path, may lead out of the directory in which the command runs."""
    return word.startswith(("/", "~")) or ".." in word.split("/")


def names_zone(date: str) -> bool:
    """Whether a date may begin with a time zone: GNU's date parser opens the file that the zone names."""
    return "TZ" in date


def no_response_files(invocation: Invocation) -> str | None:
    """Refuse operands like `@FILE`: the programs of binutils read more options from that file. Returns the reason, or
    None."""
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    return next((f"`{word}` names a file of further options" for word in words if word.startswith("@")), None)
