"""How programs receive code: as a file, as text, by the name of a module, or by an environment variable."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from haft.policy.analysis.command.wrappers import is_interpreter, starts_commands
from haft.policy.approval.loaded_code import javascript, python
from haft.policy.approval.loaded_code.reference import Language, References, Script

CodeLanguage = Language | Literal["other"]
_NEVER: Final = re.compile(r"(?!)")


class InterpreterOptions(NamedTuple):
    """The options of an interpreter that give it code."""

    with_value: re.Pattern[str]
    """Options whose value is the next word."""
    text: re.Pattern[str] = _NEVER
    """Those options of `with_value` whose value is code."""
    file: re.Pattern[str] = _NEVER
    """Those options of `with_value` whose value is a file of code."""
    module: re.Pattern[str] = _NEVER
    """Those options of `with_value` whose value is the name of a module."""
    text_follows: re.Pattern[str] = _NEVER
    """Options with which the first operand is code."""
    input_follows: re.Pattern[str] = _NEVER
    """Options with which standard input is code."""


INTERPRETERS: Final[dict[CodeLanguage, InterpreterOptions]] = {
    "shell": InterpreterOptions(
        re.compile(r"[-+]\w*[oO]|--rcfile|--init-file"),
        file=re.compile(r"--rcfile|--init-file"),
        text_follows=re.compile(r"-\w*c\w*"),
        input_follows=re.compile(r"-\w*s\w*"),
    ),
    "python": InterpreterOptions(re.compile(r"-\w*[cmWX]"), text=re.compile(r"-\w*c"), module=re.compile(r"-\w*m")),
    "javascript": InterpreterOptions(
        re.compile(r"-r|--require|--import|--loader|--experimental-loader|-p?e|-p|--eval|--print"),
        text=re.compile(r"-p?e|-p|--eval|--print"),
        file=re.compile(r"-r|--require|--import|--loader|--experimental-loader"),
    ),
    "other": InterpreterOptions(re.compile(r"-\w*[eE]|-r"), text=re.compile(r"-\w*[eE]"), file=re.compile(r"-r")),
}
OPTION: Final = re.compile(r"[-+].")
TAKES_TEXT: Final = frozenset(("flock", "watch", "parallel"))
"""Programs that start the command in their arguments; if the command is a single word with spaces, they run it as shell
code."""
RUNS_TEXT: Final = frozenset(("eval", "trap", "alias", "find", "su", "runuser", "script", "sg"))
"""Programs that run their operands, or the text after `-c`."""
CODE_FILE: Final[dict[str, re.Pattern[str]]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), re.compile(r"-[fiE]|--(?:file|include|exec)(?:=|$)")),
    **dict.fromkeys(("sed", "gsed"), re.compile(r"-[nErsuz]*f|--file(?:=|$)")),
    **dict.fromkeys(("make", "gmake"), re.compile(r"-[a-zA-Z]*f|--(?:make)?file(?:=|$)")),
    "enable": re.compile(r"-f"),
    "java": re.compile(r"(?:-jar|-cp|-classpath|--class-path)$"),
    "jq": re.compile(r"-[a-zA-Z]*f|--from-file(?:=|$)"),
}
"""For programs that can also take code in other ways: the options whose value is a file of code."""
READ_FIRST: Final = frozenset(("BASH_ENV", "ENV"))
"""Variables that name a file which a shell runs before its script."""
SEARCHED: Final = frozenset((
    "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "PYTHONPATH",
    "PYTHONHOME", "PYTHONSTARTUP", "NODE_PATH", "NODE_OPTIONS", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT", "AWKPATH",
    "MAKEFILES", "LUA_PATH", "CLASSPATH",
))  # fmt: skip
"""Variables that say where programs search for code."""
LOADS: Final = re.compile(
    r"\b(?:exec\w*|eval|do|require\w*|load\w*|dofile|include\w*|source|system|spawn\w*|popen|use\s+lib)\b|`"
)
"""Words with which code in a language that haft does not parse may load or start something."""
_LANGUAGES: Final[tuple[tuple[re.Pattern[str], Language], ...]] = (
    (re.compile(r"(?:ba|da|z|k|a)?sh"), "shell"),
    (re.compile(r"(?:python|pypy)[\d.]*"), "python"),
    (re.compile(r"node|nodejs|bun|deno|tsx|ts-node"), "javascript"),
)


def language_of(program: str) -> CodeLanguage | None:
    """The language that a program runs; None if it is not an interpreter."""
    for pattern, language in _LANGUAGES:
        if pattern.fullmatch(program):
            return language
    return "other" if is_interpreter(program) or program in ("expect", "wish") else None


def is_known(program: str) -> bool:
    """Whether the arguments of a program may contain or name code that the program runs, or programs that it starts."""
    is_one = program in RUNS_TEXT or program in CODE_FILE or program in ("source", ".", "uv")
    return is_one or starts_commands(program) or language_of(program) is not None


def references_of(script: Script, language: Language) -> References:
    """The files that a Python or JavaScript text loads, if an interpreter runs the text."""
    if language == "python":
        return python.references_of(script)

    return javascript.references_of(script)
