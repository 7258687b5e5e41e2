"""The words after `haft tools use`: which are haft's options, and which the tool's parameters.

The first of two steps, since the tool must be found before its schema can be asked: `take_apart` knows only haft's own
options. A word that begins with `--` is one of these or the name of a parameter, never a value. `binding` then reads
what is left against the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from haft.contracts import BadUsage, near_miss
from haft.values import dataclass, field

FLAGS: Final = (
    "--stream", "--approve", "--try", "--preview", "--network", "--scratch", "--json", "--quiet", "--help", "--version",
)  # fmt: skip
VALUED: Final = (
    "--args",
    "--only",
    "--wait",
    "--timeout",
    "--thread",
    "--config",
    "--read",
    "--write",
    "--env",
    "--workspace",
)
LATER: Final = ("--no-cache",)
"""Options of haft that other versions have: their names are taken all the same, so that no line changes its meaning."""
SHORT: Final = {"-w": "--workspace", "-q": "--quiet", "-h": "--help"}
OPTIONS: Final = (*FLAGS, *VALUED)
_OWN_PARAMETER: Final = "a tool's own parameter of that name goes after `--`, haft's option before the tool's name"


@dataclass(frozen=True, slots=True)
class Named:
    """`--name` or `--name=value`."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Word:
    """A word that is no name: a value, if a name before it wants one."""

    text: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Where one of haft's options stood: values do not reach across it."""


Piece = Named | Word | Gap


@dataclass(slots=True)
class Line:
    """The line, taken apart."""

    name: str | None = None
    options: dict[str, list[str]] = field(default_factory=dict)
    """Haft's options that were given, each with its values; flags have one empty value."""
    pieces: list[Piece] = field(default_factory=list)
    """The rest, in order: what the tool's parameters are made of."""
    after_name: dict[str, str] = field(default_factory=dict)
    """Haft's options that were given after the tool's name, each as it was written there: `--workspace`, `-w`."""
    command: str = "haft tools use"

    def flag(self, option: str) -> bool:
        return option in self.options

    def value(self, option: str) -> str | None:
        """The value of an option that is given once."""
        values = self.options.get(option)
        if values is None:
            return None
        if len(values) > 1:
            raise BadUsage(f"`{option}` is given {len(values)} times")
        return values[0]


def split_words(words: Sequence[str]) -> Line:
    """Find the tool's name and haft's options. `BadUsage` for an option that is wrong."""
    line = Line()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--" and line.name is not None:
            line.pieces.append(Gap())
            line.pieces += tokens_of(rest)
            return line
        option, equals, value = SHORT.get(word, word).partition("=")
        if option in LATER:
            raise BadUsage(f"`{option}` is an option of haft that this version does not have", hint=_OWN_PARAMETER)
        if line.name is not None and option in OPTIONS:
            line.after_name.setdefault(option, word.partition("=")[0])
        if option in FLAGS:
            if equals:
                raise BadUsage(f"`{option}` takes no value", hint=_OWN_PARAMETER)
            line.options[option] = [""]
            line.pieces.append(Gap())
        elif option in VALUED:
            if not equals:
                if not rest or _is_name(rest[0]):
                    raise BadUsage(f"`{option}` needs a value", hint=_OWN_PARAMETER if line.name is not None else None)
                value = rest.pop(0)
            line.options.setdefault(option, []).append(value)
            line.pieces.append(Gap())
        elif line.name is None and not word.startswith("-"):
            line.name = word
        elif line.name is None:
            near = near_miss(option, OPTIONS)
            hint = f"did you mean `{near}`?" if near else "parameters of the tool come after its name"
            raise BadUsage(f"`haft tools use` has no option `{option}`", hint=hint)
        else:
            line.pieces.append(_named(word) if _is_name(word) else Word(word))
    return line


def is_option(name: str) -> bool:
    """Whether `--name`, as a tool declares it, is also an option of haft."""
    return name.replace("_", "-") in (*OPTIONS, *LATER)


def tokens_of(words: Sequence[str]) -> list[Piece]:
    """Words of which none is an option of haft."""
    return [_named(one) if _is_name(one) else Word(one) for one in words]


def _is_name(word: str) -> bool:
    return word.startswith("--")


def _named(word: str) -> Named | Word:
    name, equals, value = word[2:].partition("=")
    return Named(name, value if equals else None) if name else Word(word)
