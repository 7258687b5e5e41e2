"""Words that a suggested rule may contain: plain names of files in the workspace, and options that take no value.

`allowable` says which programs may be suggested at all. haft suggests no rule with a word that this module does not
know to be harmless; a person can still write such a rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from haft.files import ENDINGS, NAMES, folded
from haft.lazy import regex

SCRIPT_NAME: Final = regex(r"[A-Za-z0-9][A-Za-z0-9:_-]*")
_OBEYED: Final = frozenset(
    {
        *(name.partition("/")[0] for name in NAMES),
        "build.gradle", "build.rs", "cargo.toml", "cmakelists.txt", "conftest.py", "dockerfile", "gemfile",
        "gnumakefile", "justfile", "makefile", "noxfile.py", "package.json", "pyproject.toml", "rakefile",
        "requirements.txt", "setup.cfg", "setup.py", "tox.ini",
    }
)  # fmt: skip
"""Files that control programs, such as settings that programs read on their own, and files that are used to build and
test the project."""
_OBEYED_ENDINGS: Final = (*ENDINGS, ".mk", ".pth")
_ASSIGNMENT: Final = regex(r"[A-Za-z_][\w.-]*[:+?!]*=")
_FLAG: Final = regex(r"-[A-Za-z0-9]{1,4}|--[A-Za-z-]+")
_RUNS_CODE: Final = frozenset(
    {
        "black", "clang-format", "cmake", "eslint", "flake8", "gofmt", "isort", "jest", "make", "mocha", "mypy",
        "ninja", "prettier", "pylint", "pyright", "pytest", "ruff", "rustfmt", "shellcheck", "shfmt", "stylelint",
        "tsc", "vitest",
    }
)  # fmt: skip
"""Programs that may run code of the project, because they read its configuration or accept another configuration as an
option."""
_HARMLESS: Final = frozenset(
    {
        "-B", "-j", "-k", "-l", "-n", "-q", "-s", "-v", "-vv", "-w", "-x", "--check", "--diff", "--exitfirst", "--fix",
        "--list-different", "--noEmit", "--quiet", "--verbose", "--write",
    }
)  # fmt: skip


def is_plain_word(word: str) -> bool:
    """Whether a word is harmless in a rule. A harmless word sets no variable. Neither the word nor a piece of it names
    a hidden file, a file outside of the workspace, or a file that controls programs. Links are not followed."""
    if _ASSIGNMENT.match(word) or word.startswith(("/", "~")):
        return False
    for name in re.split(r"[/=:,]", re.sub(r"^-[A-Za-z]", "", word)):
        plain = folded(name)
        if (name.startswith(".") and name != ".") or plain in _OBEYED or plain.endswith(_OBEYED_ENDINGS):
            return False
        if ".config." in plain:
            return False
    return "=/" not in word and "=~" not in word and not re.match(r"-[A-Za-z][/~]", word)


def has_plain_options(words: Sequence[str]) -> bool:
    """Whether no option of a command takes a value that could be code. A program that may run the project's code may
    have only options from a short list; other programs may have any option without an attached value."""
    program, *rest = words
    options = [word for word in rest if word.startswith("-") and word not in ("-", "--")]
    if program in _RUNS_CODE:
        return all(word in _HARMLESS or re.fullmatch(r"-j[0-9]{1,3}", word) for word in options)
    if program == "zip" and any("T" in word for word in options):
        return False
    return all(_FLAG.fullmatch(word) and "program" not in word and "command" not in word for word in options)
