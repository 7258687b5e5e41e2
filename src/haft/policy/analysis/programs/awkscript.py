"""Checks that an `awk` program only prints: a program is refused if any word in it could write a file, run a program or
read a file.

Two signs have two meanings. After `print` and outside of round brackets, `>` writes a file; anywhere else it compares.
A slash begins a regular expression or divides, depending on the word before it; if that word does not decide, the
program is refused.
"""

from __future__ import annotations

import re
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.programs.delimited import end_of_regex
from haft.policy.analysis.programs.shared_checks import word_set
from haft.values import dataclass, field

_TOKEN: Final = regex(
    r"""(?P<blank>[ \t]+|\\\n)|(?P<comment>\#[^\n]*)|(?P<newline>\n)|(?P<string>"(?:[^"\\\n]|\\[^\n])*")
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>\+\+|--|&&|\|\||[=!<>]=|[-+*%^]=|\*\*=?|>>|\|&|[-+*%^!~<>=?:,;(){}\[\]$|@&])""",
    re.VERBOSE,
)
_FORBIDDEN: Final = {
    "system": "runs a program",
    "getline": "reads from a file or a program",
    "ARGV": "changes which files are read",
    "ARGC": "changes which files are read",
    "ENVIRON": "reads the environment",
    "SYMTAB": "reaches every variable by its name",
    "FUNCTAB": "reaches every function by its name",
}
_ANYWHERE: Final = regex(r"\b(?:system|getline)\b")
_ENDLESS: Final = regex(r"\bwhile\s*\(\s*(?:[1-9][0-9.]*|\"[^\"]*\"|!0)\s*\)|\bfor\s*\(\s*;\s*;")
_WORDS_BEFORE_REGEX: Final = word_set("print printf return in else do case BEGIN END if while for switch delete exit")
_CONTROL: Final = frozenset(("if", "while", "for", "switch"))
_GOES_ON: Final = frozenset((",", "{", "&&", "||", "do", "else", "?", ":"))
_NOT_UNDERSTOOD: Final = "haft cannot parse the `awk` program"


@dataclass(slots=True)
class _State:
    """The state of the parser after the words so far."""

    before: str = "\n"
    """The last word; `0` stands for any number or string, `x` for any name, because only the kind of word matters."""
    open_brackets: list[str] = field(default_factory=list)
    """For each open round bracket, the word before it."""
    braces: int = 0
    in_print: bool = False
    was_control: bool = False
    """Whether the last word closed the condition of `if` or a similar statement."""


def why_not(program: str) -> str | None:
    """Why the `awk` program is not known to only print; None if it only prints."""
    if _ANYWHERE.search(program):
        return "the `awk` program can run a program or read another file"
    if _ENDLESS.search(program):
        return "the `awk` program may run endlessly"
    state = _State()
    at = 0
    while at < len(program):
        if program[at] == "/":
            after = _slash(program, at, state)
            if after is None:
                return _NOT_UNDERSTOOD
            at = after
            continue
        found = _TOKEN.match(program, at)
        if found is None:
            return _NOT_UNDERSTOOD
        why = _word(str(found.lastgroup), found.group(), state)
        if why is not None:
            return why
        at = found.end()
    return _NOT_UNDERSTOOD if state.braces or state.open_brackets else None


def _slash(program: str, at: int, state: _State) -> int | None:
    """The position after the division sign or regular expression that begins at `at`; None if it could be either."""
    before = state.before
    if before in ("x", "0", "]", ")") and not state.was_control:
        state.before = "/"
        return at + 2 if program[at + 1 : at + 2] == "=" else at + 1
    if state.was_control or before in ("++", "--", "$", "length"):
        return None
    state.before = "0"
    return end_of_regex(program, at + 1, "/")


def _word(kind: str, text: str, state: _State) -> str | None:
    if kind in ("blank", "comment"):
        return _NOT_UNDERSTOOD if kind == "comment" and "\\" in text else None
    if kind == "name":
        return _name(text, state)
    state.was_control = False
    if kind in ("string", "number"):
        state.before = "0"
        return None
    if kind == "newline":
        if state.before not in _GOES_ON and not state.open_brackets:
            state.in_print = False
            state.before = text
        return None
    return _sign(text, state)


def _name(text: str, state: _State) -> str | None:
    if text in _FORBIDDEN:
        return f"`{text}` in an `awk` program {_FORBIDDEN[text]}"
    if text in ("print", "printf"):
        state.in_print = True
    state.was_control = False
    state.before = text if text in _WORDS_BEFORE_REGEX or text == "length" else "x"
    return None


def _sign(text: str, state: _State) -> str | None:
    if text in ("|", "|&", "@", "&"):
        return "`|` in an `awk` program runs a program" if text.startswith("|") else _NOT_UNDERSTOOD
    if text == ">" and state.before in ("\n", ";", "{", "}"):
        return _NOT_UNDERSTOOD
    if text == ">>" or (text == ">" and state.in_print and not state.open_brackets):
        return "`>` after `print` in an `awk` program writes a file"
    if text == "(":
        state.open_brackets.append(state.before)
    elif text == ")":
        if not state.open_brackets:
            return _NOT_UNDERSTOOD
        state.was_control = state.open_brackets.pop() in _CONTROL
    elif text in ("{", "}"):
        state.braces += 1 if text == "{" else -1
        if state.braces < 0 or state.open_brackets:
            return _NOT_UNDERSTOOD
        state.in_print = False
    elif text == ";" and not state.open_brackets:
        state.in_print = False
    state.before = text
    return None
