"""Parses git configuration as git does, and extracts the few settings of a person that a call may know.

Code that checks configuration must see what git will see, so the parser behaves exactly as git's and stops where git
stops. It follows no includes and does not know the meaning of settings.
"""

from __future__ import annotations

import os
import stat
import string
from collections.abc import Iterator, Mapping
from typing import Final

from haft.values import dataclass

KEPT: Final = frozenset({("user", "name"), ("user", "email"), ("init", "defaultbranch"), ("safe", "directory")})
_MAX_BYTES: Final = 1_000_000
"""How much of a file is read. It is more than a call may write into configuration without approval: if it were less, a
call could hide settings behind the part that is read."""
_SPACE: Final = " \t\n\r"
_LETTERS: Final = frozenset(string.ascii_letters)
_KEY: Final = frozenset(string.ascii_letters + string.digits + "-")
_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}


class Malformed(ValueError):
    """Git would refuse the configuration from here on."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. Section and name are in lower case; `subsection` and `value` are as written."""

    section: str
    subsection: str | None
    name: str
    value: str
    """Empty also for a name without a value, which git takes for true."""

    @property
    def key(self) -> str:
        return ".".join(word for word in (self.section, self.subsection, self.name) if word is not None)


def shareable_gitconfig(home: str, env: Mapping[str, str]) -> str:
    """The settings of the person's git configuration that a call may know, as the text of a configuration file for the
    private home of the call. Included files are not read."""
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    found: dict[tuple[str, str], list[str]] = {}
    for path in (os.path.join(config, "git", "config"), os.path.join(home, ".gitconfig")):
        for each in settings(path):
            if each.subsection is None and (each.section, each.name) in KEPT:
                value = each.value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                found.setdefault((each.section, each.name), []).append(value)
    return "".join(
        f"[{section}]\n\t{name} = {_quoted(value)}\n"
        for (section, name), values in found.items()
        for value in (values if section == "safe" else values[-1:])
    )


def plain_bytes(path: str, most: int) -> bytes | None:
    """The first `most` bytes of a regular file; None for links and other files, and if the file cannot be read. In a
    workspace, any kind of file may be at a path, and reading a pipe would block."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:
            return file.read(most)
    except (OSError, ValueError):
        return None


def read_plain(path: str, most: int) -> str:
    """The first `most` bytes of a regular file, as text; empty for links and other files, and if the file cannot be
    read."""
    return (plain_bytes(path, most) or b"").decode("utf-8", "replace")


def first_line(path: str) -> str:
    """The first line of a regular file; empty for other files."""
    return read_plain(path, 4096).split("\n", 1)[0]


def settings(path: str) -> Iterator[Setting]:
    """The settings of a file, up to the first error."""
    try:
        yield from parsed((plain_bytes(path, _MAX_BYTES) or b"").decode("utf-8", "surrogateescape"))
    except Malformed:
        return


def parsed(text: str) -> Iterator[Setting]:
    """The settings in their order. Raises `Malformed` at the first thing that git would refuse, or at a zero byte."""
    if "\0" in text:
        raise Malformed("a zero byte")
    letters = _Letters(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    section: str = ""
    subsection: str | None = None
    while letter := letters.next():
        if letter in _SPACE:
            continue
        if letter in "#;":
            letters.skip_line()
        elif letter == "[":
            section, subsection = _section(letters)
        elif letter in _LETTERS:
            name, value = _setting(letters, letter)
            yield Setting(section, subsection, name, value)
        else:
            raise Malformed(f"{letter!r} where a name should be")


class _Letters:
    """Reads a text character by character; an empty string marks the end."""

    __slots__ = ("_at", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self) -> str:
        letter = self._text[self._at : self._at + 1]
        self._at += 1
        return letter

    def skip_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end + 1


def _section(letters: _Letters) -> tuple[str, str | None]:
    """Parse a section header: `[a]`, the old form `[a.b]`, or `[a "b"]`. Returns the section, and the subsection or
    None."""
    words: list[str] = []
    while (letter := letters.next()) != "]":
        if letter and letter in _SPACE:
            words += [".", _subsection(letters, letter)]
            break
        if letter not in _KEY and letter != ".":
            raise Malformed("a section that does not end")
        words.append(letter.lower())
    section, dot, subsection = "".join(words).partition(".")
    return section, subsection if dot else None


def _subsection(letters: _Letters, letter: str) -> str:
    while letter and letter in " \t\r":
        letter = letters.next()
    if letter != '"':
        raise Malformed("a section with something strange in it")
    kept: list[str] = []
    while (letter := letters.next()) != '"':
        if letter == "\\":
            letter = letters.next()
        if letter in ("", "\n"):
            raise Malformed("a quote that does not end")
        kept.append(letter)
    if letters.next() != "]":
        raise Malformed("a section that does not end")
    return "".join(kept)


def _setting(letters: _Letters, first: str) -> tuple[str, str]:
    kept = [first]
    while (letter := letters.next()) in _KEY:
        kept.append(letter)
    name = "".join(kept).lower()
    while letter and letter in " \t":
        letter = letters.next()
    if letter in ("", "\n"):
        return name, ""
    if letter != "=":
        raise Malformed(f"{letter!r} in the name of a setting")
    return name, _value(letters)


def _value(letters: _Letters) -> str:
    kept: list[str] = []
    spaces, quoted = 0, False
    while (letter := letters.next()) not in ("", "\n"):
        if not quoted and letter in _SPACE:
            spaces += bool(kept)
            continue
        if not quoted and letter in "#;":
            letters.skip_line()
            return "".join(kept)
        kept += [" "] * spaces
        spaces = 0
        if letter == '"':
            quoted = not quoted
        elif letter != "\\":
            kept.append(letter)
        elif (letter := letters.next()) not in ("", "\n"):
            if letter not in _ESCAPES:
                raise Malformed("an escape that git does not know")
            kept.append(_ESCAPES[letter])
    if quoted:
        raise Malformed("a quote that does not end")
    return "".join(kept)


def _quoted(value: str) -> str:
    """The value, quoted so that git reads the same value again."""
    plain = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return plain if plain == value == value.strip() and not set("#;\b") & set(value) else f'"{plain}"'
