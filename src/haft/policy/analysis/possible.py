"""The classes of danger that a command may fall into although its words do not say so, for rules that reject a class.

Two things hide a danger from whoever reads a line: a command that is put together when it runs (`$x`, `eval`, names
that `xargs` hands on), and text that another program takes for a command (`watch 'rm -r x'`). A program that is merely
not known, like `make` or `./x.sh`, hides none: what it does on its own account is not in the line.

This errs on the side of naming, and is only asked of commands that are not known to be harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from haft.policy.analysis.dangers import DELETES_IN_CODE, DELETING, DangerFinder, deletes_trees
from haft.policy.analysis.program import Argument
from haft.policy.analysis.verdict import DANGERS, Danger
from haft.policy.analysis.wrapping import SHELLS, behind, is_interpreter, starts_commands

EVERY: Final[frozenset[Danger]] = frozenset(DANGERS)
_MOST_WRAPPERS: Final = 6
_MOST_STARTED: Final = 4

_READS_LINES: Final = frozenset((
    "watch", "parallel", "su", "runuser", "script", "flock", "ssh", "tmux", "screen", "trap", "mapfile", "readarray",
    "compgen", "complete", "bind", "sg",
))  # fmt: skip
"""Programs that take a word for a line of commands."""
_EVALUATES_NAMES: Final = frozenset((
    "test", "[", "[[", "printf", "read", "unset", "declare", "typeset", "local", "export", "readonly", "mapfile",
    "readarray", "getopts", "wait",
))  # fmt: skip
"""Commands of the shell that evaluate the names of variables that they are given, and commands in them."""
_RENAMES: Final = frozenset(("eval", "let", "alias", "hash", "coproc"))
"""Commands of the shell after which, or by which, something runs that stands nowhere as a command."""
_EDITORS: Final = frozenset((
    "awk", "gawk", "mawk", "nawk", "sed", "gsed", "vi", "vim", "nvim", "ex", "ed", "emacs", "gdb",
))  # fmt: skip
"""Programs with a language of their own in which others can be started."""
_COMMAND_IN_CODE: Final = re.compile(r"\brm\b[^;|&]*?[\s'\",]-(?:[A-Za-z]*[rR]|-recursive)")
_SUBSTITUTION: Final = re.compile(r"\$\(|`|\$\{")
_RUNS_COMMANDS: Final = re.compile(r"\[|@[A-Za-z]|\$\{!|\$\(\(|\$\{\w+:(?![-+=?])", re.ASCII)
_STARTS: Final = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
_OPTIONS: Final = tuple(map(Argument, ("-r", "-i", "-delete", "--delete", "clean", "-f", "u+s", "stop", "-9", "-1")))
"""Words that make known programs dangerous: with them it is tried what an unknown word may do."""
_TARGETS: Final = ("/dev/sda", "/etc/x", "/x")


def names_commands(words: Iterable[str]) -> bool:
    """Whether a word that stands there as it is holds a substitution, for whoever evaluates it as a name."""
    return any(map(_SUBSTITUTION.search, words))


def evaluates(expansion: str) -> bool:
    """Whether an expansion that is not known to be harmless may run a command: a subscript, arithmetic, `${x@P}`."""
    return _RUNS_COMMANDS.search(expansion) is not None


@dataclass(frozen=True, slots=True)
class PossibleFinder:
    """Names them, on the ground of a `DangerFinder`."""

    finder: DangerFinder

    def found(
        self, arguments: list[Argument], directory: str | None, *, fed: bool | str, depth: int = 0
    ) -> frozenset[Danger]:
        """Of a command: its program, then what it is given."""
        named: set[Danger] = set()
        is_handed = False
        for _ in range(_MOST_WRAPPERS):
            program, rest = arguments[0], arguments[1:]
            name = program.text.rpartition("/")[2]
            if not program.literal or (is_handed and ("{" in name or name == ":::")):
                return EVERY
            given = [*rest, _ANYTHING] if is_handed else rest
            named |= self._of(name, given, directory, fed, depth)
            if named >= EVERY:
                return EVERY
            following = behind(name, rest)
            if not following:
                is_open = name == "parallel" or (is_handed and starts_commands(name))
                return EVERY if is_open else frozenset(named)
            is_handed = is_handed or name in ("xargs", "parallel")
            arguments = following
        return EVERY

    def _of(
        self, name: str, rest: list[Argument], directory: str | None, fed: bool | str, depth: int
    ) -> frozenset[Danger] | set[Danger]:
        literal = [each.text for each in rest if each.literal]
        if name in _RENAMES or (name in ("source", ".") and fed is not False):
            return EVERY
        if name in _EVALUATES_NAMES and names_commands(literal):
            return EVERY
        named: set[Danger] = set()
        for line in _lines(name, rest):
            if line is None:
                return EVERY
            inner = self.finder.inner(line, self.finder.depth + 1)
            named |= {*inner.named, *inner.possible}
        if is_interpreter(name) or name in _EDITORS:
            named |= self._of_code(name, rest, fed)
        else:
            named |= self._tried(name, rest, directory)
        for started in _started(name, rest):
            if depth >= _MOST_STARTED:
                return EVERY
            named |= {*self.finder.found(started, directory, is_fed=False).named}
            named |= self.found(started, directory, fed=False, depth=depth + 1)
            if any(each.text.rpartition("/")[2] in DELETING for each in started):
                named.add("recursive-delete")
        # Behind a wrapper that is not known, or options that are read otherwise.
        removed = (at for at, each in enumerate(rest) if each.text.rpartition("/")[2] == "rm")
        if any(deletes_trees("rm", [each.text for each in rest[at + 1 :]]) for at in removed):
            named.add("recursive-delete")
        return named

    def _of_code(self, name: str, rest: list[Argument], fed: bool | str) -> frozenset[Danger] | set[Danger]:
        operand = next((at for at, each in enumerate(rest) if each.literal and each.text[:1] not in ("-", "+")), None)
        if is_interpreter(name) and any(map(_may_be_anything, rest[:operand])):
            return EVERY
        named: set[Danger] = set()
        if isinstance(fed, str) and name in SHELLS:
            inner = self.finder.inner(fed, self.finder.depth + 1)
            named |= {*inner.named, *inner.possible}
        code = [each.text for each in rest] + ([fed] if isinstance(fed, str) else [])
        if any(_COMMAND_IN_CODE.search(each) or DELETES_IN_CODE.search(each) for each in code):
            named.add("recursive-delete")
        return named

    def _tried(self, name: str, rest: list[Argument], directory: str | None) -> set[Danger]:
        """What unknown words may do to a program that is known to be dangerous."""
        unknown = [at for at, each in enumerate(rest) if _may_be_anything(each)]
        if not unknown:
            return set()
        end = next((at for at, each in enumerate(rest) if each.literal and each.text == "--"), len(rest))
        options = _OPTIONS if unknown[0] < end else ()
        home = self.finder.places.ground.home
        named: set[Danger] = set()
        for target in (*_TARGETS, f"{home}/.x"):
            words = [*options, *rest, Argument(f"of={target}"), Argument(target)]
            named |= {*self.finder.of_program(name, words, directory)}
        return named


_ANYTHING: Final = Argument("", literal=False, may_be_option=True, splits=True)
"""For what is handed on."""


def _may_be_anything(argument: Argument) -> bool:
    is_open = not argument.literal and argument.paths is None and not argument.is_number
    return is_open and (argument.may_be_option or argument.splits)


def _lines(name: str, rest: list[Argument]) -> Iterator[str | None]:
    """The words that a program takes for lines of commands; None for one that is not known."""
    if name in _READS_LINES:
        for each in rest:
            is_line = any(map(str.isspace, each.text)) or (name == "trap" and not each.text.startswith("-"))
            if not each.literal or is_line:
                yield each.text if each.literal else None
    options = {"env": ("-S", "--split-string"), "git": ("-c",)}.get(name, ())
    for at, each in enumerate(rest):
        option = next((option for option in options if each.text.startswith(option)), None)
        if option is None:
            continue
        text = each.text.removeprefix(option).removeprefix("=")
        value = Argument(text, each.literal) if text else rest[at + 1] if at + 1 < len(rest) else None
        if value is not None:
            text = value.text.partition("=")[2].removeprefix("!") if name == "git" else value.text
            yield text if value.literal else None


def _started(name: str, rest: list[Argument]) -> Iterator[list[Argument]]:
    """The commands that a finder starts."""
    if name not in ("find", "fd", "fdfind"):
        return
    for at, each in enumerate(rest):
        if each.text in _STARTS and at + 1 < len(rest):
            end = next((stop for stop in range(at + 1, len(rest)) if rest[stop].text in (";", "+")), len(rest))
            words = rest[at + 1 : end]
            if words:
                first = Argument(words[0].text, literal=words[0].literal and "{" not in words[0].text)
                yield [first, *words[1:]]
