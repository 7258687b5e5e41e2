"""One line for every option in the tables, with values that reveal a write, a started program or a read outside."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from haft.policy.analysis.program import Program
from haft.policy.analysis.programs import PROGRAMS

VALUES = {"word": ("new", "./traps/payload", "HEAD", "1"), "number": ("1",), "path": ("a.txt", "src")}
OPERANDS = {
    "paths": (("a.txt",), ("src",), ("a.txt", "b.txt"), ()),
    "words": (("HEAD",), ("a.txt", "new"), ()),
    "none": ((),),
    "pattern-paths": (("alpha", "a.txt"), ("alpha", "-r", "src")),
}


def lines() -> Iterator[str]:
    """The lines for all programs and subcommands, each with one command."""
    for name, program in PROGRAMS.items():
        yield from _of((name,), program)


def _of(words: tuple[str, ...], program: Program) -> Iterator[str]:
    for option in ("", *program.options.split()):
        for given in _given(option):
            for operands in OPERANDS[program.operands]:
                yield shlex.join((*words, *given, *operands))
    for name, inner in program.subcommands.items():
        yield from _of((*words, name), inner)


def _given(option: str) -> Iterator[tuple[str, ...]]:
    name, _, kind = option.replace("[", "").replace("]", "").partition("=")
    if not option:
        yield ()
    elif not kind:
        yield (name,)
    else:
        for value in VALUES.get(kind, ("new",)):
            yield (f"{name}={value}",) if name.startswith("--") else (f"{name}{value}",)
            if "[" not in option:
                yield (name, value)
