"""`xargs` and `find -exec`: they start another program with file names as arguments. That program is classified with
these names. If the names are not known, it is classified with words that may be anything; then few programs are safe.
"""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.command import find_expression
from haft.policy.analysis.command.listings import Listing
from haft.policy.analysis.program import Argument
from haft.policy.analysis.tree.matching import NameTest
from haft.values import dataclass, replace

_NUMBER: Final = regex(r"[1-9][0-9]{0,4}")
_ATTACHED: Final = regex(r"-([nPL])([1-9][0-9]{0,4})")
_FLAGS: Final = regex(r"-[0rtx]+|--null|--no-run-if-empty|--verbose|--exit")
_PLACEHOLDER: Final = regex(r"\{\}|[%@]|F|FILE")
_LINES: Final = ("\\n", "\n")
_MAX_EXECS: Final = 4
_MAX_PLACEHOLDERS: Final = 2


@dataclass(frozen=True, slots=True)
class Xargs:
    """An `xargs` command, split into its options and the command that it starts."""

    command: list[Argument]
    """The command that `xargs` starts, without the names that `xargs` adds to it."""
    ends_in_nul: bool = False
    by_line: bool = False
    is_grouped: bool = False
    """Whether an option limits the number of names in each command."""
    placeholder: str | None = None
    """The text in `command` that `xargs` replaces by each name; None if it adds the names at the end."""
    file: Argument | None = None
    """The file that `xargs` reads the names from; None if the names come from a pipe."""

    def started_commands(self, listing: Listing | None) -> list[list[Argument]]:
        """The commands that `xargs` may start, with the names of `listing`; with unknown words if `listing` is None."""
        names = None if listing is None or self.file is not None else self._split_names(listing)
        if self.placeholder is not None:
            return [[_fill(each, self.placeholder, names) for each in self.command]]
        is_known = names is not None
        added = Argument("what xargs reads", False, names, not is_known, may_split=True, is_program_output=is_known)
        return [[*self.command, added], self.command]

    def _split_names(self, listing: Listing) -> tuple[str, ...] | None:
        if self.ends_in_nul:
            return listing.as_nul_ended()
        if self.placeholder is not None:
            return listing.as_trimmed_lines()
        return listing.as_lines() if self.by_line else listing.as_words()


def _fill(argument: Argument, sign: str, names: tuple[str, ...] | None) -> Argument:
    if sign not in argument.text:
        return argument
    is_whole = argument.text == sign
    if names is None or not argument.literal:
        may_be_option = argument.text.startswith(sign) or argument.text.startswith("-")
        return Argument(
            argument.text, literal=False, may_be_option=may_be_option, may_have_effects=argument.may_have_effects
        )
    filled = names if is_whole else tuple(argument.text.replace(sign, name) for name in names)
    return Argument(argument.text, literal=False, paths=filled, may_be_option=argument.text.startswith("-"))


def parse_xargs(arguments: list[Argument]) -> Xargs | None:
    """Split the words after `xargs`; None if they are not simple enough."""
    found = Xargs([])
    at = 0
    while at < len(arguments) and arguments[at].text.startswith("-"):
        text = arguments[at].text
        at += 1
        if not arguments[at - 1].literal:
            return None
        if _FLAGS.fullmatch(text):
            is_nul = text == "--null" or ("0" in text and not text.startswith("--"))
            found = replace(found, ends_in_nul=found.ends_in_nul or is_nul)
        elif text == "-I{}":
            found = replace(found, placeholder="{}")
        elif _ATTACHED.fullmatch(text):
            found = replace(found, is_grouped=found.is_grouped or text[1] != "P")
        else:
            valued = None if at == len(arguments) else _with_value(found, text, arguments[at])
            if valued is None:
                return None
            found = valued
            at += 1
    found = replace(found, command=arguments[at:] or [Argument("echo")])
    return found if _is_clear(found) else None


def _with_value(found: Xargs, option: str, value: Argument) -> Xargs | None:
    if option in ("-a", "--arg-file"):
        return replace(found, file=value)
    if not value.literal:
        return None
    if option == "-I" and _PLACEHOLDER.fullmatch(value.text):
        return replace(found, placeholder=value.text)
    if option == "-d" and value.text in _LINES:
        return replace(found, by_line=True)
    if option not in ("-n", "-P", "-L") or not _NUMBER.fullmatch(value.text):
        return None
    return replace(found, is_grouped=found.is_grouped or option != "-P")


def _is_clear(found: Xargs) -> bool:
    if found.placeholder is None:
        return not (found.by_line and found.ends_in_nul)
    # If several of these options are given, the last one cancels the others.
    if found.is_grouped or found.by_line or found.placeholder in found.command[0].text:
        return False
    signs = sum(each.text.count(found.placeholder) for each in found.command)
    return signs <= _MAX_PLACEHOLDERS and all(each.paths is None for each in found.command)


@dataclass(frozen=True, slots=True)
class FindExec:
    """A `find` with `-exec`, split into `find` itself and the commands that it starts."""

    rest: list[Argument]
    """The arguments of `find` without its `-exec` actions."""
    roots: list[str]
    depth: int | None
    commands: list[tuple[NameTest, list[Argument]]]
    """For each `-exec`: a test that accepts every file name which the command may get, and the command, with `{}` for
    the name."""


def parse_find_exec(arguments: list[Argument]) -> FindExec | None:
    """Split a `find` with `-exec`; None if it has no `-exec`, or its expression is not simple enough."""
    texts = find_expression.literal_texts(arguments)
    if texts is None or "-exec" not in texts or texts.count("-exec") > _MAX_EXECS:
        return None
    rest: list[Argument] = []
    started: list[tuple[NameTest, list[Argument]]] = []
    at = 0
    try:
        while at < len(texts):
            if texts[at] != "-exec":
                rest.append(arguments[at])
                at += 1
                continue
            end = next(
                (
                    each
                    for each in range(at, len(texts))
                    if texts[each] == ";" or texts[each - 1 : each + 1] == ["{}", "+"]
                ),
                0,
            )
            command = arguments[at + 1 : end]
            if len(command) < 2 or not _is_plain(command):
                return None
            _, expression = find_expression.split_roots([each.text for each in rest])
            started.append((find_expression.passed_names_test(expression), command))
            at = end + 1
            rest.append(Argument("-true"))
        roots, expression = find_expression.split_roots([each.text for each in rest])
        find_expression.printed_names_test(expression)
    except find_expression.NotSimple:
        return None
    return FindExec(rest, roots, find_expression.max_depth(expression), started)


def _is_plain(command: list[Argument]) -> bool:
    """Whether exactly one word of the command is `{}`, this word is not the program, and no other word contains
    `{}`."""
    is_alone = all(each.text == "{}" or "{}" not in each.text for each in command)
    return is_alone and sum(each.text == "{}" for each in command) == 1 and command[0].text != "{}"


def fill_placeholder(command: list[Argument], names: tuple[str, ...]) -> list[Argument]:
    """A command with names in place of `{}`."""
    several = Argument("{}", literal=False, paths=names, may_split=True, is_program_output=True)
    return [several if each.text == "{}" else each for each in command]
