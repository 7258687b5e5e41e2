"""Recognizes `haft serve mcp` over stdin and stdout, before the command line is parsed.

`first_answer` answers a client that early only if the command line is surely right. This module knows the usual
spellings, and imports little. It takes no other spelling: for these, the command line is parsed first, and a wrong one
ends with an error, without an answer to the client. It does not check the values of `--tools`, nor the configuration.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final

from haft.contracts import HaftError

_COMMAND: Final = ("serve", "mcp")
_FLAGS: Final = frozenset({"-q", "--quiet", "--json"})
_WORKSPACE: Final = frozenset({"-w", "--workspace"})
_OWN_FLAGS: Final = frozenset({"--lazy"})
_OWN_VALUES: Final = frozenset({"--tools", "--profile"})
_PROFILES: Final = frozenset({"read-only"})


def serves_stdio(words: Sequence[str]) -> bool:
    """Whether a command line surely means `haft serve mcp` over stdin and stdout, in a workspace that can be used."""
    options = _options(words)
    if options is None:
        return False
    if not all(value in _PROFILES for name, value in options if name == "--profile"):
        return False
    return _is_usable([value for name, value in options if name in _WORKSPACE])


def _options(words: Sequence[str]) -> list[tuple[str, str]] | None:
    """The options that have values, with their values; None if a word is not known here."""
    found = []
    names = iter(_COMMAND)
    is_own = False
    rest = iter(words)
    for word in rest:
        if word in _FLAGS or (is_own and word in _OWN_FLAGS):
            continue
        if not word.startswith("-"):
            if word != next(names, None):
                return None
            is_own = word == _COMMAND[-1]
            continue
        option = _with_value(word, rest)
        if option is None or option[0] not in (_WORKSPACE | _OWN_VALUES if is_own else _WORKSPACE):
            return None
        found.append(option)
    return found if is_own else None


def _with_value(word: str, rest: Iterator[str]) -> tuple[str, str] | None:
    """An option with its value, from this word or from the next one; None if there is no value."""
    name, equals, value = word.partition("=")
    if equals:
        return (name, value) if name.startswith("--") else None
    value = next(rest, "-")
    return None if value.startswith("-") else (name, value)


def _is_usable(workspaces: Sequence[str]) -> bool:
    """Whether each of these directories can be a workspace. If there are none: whether haft finds one."""
    from haft.service import check_workspace, default_home, find_workspace

    try:
        home = default_home(os.environ)
        for each in workspaces or [find_workspace(os.getcwd(), home)]:
            if not each or not os.access(check_workspace(each, home), os.R_OK):
                return False
    except (HaftError, OSError, ValueError):  # A path with a null byte is a ValueError.
        return False
    return True
