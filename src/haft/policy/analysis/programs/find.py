"""`find`: its expression consists of tests, which all only read, and actions, of which only a few do no more than read.

Its words are read here in the same order as `find` reads them: options for links, start directories, the expression.
The classifier checks whether the start directories lie in the workspace.
"""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Argument, Invocation, Program
from haft.policy.analysis.programs.shared_checks import UNKNOWN, follows_links, leads_out, names_zone, word_set

_BARE: Final = word_set("""
    -a -and -o -or -not -true -false -empty -readable -writable -executable -nouser -nogroup -print -print0 -ls -prune
    -quit -daystart -depth -d -follow -mount -xdev -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race
    -help --help -version --version""")
_WITH_WORD: Final = word_set("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -size -perm
    -user -group -uid -gid -inum -links -fstype -context -amin -cmin -mmin -atime -ctime -mtime -used -maxdepth
    -mindepth -printf -newermt -newerat -newerct -newerBt""")
_DATED: Final = word_set("-newermt -newerat -newerct -newerBt")
_WITH_PATH: Final = word_set("-newer -anewer -cnewer -samefile")
_NEWER: Final = regex(r"-newer[aBcm][aBcm]")
_SIGNS: Final = frozenset(("(", ")", "!", ","))

_RUNS: Final = "runs a program on the files that it finds"
_WRITES: Final = "writes a file"
_HARMFUL: Final = {
    **dict.fromkeys(("-exec", "-execdir", "-ok", "-okdir"), _RUNS),
    **dict.fromkeys(("-fprint", "-fprint0", "-fprintf", "-fls"), _WRITES),
    "-delete": "deletes the files that it finds",
    "-files0-from": "starts at places that a list names",
}


def _check(invocation: Invocation) -> str | None:
    words = list(invocation.operands)
    at = 0
    while at < len(words) and words[at].text in ("-P", "-H", "-L", "-O0", "-O1", "-O2", "-O3"):
        at += 1
    while at < len(words) and _is_place(words[at]):
        at += 1
    while at < len(words):
        why, taken = _step(words, at)
        if why is not None:
            return why
        at += taken
    return follows_links("-L", "-follow")(invocation)


def _is_place(word: Argument) -> bool:
    """Whether a word may be a start directory, and so does not begin the expression. An unknown word may be a start
    directory."""
    if not word.literal and word.paths is None:
        return not word.may_be_option
    named = word.paths if word.paths is not None else (word.text,)
    return all(not name.startswith("-") and name not in _SIGNS for name in named)


def _step(words: list[Argument], at: int) -> tuple[str | None, int]:
    word = words[at]
    if not word.literal or word.paths is not None:
        return f"`{word.text}` could be an action of `find`", 1
    text = word.text
    if text in _BARE or text in _SIGNS:
        return None, 1
    if text in _HARMFUL:
        return f"`find {text}` {_HARMFUL[text]}", 1
    if text not in _WITH_WORD and text not in _WITH_PATH and not _NEWER.fullmatch(text):
        return f"haft does not know `find {text}` to be read-only", 1
    if at + 1 == len(words):
        return f"`find {text}` has no value", 1
    return _valued(text, words[at + 1]), 2


def _valued(name: str, value: Argument) -> str | None:
    """Check the value of one of the tests of `find`. For example, a pattern that bash expands to several names is
    refused, because it would shift all words after it. Returns the reason why the value is refused, or None."""
    if value.may_split and (value.paths is None or len(value.paths) > 1):
        return f"the shell may split `{value.text}` into several words"
    if not value.literal and value.paths is None and value.may_be_option:
        return UNKNOWN
    if name in _DATED and (not value.literal or names_zone(value.text)):
        return f"`{value.text}` may name a time zone file"
    if name in _WITH_WORD:
        return None
    return f"`{value.text}` may lie outside the workspace" if not value.literal or leads_out(value.text) else None


FIND: Final[dict[str, Program]] = {
    "find": Program(
        options=" ".join(
            (
                "-P -H -L -O0 -O1 -O2 -O3",
                *sorted(_BARE),
                *sorted(f"{name}=word" for name in _WITH_WORD),
                *sorted(f"{name}=path" for name in _WITH_PATH),
                *(f"-newer{one}{other}=path" for one in "aBcm" for other in "aBcm"),
            )
        ),
        harmful=_HARMFUL,
        check=_check,
        clusters=False,
        single_dash=True,
    ),
}
