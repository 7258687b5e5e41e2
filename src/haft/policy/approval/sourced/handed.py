"""How programs are handed code: as a file, as text, by the name of a module, or by a variable of the environment."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from haft.policy.analysis.command.wrapping import is_interpreter, starts_commands
from haft.policy.approval.sourced import javascript, python
from haft.policy.approval.sourced.reference import Language, Said, Script

Spoken = Language | Literal["other"]
_NEVER: Final = re.compile(r"(?!)")


class Form(NamedTuple):
    """The options of an interpreter that matter here."""

    with_value: re.Pattern[str]
    """Those whose value is the next word."""
    text: re.Pattern[str] = _NEVER
    """Of these, the value is code,"""
    file: re.Pattern[str] = _NEVER
    """a file of code,"""
    module: re.Pattern[str] = _NEVER
    """or a module."""
    text_follows: re.Pattern[str] = _NEVER
    """With these, the first operand is code;"""
    input_follows: re.Pattern[str] = _NEVER
    """with these, the input is."""


FORMS: Final[dict[Spoken, Form]] = {
    "shell": Form(
        re.compile(r"[-+]\w*[oO]|--rcfile|--init-file"),
        file=re.compile(r"--rcfile|--init-file"),
        text_follows=re.compile(r"-\w*c\w*"),
        input_follows=re.compile(r"-\w*s\w*"),
    ),
    "python": Form(re.compile(r"-\w*[cmWX]"), text=re.compile(r"-\w*c"), module=re.compile(r"-\w*m")),
    "javascript": Form(
        re.compile(r"-r|--require|--import|--loader|--experimental-loader|-p?e|-p|--eval|--print"),
        text=re.compile(r"-p?e|-p|--eval|--print"),
        file=re.compile(r"-r|--require|--import|--loader|--experimental-loader"),
    ),
    "other": Form(re.compile(r"-\w*[eE]|-r"), text=re.compile(r"-\w*[eE]"), file=re.compile(r"-r")),
}
OPTION: Final = re.compile(r"[-+].")
TAKES_TEXT: Final = frozenset(("flock", "watch", "parallel"))
"""Start a program, or run a text."""
RUNS_TEXT: Final = frozenset(("eval", "trap", "alias", "find", "su", "runuser", "script", "sg"))
"""Run their operands, or the text behind `-c`."""
CODE_FILE: Final[dict[str, re.Pattern[str]]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), re.compile(r"-[fiE]|--(?:file|include|exec)(?:=|$)")),
    **dict.fromkeys(("sed", "gsed"), re.compile(r"-[nErsuz]*f|--file(?:=|$)")),
    **dict.fromkeys(("make", "gmake"), re.compile(r"-[a-zA-Z]*f|--(?:make)?file(?:=|$)")),
    "enable": re.compile(r"-f"),
    "java": re.compile(r"(?:-jar|-cp|-classpath|--class-path)$"),
    "jq": re.compile(r"-[a-zA-Z]*f|--from-file(?:=|$)"),
}
"""The options that name a file of code, for programs that otherwise take code as an argument."""
READ_FIRST: Final = frozenset(("BASH_ENV", "ENV"))
"""Name a file that a shell reads before all else."""
SEARCHED: Final = frozenset((
    "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "PYTHONPATH",
    "PYTHONHOME", "PYTHONSTARTUP", "NODE_PATH", "NODE_OPTIONS", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT", "AWKPATH",
    "MAKEFILES", "LUA_PATH", "CLASSPATH",
))  # fmt: skip
"""Say where programs look for code."""
LOADS: Final = re.compile(
    r"\b(?:exec\w*|eval|do|require\w*|load\w*|dofile|include\w*|source|system|spawn\w*|popen|use\s+lib)\b|`"
)
"""Words by which a text in another language may load or start something."""
_SPOKEN: Final[tuple[tuple[re.Pattern[str], Language], ...]] = (
    (re.compile(r"(?:ba|da|z|k|a)?sh"), "shell"),
    (re.compile(r"(?:python|pypy)[\d.]*"), "python"),
    (re.compile(r"node|nodejs|bun|deno|tsx|ts-node"), "javascript"),
)


def language_of(program: str) -> Spoken | None:
    """What a program runs that it is given; None where it is no interpreter."""
    for pattern, language in _SPOKEN:
        if pattern.fullmatch(program):
            return language
    return "other" if is_interpreter(program) or program in ("expect", "wish") else None


def is_known(program: str) -> bool:
    """Whether a program runs what it is given, in whatever way."""
    is_one = program in RUNS_TEXT or program in CODE_FILE or program in ("source", ".", "uv")
    return is_one or starts_commands(program) or language_of(program) is not None


def said_by(script: Script, language: Language) -> Said:
    """What a text loads that an interpreter other than a shell is handed."""
    if language == "python":
        return python.said_by(script)

    return javascript.said_by(script)
