"""Rules that a prompt may offer to remember: a rule for exactly the call that the person sees, if the words of the call
tell what it will do each time.

For an interpreter, a wrapper or a download program, the same words may do something else next time: a script can be
rewritten between two runs. So haft offers a rule for a command only if every program in it is known to do what its
words say. People can still write a rule for any other command themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.contracts import RuleOffer, ToolSpec
from haft.policy.analysis.command.wrappers import is_interpreter, starts_commands
from haft.policy.analysis.verdict import Part
from haft.policy.plain_words import SCRIPT_NAME, has_plain_options, is_plain_word
from haft.policy.query import PolicyQuery

_CHECKERS: Final = frozenset(
    {
        "tsc", "eslint", "prettier", "jest", "vitest", "mocha", "pytest", "ruff", "black", "isort", "mypy", "pyright",
        "flake8", "pylint", "gofmt", "rustfmt", "clang-format", "shellcheck", "shfmt", "stylelint",
    }
)  # fmt: skip
"""Programs that test, check or format the project, with any arguments."""
_PLAIN: Final = frozenset(
    {
        "touch", "mkdir", "rmdir", "cp", "mv", "rm", "ln", "chmod", "truncate", "tee", "install", "unlink",
        "make", "ninja", "cmake",
        "gzip", "gunzip", "zip", "unzip", "patch", "dos2unix", "unix2dos", "echo", "printf", "cat", "sort",
        *_CHECKERS,
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
_DATA_ONLY: Final = frozenset({"black", "clang-format", "gofmt", "ruff", "rustfmt", "shellcheck", "shfmt"})
"""Programs that only treat their arguments as data: no option starts another program or loads code, so a rule may allow
any further words after the program."""
_DATA_ONLY_GIT: Final = frozenset({"add", "commit"})
_SCRIPTED: Final = frozenset({"npm", "pnpm", "yarn"})
"""Programs whose `run NAME` runs a script of the project."""
_QUIET_OPTIONS: Final = frozenset(
    {"-v", "-q", "--verbose", "--quiet", "--release", "--all", "-a", "-A", "-m", "-b", "-u"}
)
"""The only options with which haft offers a rule for a subcommand of `_BY_SUBCOMMAND`: they do not make the program run
anything else."""


def allowable(query: PolicyQuery, unsafe: Sequence[Part] | None) -> tuple[RuleOffer, ...]:
    """The rules that a person may choose to remember when they answer this prompt. `unsafe` are the parts of the
    command line that are not known to only read; None if the call has no command line."""
    spec = query.spec
    if query.cwd != "." or query.env:
        return ()
    if unsafe is not None and not all(map(_says_what_it_does, unsafe)):
        return ()
    aside = spec.meta.get("timeoutArgument")
    exactly = {name: value for name, value in query.arguments.items() if name != aside}
    if unsafe is not None and set(exactly) - {*spec.commands, "cwd"}:
        return ()  # Other arguments set variables, standard input and the like, and so change what the words do.
    rule: dict[str, Any] = {"tool": spec.name, "action": "allow", "exactly": exactly}
    return (RuleOffer(f"exactly this call of {spec.name}", rule),)


def with_variables(offered: RuleOffer, names: Sequence[str]) -> RuleOffer:
    """The same rule, with a grant for the environment variables `names`, so that later calls get them, too."""
    if not names:
        return offered
    return RuleOffer(f"{offered.label}, with {', '.join(names)}", {**offered.rule, "grant": {"env": list(names)}})


def host_offers(spec: ToolSpec, arguments: Mapping[str, Any], host: str, *, is_bare: bool) -> tuple[RuleOffer, ...]:
    """The rules that a person may choose to remember when they let a call connect to `host`, which is a grant such as
    `registry.example:443`. These rules approve no call: they add the grant to later calls that are approved anyway. The
    first rule is for exactly this call, if a rule can name it: the call must set neither a directory nor variables
    (`is_bare`)."""
    aside = spec.meta.get("timeoutArgument")
    exactly = {name: value for name, value in arguments.items() if name != aside}
    rule: dict[str, Any] = {"tool": spec.name, "action": "ask", "grant": {"network": [host]}}
    one = RuleOffer(f"connections of exactly this call of {spec.name} to {host}", {**rule, "exactly": exactly})
    every = RuleOffer(f"connections of all approved calls of {spec.name} to {host}", rule)
    return (one, every) if is_bare else (every,)


def _says_what_it_does(part: Part) -> bool:
    if part.dangers or not part.literal or part.kind == "syntax" or not part.text.isprintable():
        return False
    if part.kind == "redirection":
        return True
    words = part.words
    if part.program is None or not words or words[0] != part.program:  # It begins with an assignment.
        return False
    if part.program in _PLAIN:
        return True
    if len(words) < 2 or words[1] not in _BY_SUBCOMMAND.get(part.program, frozenset()):
        return False
    options = words[2 : words.index("--") if "--" in words else None]
    return all(not word.startswith("-") or word in _QUIET_OPTIONS for word in options)


def may_be_suggested(part: Part) -> bool:
    """Whether haft may suggest a rule for exactly this command or redirection, after a person approved it repeatedly.

    A part qualifies only if its program is listed in this module, its words name plain files of the workspace, and it
    has no danger. Interpreters, wrappers and download programs are not listed.
    """
    if part.possible or not (_says_what_it_does(part) or _runs_script(part)):
        return False
    return all(is_plain_word(word) for word in part.words[1:]) and (
        part.kind == "redirection" or has_plain_options(part.words)
    )


def least_words(part: Part) -> int | None:
    """The smallest number of words of the command that a suggested rule must name before a `*`, so that the rule stays
    narrow. None if the rule must name all words."""
    words = part.words
    if part.kind != "command" or not words:
        return None
    if words[0] in _DATA_ONLY:
        return 1
    return 2 if words[0] == "git" and len(words) > 1 and words[1] in _DATA_ONLY_GIT else None


def _runs_script(part: Part) -> bool:
    words = part.words
    if part.dangers or not part.literal or part.kind != "command" or not part.text.isprintable():
        return False
    if part.program not in _SCRIPTED or words[0] != part.program or len(words) < 3 or words[1] != "run":
        return False
    # Some of these programs run an installed program if there is no script of that name.
    if not SCRIPT_NAME.fullmatch(words[2]) or any(word.startswith("-") for word in words[3:4] if word != "--"):
        return False
    return not is_interpreter(words[2]) and not starts_commands(words[2])
