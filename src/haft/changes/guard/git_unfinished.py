"""The files of unfinished git operations, which git reads when a person continues the operation.

A stopped rebase, `am`, cherry-pick or bisection keeps its options in files, which `git rebase --continue` uses. A
strategy can name a program to run, an option of `apply` can let a patch write outside of the working tree, and older
versions of git pass some options to a shell. A call may write these files only as git itself would. Patches and commits
that wait are not checked, nor are branch names, which git checks itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from haft.files import Setting
from haft.lazy import regex

STEPS: Final = frozenset({"rebase-apply", "rebase-merge", "sequencer"})
"""Directories in a git directory that hold the files of unfinished operations."""

_STRATEGY: Final = regex(r"(?:octopus|ort|ours|recursive|resolve|subtree)?")
"""The strategies that are part of git. For any other strategy, git runs a program of that name."""
_STRATEGY_OPTION: Final = regex(
    r"(?:--)?(?:diff-algorithm|find-renames|histogram|ignore-all-space|ignore-cr-at-eol|ignore-space-at-eol"
    r"|ignore-space-change|minimal|no-renames|no-renormalize|ours|patience|rename-threshold|renormalize|subtree|theirs)"
    r"(?:=[\w.%/+-]*)?"
)
_APPLY_OPTION: Final = regex(
    r"-[Cp][0-9]+|--reject|--whitespace=[\w-]+|--ignore-(?:space-change|whitespace)|--(?:in|ex)clude=[\w.*?/+-]*"
    r"|--directory=(?!/|(?:.*/)?\.\.(?:/|$))[\w./+-]*"
)
_KEY: Final = regex(r"(?:[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*)?")
_OBJECT: Final = regex(r"[0-9a-f]{40,64}")
_QUOTED: Final = r"'(?:[^'\0\n]|'\\[!']')*'"
_AUTHOR: Final = regex(rf"(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)={_QUOTED}\n?)*")
_PATHS: Final = regex(rf"(?: ?{_QUOTED})*")
_BRANCH: Final = regex(r"[^-\x00-\x20\x7f][^\x00-\x20\x7f]*")
_TERMS: Final = regex(r"\w[\w./-]*\n\w[\w./-]*")
_KEPT: Final = regex(r"[0-9a-f]{40,64}(?:\.[0-9]+)?\t([^\0]+)")

_OPTIONS: Final = frozenset({
    "allow-empty", "allow-empty-message", "allow-ff", "allow-rerere-auto", "default-msg-cleanup",
    "drop-redundant-commits", "edit", "keep-redundant-commits", "mainline", "no-commit", "record-origin", "signoff",
})  # fmt: skip
"""Harmless options of a cherry-pick or revert, which name no program or path."""


def _words(text: str) -> list[str]:
    """The words of a text that git quoted, without the quotes. A quoted word with spaces is split at the spaces: its
    parts are probably no known options, so the file is refused."""
    return re.sub(r"['\"\\]", "", text).split()


def _are_strategy_options(text: str) -> bool:
    return all(map(_STRATEGY_OPTION.fullmatch, _words(text)))


def _are_apply_options(text: str) -> bool:
    return all(map(_APPLY_OPTION.fullmatch, _words(text)))


def _is_signing(text: str) -> bool:
    return not text or (text.startswith("-S") and _KEY.fullmatch(text[2:]) is not None)


def _are_conflicts(text: str) -> bool:
    """Whether `MERGE_RR`, the list of files that git will write resolved conflicts to, names only paths that a commit
    could hold."""
    for each in text.split("\0")[:-1]:
        found = _KEPT.fullmatch(each)
        words = [] if found is None else found[1].lower().split("/")
        if not words or {"", "..", ".git"} & set(words):
            return False
    return not text or text.endswith("\0")


def _only(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


IN_STEPS: Final[dict[str, Callable[[str], bool]]] = {
    "apply-opt": _are_apply_options,
    "author-script": _only(_AUTHOR),
    "autostash": _only(_OBJECT),
    "gpg_sign_opt": _is_signing,
    "strategy": _only(_STRATEGY),
    "strategy_opts": _are_strategy_options,
}
"""By name of a file in one of the directories `STEPS`: whether a text is one that git would write there."""

AT_TOP: Final[dict[str, Callable[[str], bool]]] = {
    "bisect_names": _only(_PATHS),
    "bisect_start": _only(_BRANCH),
    "bisect_terms": _only(_TERMS),
    "merge_autostash": _only(_OBJECT),
    "merge_rr": _are_conflicts,
}
"""By name of a file directly in a git directory: whether a text is one that git would write there."""


def is_free_option(setting: Setting) -> bool:
    """Whether a call may write this option to `sequencer/opts`, a file with the syntax of git's configuration."""
    if setting.section != "options" or setting.subsection is not None:
        return False
    if setting.name == "strategy":
        return _STRATEGY.fullmatch(setting.value) is not None
    if setting.name == "strategy-option":
        return _STRATEGY_OPTION.fullmatch(setting.value) is not None
    if setting.name == "gpg-sign":
        return _KEY.fullmatch(setting.value) is not None
    return setting.name in _OPTIONS
