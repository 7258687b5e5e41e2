"""Finds out whether text can contain a pattern of file names such as `/etc/*`. Bash would expand such a pattern, if it
is not quoted, anywhere on the disk."""

from __future__ import annotations

import re
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Argument

_SET_BY_BASH: Final = regex(
    r"_|(?:BASH|PROMPT|HIST|COMP_|PS[0-9]).*|DIRSTACK|FUNCNAME|REPLY|MAPFILE|OPTARG|OLDPWD", re.DOTALL
)
_NAME: Final = regex(r"\$\{#?([A-Za-z_][A-Za-z0-9_]*).*", re.DOTALL)
_PRINTERS: Final = frozenset((
    "arch", "basename", "dirname", "echo", "expr", "hostname", "id", "nproc", "printf", "seq", "uname", "uptime", "wc",
    "whoami",
))  # fmt: skip
"""Programs that print only numbers, names of the system, or their own arguments."""
_SUMS: Final = frozenset(("cksum", "md5sum", "sha1sum", "sha256sum", "sum", "factor"))
_FILTERS: Final = {
    "head": regex(r"(?:-[0-9]+|-[nc]\0?[0-9]+)?"),
    "tail": regex(r"(?:-[0-9]+|-[nc]\0?[+-]?[0-9]+)?"),
    "sort": regex(r"(?:-[rnufVh]+\0?)*"),
    "uniq": regex(r"(?:-[cud]+\0?)*"),
    "cut": regex(r"(?:-d\0?[^\0-]\0|-f\0?[0-9,-]+|-c\0?[0-9,-]+)+"),
    "tac": regex(""),
    "rev": regex(""),
    "cat": regex(""),
    "grep": regex(r"(?:-[viEowFP]+\0)*[^\0-][^\0]*"),
}
"""Programs that print parts of their input, each with an expression for the arguments, joined by NUL, with which it
does only that."""
_COUNT: Final = regex(r"(?:-[viEowFP]*c[viEowFP]*\0)(?:-[viEowFP]+\0)*[^\0-].*", re.DOTALL)
_GIT: Final = regex(
    r"rev-parse(?: (?:--short(?:=[0-9]+)?|--abbrev-ref|--verify|-q|[A-Za-z0-9_./~^@{}][A-Za-z0-9_./~^@{}-]*))+"
    r"|rev-list --count [A-Za-z0-9_./~^][A-Za-z0-9_./~^-]*|branch --show-current"
    r"|merge-base(?: [A-Za-z0-9_./~^][A-Za-z0-9_./~^-]*){2}|describe(?: --(?:tags|always|all|abbrev=[0-9]+))*"
)


def has_pattern(text: str) -> bool:
    """Whether bash may expand a text to file names, also after it resolved an escape in the text."""
    return any(sign in text for sign in "*?[\\")


def variable_name(expansion: str) -> str:
    """The name of the variable in `NAME` or `${NAME…}`."""
    return _NAME.sub(r"\1", expansion)


def is_set_by_bash(name: str) -> bool:
    """Whether bash itself sets a variable of this name, and may store text of the line in it."""
    return _SET_BY_BASH.fullmatch(name) is not None


def prints_no_pattern(stages: list[list[Argument]], directories: frozenset[str] | None) -> bool:
    """Whether a pipe, run in one of these directories, prints nothing that bash would expand to file names."""
    for program, *words in reversed(stages):
        if not program.literal or not all(map(_is_plain, words)):
            return False
        passes = _FILTERS.get(program.text)
        given = "\0".join(each.text for each in words)
        if passes is None or (program.text == "grep" and _COUNT.fullmatch(given)):
            return _first_prints_no_pattern(program.text, words, directories)
        if not passes.fullmatch(given) or not all(each.literal for each in words):
            return False
    return False


def _is_plain(word: Argument) -> bool:
    texts = (word.text,) if word.literal else word.paths
    return word.is_number or word.is_pattern_free or (texts is not None and not any(map(has_pattern, texts)))


def _first_prints_no_pattern(name: str, words: list[Argument], directories: frozenset[str] | None) -> bool:
    texts = [each.text for each in words]
    if name == "pwd":
        return directories is not None and not any(map(has_pattern, directories))
    if name == "git":
        return _GIT.fullmatch(" ".join(texts)) is not None
    if name == "wc":
        return not any(each.startswith("--files0") for each in texts)
    if name == "date":
        return not any(re.match(r"-\w*[fr]|--(?:file|ref)", each) for each in texts)
    if name in _SUMS:
        return not any(each.startswith("-") for each in texts)
    return name in _PRINTERS or name == "grep"
