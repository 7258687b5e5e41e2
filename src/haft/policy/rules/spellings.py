"""Finds other spellings of a command, so that a rule that rejects or asks about `rm` also matches `A=1 rm`, `/bin/rm`,
`sudo rm` and `sh -c 'rm x'`.

A wrong guess here can only cause a rejection or a prompt. These functions detect neither words that are composed when
the command runs, nor anything that a program does on its own; the sandbox limits both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from haft.policy.analysis.verdict import Part

WRAPPERS: Final = frozenset(
    """
    sudo doas su pkexec env nice ionice nohup timeout time xargs parallel command builtin exec setsid stdbuf chroot
    unshare nsenter watch strace ltrace busybox flock caffeinate script systemd-run npx bunx uvx
    """.split()  # noqa: SIM905  a list of words is read as one
)
"""Programs that start another program, which is named somewhere in their words."""
SHELLS: Final = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "eval", "su", "script"))
SCRIPTED: Final = SHELLS | {"watch", "ssh", "trap", "parallel"}
"""Programs that read one of their words as a command line."""
SUBCOMMANDED: Final = frozenset(
    ("git", "npm", "yarn", "pnpm", "cargo", "docker", "podman", "kubectl", "gh", "pip", "uv")
)
"""Programs whose own options may stand before the subcommand."""
VALUED: Final = frozenset(
    (
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--config-env",
        "--prefix",
        "-n",
        "--context",
        "-H",
        "--host",
    )
)
FINDERS: Final = ("find", "fd", "fdfind")
_EXECUTE: Final = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")


def spellings(part: Part) -> Iterator[tuple[str, ...]]:
    """Yield the words of a command in several forms: as written, without assignments, without the program's directory,
    without options before the subcommand, and only the command after `-exec` of a program such as `find`."""
    if not part.words or part.kind == "syntax":
        return
    yield part.words
    if part.kind == "command":
        words = bare_words(part)
        yield words
        if "/" in words[0]:
            yield (name_of(words[0]), *words[1:])
        if name_of(words[0]) in SUBCOMMANDED:
            yield (name_of(words[0]), *without_options(words[1:]))
        if name_of(words[0]) in FINDERS:
            yield from (words[at + 1 :] for at, word in enumerate(words[:-1]) if word in _EXECUTE)


def without_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words after a program, without the options before its subcommand."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in VALUED else 1
    return words[at:]


def bare_words(part: Part) -> tuple[str, ...]:
    """The program and its arguments, without the assignments before them."""
    return part.words[part.words.index(part.program) :] if part.program in part.words else part.words


def is_wrapper(part: Part) -> bool:
    """Whether the program of a part starts another command, which may begin at any word of the part."""
    return part.kind == "command" and bool(part.words) and name_of(bare_words(part)[0]) in WRAPPERS


def scripts(part: Part) -> Iterator[str]:
    """Yield the words of a part that a shell would run as a command line."""
    if part.kind == "command" and any(name_of(word) in SCRIPTED for word in part.words):
        yield from (word for word in part.words if any(sign.isspace() for sign in word))


def name_of(word: str) -> str:
    """The name of a program without its directory."""
    return word.rpartition("/")[2]
