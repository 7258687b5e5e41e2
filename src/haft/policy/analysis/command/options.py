"""Splits a command into options, their values and operands, by its program's entry in the table. Anything that the
entry does not list raises `Unlisted` with the reason. Paths are only collected here; the classifier checks where they
lead.
"""

from __future__ import annotations

import functools
from typing import Final, Literal

from haft.lazy import regex
from haft.policy.analysis.program import Argument, Invocation, Program
from haft.values import dataclass, field

ValueKind = Literal["word", "number", "path"]

_NUMBER: Final = regex(r"[+-]?[0-9]+(?:\.[0-9]+)?[A-Za-z]{0,3}")
_NUMBER_OPTION: Final = regex(r"-[0-9]+")
_ATTACHED: Final = regex(r"(--[A-Za-z][A-Za-z-]*)=")
_FORM: Final = regex(r"(--?[^\s=\[]+)(?:(\[)?=([a-z]+)\]?)?")


class Unlisted(Exception):
    """The command has something that its program's entry does not list as harmless; the exception's argument is the
    reason."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option in the entry of a program."""

    name: str
    value: ValueKind | None = None
    is_optional: bool = False


@dataclass(slots=True)
class SplitCommand:
    """A command, split into options and operands by its program's entry; also the paths of files that the program
    reads."""

    invocation: Invocation
    entry: Program
    paths: list[Argument]
    """The operands and option values that name files which the program reads."""
    starts_others: bool


@functools.lru_cache(maxsize=1024)
def option_table(text: str) -> dict[str, Option]:
    """The options that an entry lists in `text`, by name. The module `program` shows the form of this text."""
    found: dict[str, Option] = {}
    for each in text.split():
        form = _FORM.fullmatch(each)
        if form is None or form[3] not in (None, "word", "number", "path"):
            raise ValueError(f"not the form of an option: {each}")
        kind: ValueKind | None = form[3]  # type: ignore[assignment]  # one of three by the line above
        found[form[1]] = Option(form[1], kind, form[2] is not None)
    return found


def split_command(name: str, arguments: list[Argument], entry: Program) -> SplitCommand:
    """A command, split into options and operands by its program's entry; raises `Unlisted` if the command has anything
    that the entry does not list."""
    options: list[tuple[str, str | None]] = []
    paths: list[Argument] = []
    starts_others = entry.starts_others
    while True:
        reader = _Reader(name, entry, list(reversed(arguments)))
        reader.read()
        options += reader.options
        paths += reader.paths
        if not entry.subcommands or reader.subcommand is None:
            break
        name, entry = f"{name} {reader.subcommand}", entry.subcommands[reader.subcommand]
        starts_others = starts_others or entry.starts_others
        arguments = list(reversed(reader.remaining))
    return SplitCommand(Invocation(name, tuple(options), tuple(reader.operands)), entry, paths, starts_others)


@dataclass(slots=True)
class _Reader:
    name: str
    entry: Program
    remaining: list[Argument]
    """The remaining arguments, the last one first."""
    options: list[tuple[str, str | None]] = field(default_factory=list)
    operands: list[Argument] = field(default_factory=list)
    paths: list[Argument] = field(default_factory=list)
    subcommand: str | None = None
    _options_ended: bool = False
    _has_pattern: bool = False

    def read(self) -> None:
        listed = option_table(self.entry.options)
        while self.remaining:
            argument = self.remaining.pop()
            text = argument.text
            if argument.may_have_effects:
                raise Unlisted(f"haft cannot tell what `{text}` does before it runs")
            if self._options_ended or not self._may_be_option(argument):
                self._operand(argument)
                if self.subcommand is not None:
                    return
            elif not argument.literal:
                self._unknown_argument(argument, listed)
            elif text == "--" and not self.entry.single_dash:
                self._options_ended = True
            elif self.entry.single_dash:
                self._single(argument, listed)
            elif text.startswith("--"):
                self._long(argument, listed)
            else:
                self._short(argument, listed)
        if self.entry.operands == "pattern-paths":
            self._separate_pattern()

    def _may_be_option(self, argument: Argument) -> bool:
        if not argument.literal:
            return argument.may_be_option
        return argument.text.startswith("-") and argument.text != "-"

    def _unknown_argument(self, argument: Argument, listed: dict[str, Option]) -> None:
        """Handle an argument whose value is not known, so that it may become an option when the line runs."""
        attached = _ATTACHED.match(argument.text)
        option = listed.get(attached[1]) if attached else None
        if attached and option and option.value == "word" and _is_one_word(argument):
            self._add_option(option, Argument(argument.text[attached.end() :], literal=argument.paths is not None))
            return
        found = argument.paths
        are_names = found is not None and not any(path.startswith("-") for path in found)
        if not self.entry.all_options_harmless or not (are_names or self.entry.operands == "words"):
            # Even a harmless option may name another file to read, or make the program follow links.
            raise Unlisted(f"`{argument.text}` may become an option of `{self.name}`")
        self._operand(argument)

    def _operand(self, argument: Argument) -> None:
        entry = self.entry
        if entry.subcommands:
            if not argument.literal or argument.text not in entry.subcommands:
                raise Unlisted(f"haft does not know `{self.name} {argument.text}` to be read-only")
            self.subcommand = argument.text
            return
        if entry.operands == "none":
            raise Unlisted(f"haft does not know `{self.name}` to be read-only with `{argument.text}`")
        self.operands.append(argument)
        self._options_ended = self._options_ended or (entry.options_first and not argument.may_split)
        if entry.operands == "paths":
            self.paths.append(argument)

    def _separate_pattern(self) -> None:
        rest = self.operands
        if not any(option in self.entry.patterns for option, _ in self.options) and rest:
            first, rest = rest[0], rest[1:]
            if first.is_program_output:
                raise Unlisted(f"the name of a file decides what `{self.name}` does")
            if first.may_split and not (first.paths is not None and not first.literal):
                raise Unlisted(f"`{first.text}` may become several words")
            if first.may_split:
                self.paths.append(first)
        self.paths += rest

    def _single(self, argument: Argument, listed: dict[str, Option]) -> None:
        option = listed.get(argument.text)
        if option is None:
            raise self._unknown(argument.text)
        self.operands.append(argument)
        value = None
        if option.value is not None:
            value = self._next(option)
            self.operands.append(value)
            self._check_value(option, value)
        self.options.append((option.name, None if value is None else value.text))

    def _long(self, argument: Argument, listed: dict[str, Option]) -> None:
        name, equals, attached = argument.text.partition("=")
        option = listed.get(name)
        if option is None or (equals and option.value is None):
            if self._is_word():
                self._operand(argument)
                return
            raise self._unknown(name)
        if equals:
            self._add_option(option, Argument(attached))
        elif option.value is not None and not option.is_optional:
            self._add_option(option, self._next(option))
        else:
            self.options.append((option.name, None))

    def _short(self, argument: Argument, listed: dict[str, Option]) -> None:
        text = argument.text
        if self.entry.number_option and _NUMBER_OPTION.fullmatch(text):
            self.options.append(("-number", text[1:]))
            return
        if not self._is_cluster(text, listed):
            if self._is_word():
                self._operand(argument)
                return
            raise self._unknown(self._first_unknown(text, listed))
        at = 1
        while at < len(text):
            option = listed["-" + text[at]]
            at += 1
            if option.value is None:
                self.options.append((option.name, None))
            elif at < len(text):
                self._add_option(option, Argument(text[at:]))
                return
            elif option.is_optional:
                self.options.append((option.name, None))
            else:
                self._add_option(option, self._next(option))

    def _is_cluster(self, text: str, listed: dict[str, Option]) -> bool:
        return self._first_unknown(text, listed) == ""

    def _first_unknown(self, text: str, listed: dict[str, Option]) -> str:
        for at, letter in enumerate(text[1:], 1):
            option = listed.get("-" + letter)
            if option is None or (at > 1 and not self.entry.clusters):
                return "-" + letter if self.entry.clusters else text
            if option.value is not None:
                break
        return ""

    def _is_word(self) -> bool:
        return self.entry.all_options_harmless and self.entry.operands == "words" and not self.entry.subcommands

    def _next(self, option: Option) -> Argument:
        if not self.remaining:
            raise Unlisted(f"`{option.name}` of `{self.name}` has no value")
        return self.remaining.pop()

    def _add_option(self, option: Option, value: Argument) -> None:
        self._check_value(option, value)
        self.options.append((option.name, value.text))

    def _check_value(self, option: Option, value: Argument) -> None:
        if value.may_split or value.may_have_effects:
            raise Unlisted(f"haft cannot tell the value of `{option.name}`: `{value.text}`")
        if (
            option.value == "word"
            and not value.literal
            and self.entry.check is not None
            and not self.entry.all_options_harmless
        ):
            raise Unlisted(f"haft cannot tell the value of `{option.name}`: `{value.text}`")
        if option.value == "path":
            self.paths.append(value)
        elif option.value == "number" and not (value.literal and _NUMBER.fullmatch(value.text)):
            raise Unlisted(f"the value of `{option.name}` is not a number: `{value.text}`")

    def _unknown(self, name: str) -> Unlisted:
        known = self.entry.harmful.get(name)
        if known is not None:
            return Unlisted(f"`{name}` of `{self.name}`: {known}")
        return Unlisted(f"haft does not know `{name}` of `{self.name}` to be harmless")


def _is_one_word(argument: Argument) -> bool:
    """Whether an argument stays one word: it is literal, a pattern with one match, or a quoted expansion."""
    return len(argument.paths) == 1 if argument.paths is not None else not argument.may_split
