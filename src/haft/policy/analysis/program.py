"""The form of a program's entry in the table: the options and operands with which the program only reads.

An entry lists what is known to be harmless; everything else needs approval. Harmful options are listed only so that the
prompt can say what they do. Options are written as one text:

    -a              takes no value; may stand in a cluster (`-la`)
    -n=number       needs a value, attached (`-n5`) or as the next word; the last of a cluster
    -U[=number]     may have a value, attached only
    --all           takes no value
    --include=word  needs a value, after `=` or as the next word
    --color[=word]  may have a value, after `=` only

A value is a `word` (anything; the program reads no file of that name), a `number`, or a `path` (a file that is read: it
must lie inside the workspace, links resolved). Abbreviated long options are not resolved: they need
approval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from haft.values import dataclass, field

Operands = Literal["paths", "words", "none", "pattern-paths"]
"""The meaning of a program's operands. `pattern-paths`: the first operand is a search pattern, unless an option in
`patterns` gave the pattern; the other operands are paths."""


class LinkReason(str):
    """A reason why a command is not safe: a link below the files that the command reads may lead out of the workspace.
    The checks in the table cannot look at the disk. The classifier can: it looks for such a link, and treats the
    command as safe if there is none.
    """

    __slots__ = ()


class DirectoryLinkReason(LinkReason):
    """A `LinkReason` for a program that may also open files which its arguments do not name, in its working
    directory."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """One word of a command, as far as it is known."""

    text: str
    """The word without quotes if it is `literal`; the word as it was written if it is not."""
    literal: bool = True
    paths: tuple[str, ...] | None = None
    """The file names that a pattern expands to, if the word is a pattern and was expanded; relative to the directory of
    the command, or absolute."""
    may_be_option: bool = False
    """Whether the word is not fully known, and could begin with a dash."""
    may_split: bool = False
    """Whether the word could become several words, or none."""
    may_have_effects: bool = False
    """Whether the word contains an expansion that may itself do something, such as run a command."""
    is_program_output: bool = False
    """Whether `paths` are names that a program printed, and not names that the shell found for a pattern."""
    is_number: bool = False
    """Whether the value is an unknown whole number."""
    is_pattern_free: bool = False
    """Whether the value is unknown, but contains no pattern of file names."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command, split into options and operands by its program's entry."""

    name: str
    """The name of the program, with its subcommand if it has one: `git log`."""
    options: tuple[tuple[str, str | None], ...]
    """The options as the entry spells them, in order, with values."""
    operands: tuple[Argument, ...]

    def has(self, *names: str) -> bool:
        """Whether one of these options was given."""
        return any(name in names for name, _value in self.options)

    def value(self, name: str) -> str | None:
        """The value of the last option of this name; None if this option was not given, or has no value."""
        return next((value for each, value in reversed(self.options) if each == name), None)


@dataclass(frozen=True, slots=True)
class Program:
    """The entry of one program in the table of programs."""

    options: str = ""
    operands: Operands = "paths"
    patterns: tuple[str, ...] = ()
    """Options that give the pattern, for `pattern-paths`."""
    all_options_harmless: bool = False
    """Whether no option can make the program write, run or reach anything. Then file names that look like options do no
    harm."""
    starts_others: bool = False
    """Whether configuration files may make the program run other programs (git, npm, pip): it is safe only in the
    sandbox."""
    shows_host_data: bool = False
    """Whether the program shows processes, sessions or filesystems of the whole machine. It is safe only in a sandbox,
    where it sees only those of the sandbox."""
    harmful: Mapping[str, str] = field(default_factory=dict)
    """Options that are known to do harm, and what they do, for the reason in the prompt."""
    check: Callable[[Invocation], str | None] | None = None
    """A check for facts that the other fields cannot express. Returns why the command may do more than read; None if it
    only reads."""
    subcommands: Mapping[str, Program] = field(default_factory=dict)
    """The entry of each subcommand. If there are any, `options` are those that may stand before the subcommand, and a
    command with any other subcommand needs approval."""
    clusters: bool = True
    """Whether short options may be combined; programs like `find` have long options with one dash."""
    single_dash: bool = False
    """Whether options of more than one letter begin with one dash (`find -name`). They are written in this way in
    `options`, too. `check` gets options and operands together, in order, as operands."""
    options_first: bool = False
    """Whether options end at the first operand, as for `printf`: no later word is an option."""
    number_option: bool = False
    """Whether a dash and digits are an option (`head -5`)."""
