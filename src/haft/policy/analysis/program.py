"""The form of a program's entry in the tables: which of its options and operands only read.

An entry lists what is known to be harmless; everything else needs approval. Harmful options are listed only to give a
better reason. Options are written as one text:

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
"""`pattern-paths`: the first operand is a pattern, unless an option of `patterns` gave one; the rest are paths."""


class LinkReason(str):
    """A reason that holds only if a link below the files that are read leads out of the workspace.

    Checks cannot see the disk. A caller that can may look for such a link, and treat the command as safe if there is
    none.
    """

    __slots__ = ()


class DirectoryLinkReason(LinkReason):
    """A `LinkReason` of a program that may also open other files of its directory than its arguments."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """One word of a command, as far as it is known."""

    text: str
    """The word without quotes if it is `literal`; otherwise as it was written."""
    literal: bool = True
    paths: tuple[str, ...] | None = None
    """The file names that a pattern expands to, if the word is a pattern and was expanded; relative to the directory of
    the command, or absolute."""
    may_be_option: bool = False
    """Whether an unknown part of it could begin with a dash."""
    may_split: bool = False
    """Whether it could become several words, or none."""
    may_have_effects: bool = False
    """Whether it contains an expansion that may itself do something."""
    is_program_output: bool = False
    """Whether its paths are names that a program printed: the shell does not expand them."""
    is_number: bool = False
    """Whether it is an unknown whole number."""
    is_pattern_free: bool = False
    """Whether its value is unknown but contains no pattern of file names."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command, split by its program's entry."""

    name: str
    """`git log` for a subcommand."""
    options: tuple[tuple[str, str | None], ...]
    """The options as the entry spells them, in order, with values."""
    operands: tuple[Argument, ...]

    def has(self, *names: str) -> bool:
        """Whether one of these options was given."""
        return any(name in names for name, _value in self.options)

    def value(self, name: str) -> str | None:
        """The value of the last option of this name."""
        return next((value for each, value in reversed(self.options) if each == name), None)


@dataclass(frozen=True, slots=True)
class Program:
    """The entry of one program."""

    options: str = ""
    operands: Operands = "paths"
    patterns: tuple[str, ...] = ()
    """Options that give the pattern, for `pattern-paths`."""
    all_options_harmless: bool = False
    """Whether no option can make it write, run or reach anything, so that names that look like options do no harm."""
    starts_others: bool = False
    """Whether its configuration may make it run other programs (git, npm, pip): it is safe only in the sandbox."""
    shows_host_data: bool = False
    """Whether it shows processes, sessions or filesystems of everyone: it is safe only in a sandbox, which has its
    own."""
    harmful: Mapping[str, str] = field(default_factory=dict)
    """Options that are known to do harm, and what they do: only for the reason."""
    check: Callable[[Invocation], str | None] | None = None
    """Checks what the table cannot express; returns why not, or None if the command only reads."""
    subcommands: Mapping[str, Program] = field(default_factory=dict)
    """Entries by the first operand; `options` are then those that may stand before it. Other operands need approval."""
    clusters: bool = True
    """Whether short options may be combined; programs like `find` have long options with one dash."""
    single_dash: bool = False
    """Whether options of more than one letter begin with one dash (`find -name`). They are written so in `options`, and
    operands and options are all passed to `check`, in order, as operands."""
    options_first: bool = False
    """Whether options end at the first operand, as for `printf`: no later word is an option."""
    number_option: bool = False
    """Whether a dash and digits are an option (`head -5`)."""
