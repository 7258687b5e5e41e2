"""Patterns for names of tools: a name in which `*` matches anything, or `KIND:` and such a name. For an agent's own
tools, the name of the agent stands for the kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, get_args

from haft.contracts import Kind, near_miss
from haft.lazy import regex
from haft.policy.rules.patterns import glob_matches

KINDS: Final[tuple[str, ...]] = get_args(Kind)
"""Every kind of tool that a pattern may name, including kinds of which this machine has no tool."""

AGENTS: Final = ("claude-code", "codex", "opencode", "gemini", "antigravity", "cursor", "vscode", "amp")
"""The agents whose own tools a pattern may name, such as `claude-code:WebFetch`: see `service.observed`."""
MOST: Final = 64
"""The maximum length of a tool's name."""
_NAME: Final = regex(r"[A-Za-z0-9_*-]+")


def name_matches(pattern: str, name: str, kind: str) -> bool:
    """Whether a pattern matches the tool with this name and kind."""
    wanted, glob = _parted(pattern)
    agent, own = _parted(name)
    if agent is not None and wanted is not None:
        return wanted == agent and glob_matches(glob, own)
    return wanted in (None, kind) and glob_matches(glob, name)


def check_name_pattern(pattern: str) -> None:
    """Raise `ValueError` if no tool can ever match the pattern. The error's text continues a sentence that begins with
    the pattern."""
    kind, glob = _parted(pattern)
    if kind is not None and kind not in (*KINDS, *AGENTS):
        near = near_miss(kind, KINDS)
        hint = f"did you mean `{near}:{glob}`?" if near else f"the kinds are {', '.join(KINDS)}"
        raise ValueError(f"can match no tool: there is no kind `{kind}`; {hint}")
    if not _NAME.fullmatch(glob):
        raise ValueError("can match no tool: a name has only letters, digits, `_` and `-`; `*` matches any of them")
    if len(glob.replace("*", "")) > MOST:
        raise ValueError(f"can match no tool: a name has at most {MOST} characters")


def covers(wide: str, narrow: str) -> bool:
    """Whether every tool that matches `narrow` certainly also matches `wide`. False also if haft cannot tell."""
    wide_kind, wide_glob = _parted(wide)
    kind, glob = _parted(narrow)
    # A `*` in `narrow` is compared as an ordinary character: only a `*` in `wide` can match it, and that also matches
    # any text in its place.
    return wide_kind in (None, kind) and glob_matches(wide_glob, glob)


def near_argument(name: str, known: Iterable[str]) -> str | None:
    """The argument that a wrong `name` probably means. If `name` abbreviates exactly one argument, as `cmd` abbreviates
    `command`, the result is this argument; otherwise it is the most similar argument. None if no argument is
    similar."""
    known = list(known)
    shortened = [one for one in known if one[:1] == name[:1] and _shortens(name, one)]
    return shortened[0] if len(shortened) == 1 else near_miss(name, known)


def _shortens(name: str, word: str) -> bool:
    left = iter(word)
    return all(letter in left for letter in name)


def _parted(pattern: str) -> tuple[str | None, str]:
    kind, colon, glob = pattern.partition(":")
    return (kind, glob) if colon else (None, pattern)
