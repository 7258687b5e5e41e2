"""Parses the front matter, the lines between two `---` at the top of a SKILL.md: the name of the skill, and when to use
it.

The front matter should be YAML, but many published skills write `description: Use when: …`, which is not valid YAML. If
the YAML parser fails, lines of the form `key: rest` are parsed instead. Only the lines of `name` and `description` are
parsed, as plain text: tags, merged keys and aliases have no effect.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from haft.files import split_front_matter
from haft.lazy import regex

MOST_BYTES: Final = 65_536
"""The front matter must end within this many bytes of the file."""
LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024

_NAME: Final = regex(r"[a-z0-9][a-z0-9-]{0,63}")
_WANTED: Final = regex(r"[\"']?(?:name|description)[\"']?\s*:")
_LINE: Final = regex(r"[\"']?(?P<key>name|description)[\"']?\s*:(?P<rest>.*)")
_SIMPLE: Final = regex(r"(?:name|description): +[A-Za-z0-9][^\x00-\x1f:#\x7f\x85\u2028\u2029]*")
_MOST_YAML: Final = 8_000
_MOST_BRACKETS: Final = 50


class FrontMatter(NamedTuple):
    """The parsed front matter. `problem` says why it is not valid; None if it is valid."""

    name: str | None
    """The name of the skill; None if there is no valid name."""
    description: str
    problem: str | None


def is_skill_name(text: str) -> bool:
    """Whether a text is a valid skill name."""
    return _NAME.fullmatch(text) is not None


def read_front_matter(beginning: bytes) -> FrontMatter:
    """Parse the beginning of a SKILL.md: the whole file, or its first 64 KB."""
    is_cut = len(beginning) >= MOST_BYTES
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(beginning[:MOST_BYTES], final=not is_cut)
    except UnicodeDecodeError as error:
        return _unusable(f"its SKILL.md is not UTF-8 (byte {error.start}); save it as UTF-8")
    if "\0" in text:
        return _unusable("its SKILL.md is not a text; write it in Markdown")
    parts = split_front_matter(text)
    if parts is None:
        where = "in its first 64 KB" if is_cut else "at its top"
        return _unusable(f"its SKILL.md has no front matter {where}; begin it with {_FORM}")
    return _judged(_mapping(parts[0]))


_FORM: Final = "`---`, `name: …`, `description: …`, `---`, each on a line of its own"


def _mapping(block: str) -> dict[Any, Any]:
    lines = list(_wanted_lines(block))
    if all(map(_SIMPLE.fullmatch, lines)) and len({line.partition(":")[0] for line in lines}) == len(lines):
        return _plain_lines(lines)  # The usual case: YAML gives the same result, but takes long to import.
    text = "\n".join(lines)
    found = None
    # YAML needs quadratic time for nested lists. A description has no lists, so many brackets are refused.
    if len(text) <= _MOST_YAML and text.count("[") + text.count("{") <= _MOST_BRACKETS:
        import yaml

        try:
            found = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  this loader makes only text, lists and maps
        except (yaml.YAMLError, RecursionError, ValueError):
            found = None
    return found if isinstance(found, dict) else _plain_lines(lines)


def _wanted_lines(block: str) -> Iterator[str]:
    """The lines of `name` and `description`, with the indented lines after each."""
    is_wanted = False
    for line in block.split("\n"):
        if line[:1] not in ("", " ", "\t"):
            is_wanted = _WANTED.match(line) is not None
        if is_wanted:
            yield line


def _plain_lines(lines: list[str]) -> dict[str, str]:
    """The values by key, from lines of the form `key: rest of the line`. The indented lines after such a line belong to
    its value."""
    found: dict[str, str] = {}
    key = None
    for line in lines:
        if key is not None and line[:1] in (" ", "\t"):
            found[key] = f"{found[key]} {line.strip()}".strip()
        elif (match := _LINE.match(line)) is not None:
            key = match["key"]
            found[key] = _unquoted(match["rest"].strip())
    return found


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else "" if text in (">", "|", ">-", "|-", ">+", "|+") else text


def _judged(found: dict[Any, Any]) -> FrontMatter:
    name, description = found.get("name"), found.get("description")
    about = description.strip() if isinstance(description, str) else ""
    usable = name.strip() if isinstance(name, str) and is_skill_name(name.strip()) else None
    problem = _name_problem(name) or _description_problem(description, about)
    return FrontMatter(usable, about[:LONGEST_DESCRIPTION], problem)


def _name_problem(name: Any) -> str | None:
    if name is None or name == "":
        return "its front matter has no `name`; add `name: …`, the same as its folder"
    if not isinstance(name, str):
        return "the `name` in its front matter is not a text; write `name: …`, the same as its folder"
    if len(name.strip()) > LONGEST_NAME:
        return f"its name has {len(name.strip())} characters; a name has at most {LONGEST_NAME}"
    if not is_skill_name(name.strip()):
        return f"`{_short(name)}` is not a valid skill name; use only a-z, 0-9 and inner `-`, the same as its folder"
    return None


def _description_problem(description: Any, about: str) -> str | None:
    if description is not None and not isinstance(description, str):
        return "the `description` in its front matter is not a text; write it on one line, in quotes"
    if not about:
        return "its front matter has no `description`; say what it teaches and when to use it"
    if len(about) > LONGEST_DESCRIPTION:
        return f"its description has {len(about)} characters; shorten it to {LONGEST_DESCRIPTION}"
    return None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _unusable(problem: str) -> FrontMatter:
    return FrontMatter(None, "", problem)
