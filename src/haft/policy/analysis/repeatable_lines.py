"""Command lines whose output follows from their words and from the files that they name: only for such lines may an
earlier answer be given again.

This is a small language on its own, much smaller than bash: plain words and quoted texts without expansions, commands
joined by `|`, `&&` and `;`, and a few programs, each with the options that change nothing but the form of the output.
What is not listed is not repeatable. So times, processes, random values, the machine and the disk never come in.
Whether the files lie in the workspace, and which files a directory stands for, is up to `line_footprint`.
"""

from __future__ import annotations

import functools
from typing import Final

from haft.lazy import regex
from haft.values import dataclass

_TOKEN: Final = regex(
    r"""[ \t]*(?:(?P<joint>&&|[|;])(?![|&;])|(?P<word>(?:[A-Za-z0-9_./,:=+@%^-]|'[^'\n]*'|"[^"$`\\!\n]*")+))"""
)
_QUOTED: Final = regex(r"""'([^']*)'|"([^"]*)\"""")
_MACHINE: Final = ("/dev", "/proc", "/sys")
_SUMS: Final = "b t z"

_PROGRAMS: Final[dict[str, tuple[str, str]]] = {
    "basename": ("a z", "s"),
    "cat": ("A b e E n s t T u v", ""),
    "cksum": ("", ""),
    "cmp": ("b l s", "n"),
    "comm": ("1 2 3 z", ""),
    "cut": ("n s z", "b c d f"),
    "diff": ("a b B d i q s w", ""),
    "dirname": ("z", ""),
    "echo": ("e E n", ""),
    "expand": ("i", "t"),
    "fold": ("b s", "w"),
    "grep": ("c E F G h H i l L n o q s v w x z", "A B C e m"),
    "head": ("q v z", "c n"),
    "ls": ("1 a A p", ""),
    "md5sum": (_SUMS, ""),
    "nl": ("p", "b d f h i l n s v w"),
    "paste": ("s z", "d"),
    "printf": ("", ""),
    "rev": ("", ""),
    "seq": ("w", "f s"),
    "sha1sum": (_SUMS, ""),
    "sha256sum": (_SUMS, ""),
    "sha512sum": (_SUMS, ""),
    "sort": ("b d f g h i M n r s u V z", "k t"),
    "tac": ("b r", "s"),
    "tail": ("q v z", "c n"),
    "tr": ("c C d s t", ""),
    "true": ("", ""),
    "uniq": ("c d D i u z", "f s w"),
    "wc": ("c l L m w", ""),
}
"""The programs, each with its short options without a value, and those with a value. No long options."""
_NUMBERED: Final = frozenset(("head", "tail", "grep", "fold"))
"""Programs that know options such as `-5`."""


@dataclass(frozen=True, slots=True)
class RepeatableLine:
    """What a repeatable line names."""

    programs: tuple[str, ...]
    operands: tuple[str, ...]
    """All words that may be paths."""


@functools.lru_cache(maxsize=256)
def repeatable_line(line: str) -> RepeatableLine | None:
    """What a line names, if it is repeatable; otherwise None."""
    commands = _commands(line)
    if commands is None:
        return None
    operands: dict[str, None] = {}
    for program, *words in commands:
        if program not in _PROGRAMS:
            return None
        found = _operands(program, words)
        if found is None or any(f"{each}/".startswith(tuple(f"{top}/" for top in _MACHINE)) for each in found):
            return None
        operands.update(dict.fromkeys(found))
    return RepeatableLine(tuple(dict.fromkeys(command[0] for command in commands)), tuple(operands))


def _commands(line: str) -> list[list[str]] | None:
    """The commands of a line, each with its words; None if the line has anything else."""
    commands: list[list[str]] = [[]]
    at, line = 0, line.rstrip(" \t\n")
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:
            return None
        at = found.end()
        word = found["word"]
        if word is None:
            commands.append([])
        elif not commands[-1] and not word.isalnum():
            return None  # The name of a program is written without quotes, and is no assignment.
        else:
            commands[-1].append(_QUOTED.sub(lambda part: part[1] or part[2] or "", word))
    return commands if all(commands) else None


def _operands(program: str, words: list[str]) -> list[str] | None:
    """The operands of a command, and the values of its options; None if it has an option that is not listed."""
    flags, valued = (each.split() for each in _PROGRAMS[program])
    if program == "printf" and any("(" in word for word in words):
        return None  # `%(…)T` prints the time.
    found: list[str] = []
    left = words[::-1]
    while left:
        word = left.pop()
        if not word.startswith("-") or word == "-":
            found.append(word)
        elif word[1:].isdigit() and program in _NUMBERED:
            continue
        else:
            letters = word[1:]
            while letters and letters[0] in flags:
                letters = letters[1:]
            if not letters:
                continue
            if letters[0] not in valued:
                return None
            value = letters[1:] or (left.pop() if left else "")
            found.append(value)
    return found
