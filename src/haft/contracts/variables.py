"""Names of environment variables: which variables a program reads, and which of them it does not get.

haft does not trust the source or the output of a program. So it looks in these texts only for names of variables that
are set in the host's own environment, and uses the names only to suggest a grant to a person.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Final

from haft.contracts.passed_variables import ALWAYS_PASSED, EVALUATED_VARIABLES, NETWORK_VARIABLES
from haft.lazy import regex

NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"

_OBEYED: Final = frozenset(("LD_AUDIT", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES"))
_OF_SHELLS: Final = frozenset(
    (
        "BASH", "COLORTERM", "COLUMNS", "CLICOLOR", "EDITOR", "EUID", "FORCE_COLOR", "GROUPS", "HISTFILE", "HOSTNAME",
        "HOSTTYPE", "IFS", "LINENO", "LINES", "MACHTYPE", "NO_COLOR", "OLDPWD", "OPTARG", "OPTIND", "OSTYPE", "PAGER",
        "PPID", "PWD", "RANDOM", "REPLY", "SECONDS", "SHLVL", "UID", "VISUAL", "_",
    )
)  # fmt: skip
"""Variables that shells set themselves, or that change only how output looks."""
_OF_HAFT: Final = regex(r"AGENT|AGENT_THREAD_ID|AGENT_TOOL_.*|AMP_THREAD_ID|TOOLBOX_ACTION")

MOST_NAMED: Final = 20
LONGEST_TEXT: Final = 256_000
MOST_LINES: Final = 400
LONGEST_LINE: Final = 2_000

_Q = "[\"']"
_READS: Final = regex(
    rf"environ(?:\.\w+)?\s*[\[(]\s*{_Q}({NAME}){_Q}"
    rf"|(?:(?i:getenv|lookupenv)|env::var(?:_os)?|env\.(?:get|has))\s*\(\s*{_Q}({NAME}){_Q}"
    rf"|\benv\??\.([A-Z_][A-Z0-9_]*)\b|\benv\s*\[\s*{_Q}({NAME}){_Q}"
    rf"|\bENV(?:\.(?:fetch|key\?|has_key\?))?\s*[\[(]\s*{_Q}({NAME}){_Q}"
    rf"|\$ENV\{{\s*{_Q}?({NAME})|\$_(?:ENV|SERVER)\[\s*{_Q}({NAME}){_Q}"
    rf"|\benvvar\s*=\s*{_Q}({NAME}){_Q}|\bprintenv\s+({NAME})"
)
"""The ways in which Python, JavaScript, Ruby, Perl, PHP, Go, Rust and Lua read a variable."""
_UNPACKED: Final = regex(r"\{([^{}]{1,2000})\}\s*=\s*(?:process|Bun|import\.meta)\.env\b")
_EXPANDED: Final = regex(rf"\$\{{?[#!]?({NAME})|\s-[vnz]\s+[\"']?\$?\{{?({NAME})")
_ASSIGNED: Final = regex(
    rf"(?:^|[;&|({{]|\b(?:export|local|readonly|then|do|else)\b)\s*({NAME})=(?![\"']?\$\{{?\1\b)"
    rf"|\bfor\s+({NAME})\s+in\b|\bread\s+(?:-\w+\s+)*({NAME})",
    re.MULTILINE,
)
_WORD: Final = regex(rf"(?<![\w./-]){NAME}(?![\w/-])")
_MISSED: Final = regex(
    r"\brequired?\b|\bneeds?\b|\bmissing\b|\bmust\b|\bplease\b|\bexport\b|\bset\b|\bunset\b|\bunbound\b|\bundefined\b"
    r"|\bempty\b|\bno\b|\bnot\b|n't\b|\bwithout\b|\bskip|\bKeyError\b|\bkey not found\b|\bvariables?\b",
    re.IGNORECASE,
)
"""Words in messages about a missing variable."""


def names_read(text: str) -> tuple[str, ...]:
    """The variables that a program reads, as far as their names are in its source text."""
    text = text[:LONGEST_TEXT]
    found = [name for match in _READS.finditer(text) for name in match.groups() if name]
    for match in _UNPACKED.finditer(text):
        found += [word for part in match[1].split(",") if re.fullmatch(NAME, word := re.split("[:=]", part)[0].strip())]
    own = {name for match in _ASSIGNED.finditer(text) for name in match.groups() if name}
    found += [name for match in _EXPANDED.finditer(text) for name in match.groups() if name and name not in own]
    return tuple(dict.fromkeys(found))


def names_reported_missing(words: str, known: Container[str]) -> tuple[str, ...]:
    """The names in `known` that a program's output reports as missing: on a line with words such as `required` or `not
    set`."""
    lines = (line[:LONGEST_LINE] for line in words.splitlines()[-MOST_LINES:])
    found = (name for line in lines if _MISSED.search(line) for name in _WORD.findall(line) if name in known)
    return tuple(dict.fromkeys(found))


def withheld(names: Iterable[str], host: Mapping[str, str], given: Container[str] = ()) -> tuple[str, ...]:
    """Those of `names` that are set in the environment `host`, and that a call gets only with a grant. The names in
    `given`, which the call gets already, are left out."""
    found = (name for name in names if name in host and name not in given and not _is_no_matter(name))
    return tuple(dict.fromkeys(found))[:MOST_NAMED]


def _is_no_matter(name: str) -> bool:
    return (
        name in ALWAYS_PASSED
        or name.startswith("LC_")
        or name.upper() in NETWORK_VARIABLES
        or name in _OF_SHELLS
        or why_not_granted(name) is not None
        or _OF_HAFT.fullmatch(name) is not None
    )


def why_not_granted(name: str) -> str | None:
    """Why a variable of this name cannot be granted; None if it can."""
    if not re.fullmatch(NAME, name):
        return f"{name[:80]!r} is not a valid name of a variable"
    if name == "PATH":
        return "PATH is built by haft; `path` in a grant adds directories to it"
    if name.startswith("HAFT_"):
        return f"{name} is a variable of haft itself"
    if name in _OBEYED or EVALUATED_VARIABLES.fullmatch(name):
        return f"{name} makes programs run other code than their own"
    return None
