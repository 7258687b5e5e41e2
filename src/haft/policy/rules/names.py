"""Patterns of tools' names: a name in which `*` is anything, or `KIND:` and such a name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, get_args

from haft.contracts import Kind, near_miss
from haft.lazy import regex
from haft.policy.rules.patterns import glob_fits

KINDS: Final[tuple[str, ...]] = get_args(Kind)
"""Every kind of tool that a pattern may name, those too that this machine has none of."""

MOST: Final = 64
"""Characters of a name."""
_NAME: Final = regex(r"[A-Za-z0-9_*-]+")


def name_fits(pattern: str, name: str, kind: str) -> bool:
    """Whether a pattern means the tool."""
    wanted, glob = _parted(pattern)
    return wanted in (None, kind) and glob_fits(glob, name)


def check_name_pattern(pattern: str) -> None:
    """`ValueError`, with a sentence that follows on the pattern, where no tool can ever fit."""
    kind, glob = _parted(pattern)
    if kind is not None and kind not in KINDS:
        near = near_miss(kind, KINDS)
        said = f"did you mean `{near}:{glob}`?" if near else f"the kinds are {', '.join(KINDS)}"
        raise ValueError(f"can fit no tool: there is no kind `{kind}`; {said}")
    if not _NAME.fullmatch(glob):
        raise ValueError("can fit no tool: names are made of letters, digits, `_` and `-`, and `*` stands for any")
    if len(glob.replace("*", "")) > MOST:
        raise ValueError(f"can fit no tool: names have at most {MOST} characters")


def covers(wide: str, narrow: str) -> bool:
    """Whether every tool that fits `narrow` fits `wide`. Not every such pair is known; those that are, are."""
    wide_kind, wide_glob = _parted(wide)
    kind, glob = _parted(narrow)
    # A star in `narrow` is a character like any other here: what stands for it in `wide` stands for all it can mean.
    return wide_kind in (None, kind) and glob_fits(wide_glob, glob)


def near_argument(name: str, known: Iterable[str]) -> str | None:
    """The argument that is meant by a wrong name: the only one that it shortens, as `cmd` shortens `command`, else the
    near miss."""
    known = list(known)
    shortened = [one for one in known if one[:1] == name[:1] and _shortens(name, one)]
    return shortened[0] if len(shortened) == 1 else near_miss(name, known)


def _shortens(name: str, word: str) -> bool:
    left = iter(word)
    return all(letter in left for letter in name)


def _parted(pattern: str) -> tuple[str | None, str]:
    kind, colon, glob = pattern.partition(":")
    return (kind, glob) if colon else (None, pattern)
