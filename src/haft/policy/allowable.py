"""What could be allowed for good: exactly the call that a person sees, and only where its words say what it does.

A rule for an interpreter, a wrapper or a fetcher would allow whatever they are handed next time, even where the words
are the same: a script can be rewritten between two runs. So commands are offered only where every program in them is
known to do what its words say. For anything else people can write a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import Allowable
from haft.policy.analysis.verdict import Part
from haft.policy.question import Question

_PLAIN: Final = frozenset(
    {
        "touch", "mkdir", "rmdir", "cp", "mv", "rm", "ln", "chmod", "truncate", "tee", "install", "unlink",
        "make", "ninja", "cmake", "tsc", "eslint", "prettier", "jest", "vitest", "mocha", "pytest", "ruff", "black",
        "isort", "mypy", "pyright", "flake8", "pylint", "gofmt", "rustfmt", "clang-format", "shellcheck", "shfmt",
        "stylelint",
        "gzip", "gunzip", "zip", "unzip", "patch", "dos2unix", "unix2dos", "echo", "printf", "cat", "sort",
    }
)  # fmt: skip
"""Programs that do what their words say, or run the project's own build and tests."""

_BY_SUBCOMMAND: Final[Mapping[str, frozenset[str]]] = {
    "npm": frozenset({"test", "t"}),
    "yarn": frozenset({"test"}),
    "pnpm": frozenset({"test"}),
    "cargo": frozenset({"test", "build", "check", "clippy", "fmt"}),
    "go": frozenset({"test", "build", "vet", "fmt"}),
    "git": frozenset({"add", "commit", "stash", "checkout", "switch", "restore", "branch", "tag", "rm", "mv"}),
}
_QUIET_OPTIONS: Final = frozenset(
    {"-v", "-q", "--verbose", "--quiet", "--release", "--all", "-a", "-A", "-m", "-b", "-u"}
)
"""Options of these that run nothing else; others are not offered."""


def allowable(question: Question, unsafe: Sequence[Part] | None) -> tuple[Allowable, ...]:
    """What an answer could allow. `unsafe` are the parts that were asked about, where there is a command."""
    spec = question.spec
    if question.cwd != "." or question.env:
        return ()
    if unsafe is not None and not all(map(_says_what_it_does, unsafe)):
        return ()
    aside = spec.meta.get("timeoutArgument")
    exactly = {name: value for name, value in question.arguments.items() if name != aside}
    if unsafe is not None and set(exactly) - {*spec.commands, "cwd"}:
        return ()  # Variables, standard input and the like: what they do is not in the words.
    rule: dict[str, Any] = {"tool": spec.name, "action": "allow", "exactly": exactly}
    return (Allowable(f"exactly this call of {spec.name}", rule),)


def _says_what_it_does(part: Part) -> bool:
    if part.dangers or not part.literal or part.kind == "syntax" or not part.text.isprintable():
        return False
    if part.kind == "redirection":
        return True
    words = part.words
    if part.program is None or not words or words[0] != part.program:  # Variables stand before it.
        return False
    if part.program in _PLAIN:
        return True
    if len(words) < 2 or words[1] not in _BY_SUBCOMMAND.get(part.program, frozenset()):
        return False
    options = words[2 : words.index("--") if "--" in words else None]
    return all(not word.startswith("-") or word in _QUIET_OPTIONS for word in options)
