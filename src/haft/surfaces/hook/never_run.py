"""The commands of an agent's line once more, in a form that never runs: `false && { touch a; rm -f b; }`.

The rewritten line begins with it. Agents check their own rules against each command of a line that they are about to
run; without it, they would see only haft's program. `hook_calls` uses this module. It decides nothing.

Nothing in it may run, whatever the original line contains. So no word is copied unless it is one closed word for every
shell (`_CLOSED`); all others are quoted here, and so are the shell's reserved words. A shell that runs `false && { … }`
skips the whole group, also if an alias of the agent's shell brings operators into it. Codex reads a line only if it has
plain commands, so for Codex the group is left out, and each word is quoted: there, an alias that a login file defines
and that contains `;` or `||` would run its rest, in Codex's own sandbox.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from haft.lazy import regex
from haft.service import SimpleCommand, WrittenWord, split_commands

MOST_COMMANDS: Final = 100
MOST_CHARACTERS: Final = 16_384
UNREAD: Final = "not-understood-by-haft-"
"""How the command begins that stands for what haft could not split. Its name is different for each line, so no rule of
an agent and no answer "always" covers it, except those for all commands."""
_BARE: Final = r"[A-Za-z0-9_@%+:,./=~*?^-]|\$[A-Za-z_][A-Za-z0-9_]*+|\$\{[A-Za-z_][A-Za-z0-9_]*\}"
_CLOSED: Final = regex(
    rf"(?:{_BARE}|'[^'\0]*'"
    r'|"(?:[^"\\`$!\0]|\$[A-Za-z_][A-Za-z0-9_]*+(?!\[)|\$\{[A-Za-z_][A-Za-z0-9_]*\})*")+'
)
"""Text that is one whole word for bash, zsh and dash, and runs nothing while it is read: no escapes, no substitutions,
no brackets."""
_ASSIGNMENT: Final = regex(r"([A-Za-z_][A-Za-z0-9_]*\+?=)(.*)", 16)  # re.DOTALL
_OPERATOR: Final = regex(r"[0-9]{0,3}(?:>|>>|>\||<|<>|>&|<&|&>|&>>)")
_PLAIN_PROGRAM: Final = regex(r"[A-Za-z0-9_@%+:,./-]+")
_DECLARES: Final = frozenset(("declare", "export", "local", "readonly", "typeset", "unset", "unsetenv"))
"""Programs after which Codex does not read the line."""
_RESERVED: Final = frozenset((
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "function",
    "time", "coproc", "select", "repeat", "foreach", "end", "nocorrect", "always",
))  # fmt: skip
"""The reserved words of bash and zsh that `_CLOSED` would let through."""


def never_run(command: str, *, is_plain: bool) -> str:
    """The commands of a line, in a form that never runs; empty if there is nothing to show. `is_plain`: in the form
    that Codex reads."""
    found = split_commands(command)
    forms = (_plain(each) if is_plain else _whole(each) for each in found.commands)
    shown, is_whole = _bounded(dict.fromkeys(form for form in forms if form))
    if is_plain:
        return " && ".join(("false", *shown)) if shown else ""
    if not (found.is_complete and is_whole):
        shown.append(UNREAD + hashlib.sha256(command.encode("utf-8", "surrogatepass")).hexdigest()[:16])
    return f"false && {{ {'; '.join(shown)}; }}"


def _bounded(forms: Iterable[str]) -> tuple[list[str], bool]:
    """As many of the commands as the line can hold, and whether these are all."""
    shown: list[str] = []
    length = 0
    for form in forms:
        length += len(form)
        if len(shown) == MOST_COMMANDS or length > MOST_CHARACTERS:
            return shown, False
        shown.append(form)
    return shown, True


def _whole(command: SimpleCommand) -> str:
    """A command as it was written, with its assignments and redirections, as far as this is safe."""
    program, *rest = _untimed(command.words)
    name = _word(program)
    words = [*map(_assignment, command.assignments), f"'{name}'" if name in _RESERVED else name]
    words += map(_word, rest)
    for each in command.redirections:
        if _OPERATOR.fullmatch(each.operator):
            words.append(f"{each.operator}{'' if '&' in each.operator else ' '}{_word(each.target)}")
    return " ".join(word for word in words if word)


def _plain(command: SimpleCommand) -> str:
    """The program and the arguments, all quoted by haft; empty if Codex would not read the program."""
    program, *rest = _untimed(command.words)
    name = program.literal
    if name is None or name in _RESERVED | _DECLARES or not _PLAIN_PROGRAM.fullmatch(name):
        return ""
    return " ".join([name, *(shlex.quote(each.raw if each.literal is None else each.literal) for each in rest)])


def _untimed(words: Sequence[WrittenWord]) -> Sequence[WrittenWord]:
    """The words without `time`, after which the shell would read the next word as a keyword."""
    while len(words) > 1 and words[0].raw in ("time", "-p"):
        words = words[1:]
    return words


def _word(word: WrittenWord) -> str:
    if _CLOSED.fullmatch(word.raw):
        return word.raw
    assignment = _ASSIGNMENT.fullmatch(word.raw) if word.literal is None else None
    if assignment is not None:
        return _assignment(word.raw)
    return shlex.quote(word.raw if word.literal is None else word.literal)


def _assignment(raw: str) -> str:
    """An assignment whose value is closed or quoted; empty for one with a subscript."""
    found = _ASSIGNMENT.fullmatch(raw)
    if found is None:
        return ""
    value = found[2]
    return found[1] + (value if _CLOSED.fullmatch(value) else shlex.quote(value) if value else "")
