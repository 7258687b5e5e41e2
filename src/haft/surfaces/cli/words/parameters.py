"""The words after `haft tools use`: which are haft's options, and which are the tool's parameters.

This is the first of two steps, because the tool must be found before its schema is known. In this step, `split_words`
knows only haft's options. A word that begins with `--` is an option or the name of a parameter, never a value. In the
second step, `binding` reads the other words with the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from haft.contracts import BadUsage, near_miss
from haft.surfaces.cli.words.network_option import NAME as NETWORK
from haft.surfaces.cli.words.network_option import WHOLE, check_value
from haft.values import dataclass, field

FLAGS: Final = (
    "--stream", "--approve", "--try", "--preview", "--network", "--scratch", "--no-cache", "--json", "--quiet",
    "--help", "--version",
)  # fmt: skip
VALUED: Final = {
    "--args": ("a JSON object, `@FILE` or `-`", "@args.json"),
    "--only": ("a field of the outcome", "output"),
    "--wait": ("a number of seconds", "60"),
    "--timeout": ("a number of seconds", "60"),
    "--thread": ("the name of a thread", "work"),
    "--isolation": ("`snapshot` or `serial`", "serial"),
    "--config": ("a setting of the tool and its value", "KEY=VALUE"),
    "--read": ("a path", "../data"),
    "--write": ("a path", "../out"),
    "--env": ("the name of a variable", "GITHUB_TOKEN"),
    "--workspace": ("a directory", "."),
}
"""The options that take a value, each with the kind of its value and an example."""
SHORT: Final = {"-w": "--workspace", "-q": "--quiet", "-h": "--help"}
OPTIONS: Final = (*FLAGS, *VALUED)
_IF_OWN: Final = "if you mean a parameter of the tool, write it after `--`"
_OWN_PARAMETER: Final = "put the tool's own parameter after `--`, and haft's option before the tool's name"


@dataclass(frozen=True, slots=True)
class NameToken:
    """A parameter that was given by its name: `--name` or `--name=value`."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class WordToken:
    """A word that does not begin with `--`. If a `NameToken` stands before the word, and the parameter of that name
    takes a value, the word is this value."""

    text: str


@dataclass(frozen=True, slots=True)
class GapToken:
    """Marks the place of one of haft's options, or of `--`, among the other words of the line. The word after this
    place is not the value of the parameter name before it."""


Token = NameToken | WordToken | GapToken


@dataclass(slots=True)
class Line:
    """The parsed words after `haft tools use`."""

    name: str | None = None
    options: dict[str, list[str]] = field(default_factory=dict)
    """Haft's options on the line, each with its values. The value of a flag is empty, except for `--network=HOST`."""
    tokens: list[Token] = field(default_factory=list)
    """The other words, in order: the names and values of the tool's parameters."""
    after_name: dict[str, str] = field(default_factory=dict)
    """Haft's options that come after the tool's name, each with its spelling on the line: `--workspace` or `-w`."""
    command: str = "haft tools use"

    def flag(self, option: str) -> bool:
        return option in self.options

    def value(self, option: str) -> str | None:
        """The value of an option; None if it is not given. Raises `BadUsage` if it is given more than once."""
        values = self.options.get(option)
        if values is None:
            return None
        if len(values) > 1:
            raise BadUsage(f"`{option}` is given {len(values)} times", hint="give it once")
        return values[0]


def split_words(words: Sequence[str]) -> Line:
    """Parse the words: find the tool's name and haft's options. Raises `BadUsage` for an invalid option."""
    line = Line()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--" and line.name is not None:
            line.tokens.append(GapToken())
            line.tokens += tokens_of(rest)
            return line
        option, equals, value = SHORT.get(word, word).partition("=")
        if line.name is not None and option in OPTIONS:
            line.after_name.setdefault(option, word.partition("=")[0])
        if option in FLAGS:
            line.options.setdefault(option, []).append(_flag_value(option, value) if equals else WHOLE)
            line.tokens.append(GapToken())
        elif option in VALUED:
            if not equals:
                if not rest or _is_name(rest[0]):
                    raise _needs_value(word, option, is_after_name=line.name is not None)
                value = rest.pop(0)
            line.options.setdefault(option, []).append(value)
            line.tokens.append(GapToken())
        elif line.name is None and not word.startswith("-"):
            line.name = word
        elif line.name is None:
            near = near_miss(option, OPTIONS)
            hint = f"did you mean `{near}`?" if near else "parameters of the tool come after its name"
            raise BadUsage(f"`haft tools use` has no option `{option}`", hint=hint)
        else:
            line.tokens.append(_token(word) if _is_name(word) else WordToken(word))
    return line


def _needs_value(spelling: str, option: str, *, is_after_name: bool) -> BadUsage:
    kind, example = VALUED[option]
    return BadUsage(
        f"`{spelling}` needs {kind}, such as `{spelling} {example}`", hint=_IF_OWN if is_after_name else None
    )


def _flag_value(option: str, value: str) -> str:
    """The value after `=` of a flag. Only `--network` may have one."""
    if option != NETWORK:
        raise BadUsage(f"`{option}` takes no value", hint=_OWN_PARAMETER)
    return check_value(value)


def is_option(name: str) -> bool:
    """Whether `name`, written as `--name`, is an option of haft."""
    return name.replace("_", "-") in OPTIONS


def tokens_of(words: Sequence[str]) -> list[Token]:
    """The tokens of words that are not options of haft."""
    return [_token(one) if _is_name(one) else WordToken(one) for one in words]


def _is_name(word: str) -> bool:
    return word.startswith("--")


def _token(word: str) -> NameToken | WordToken:
    name, equals, value = word[2:].partition("=")
    return NameToken(name, value if equals else None) if name else WordToken(word)
