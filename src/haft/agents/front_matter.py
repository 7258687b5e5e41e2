"""Parses a Markdown file with front matter into the keys of a type and its prompt.

Each key is parsed on its own, so that a description such as `Use when: …`, which is not valid YAML, is still a text.
YAML gets only short values without aliases, because long nested lists and aliases take very long. Nothing here raises:
a mistake becomes a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from haft.files import split_front_matter
from haft.lazy import regex

MOST_BYTES: Final = 200_000
"""The size of the largest file that is read."""
TEXT_KEYS: Final = frozenset({"name", "description", "model", "isolation"})
"""Keys whose values are texts, even if they look like a number or a truth value."""
LIST_KEYS: Final = frozenset({"tools", "disallowedTools"})
"""Keys whose values are lists of texts, or one text."""
_MOST_YAML: Final = 16_000
_MOST_BRACKETS: Final = 50
_DEEPEST: Final = 40
_KEY: Final = regex(r"(?P<mark>[\"']?)(?P<key>[A-Za-z][\w.-]*)(?P=mark)[ \t]*:(?P<rest>[ \t].*|)")
_BLOCK_MARKS: Final = frozenset({"|", "|-", "|+", ">", ">-", ">+"})
_INDENT: Final = regex(r"(?:[ \t]|- )*")


class Definition(NamedTuple):
    """A file in the form of keys and a prompt."""

    keys: dict[str, Any]
    prompt: str
    problem: str | None = None
    """Why the file cannot be understood; None if it can."""


def parse_definition(data: bytes) -> Definition:
    """Parse the content of a file."""
    if len(data) > MOST_BYTES:
        return Definition({}, "", f"it is larger than {MOST_BYTES:_} bytes; shorten its prompt")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Definition({}, "", f"it is not UTF-8 (byte {error.start}); save it as UTF-8")
    if "\0" in text:
        return Definition({}, "", "it is not a text; write it in Markdown")
    parts = split_front_matter(text)
    if parts is None:
        form = "`---`, `name: …`, `description: …`, `---`, each on a line of its own"
        return Definition({}, "", f"it has no front matter at its top; begin it with {form}")
    keys: dict[str, Any] = {}
    try:
        for key, rest, below in _entries(parts[0]):
            if key in keys:
                raise ValueError(f"`{key}` stands there twice; keep one of them")
            keys[key] = _value(key, rest, below)
    except ValueError as error:
        return Definition({}, "", f"its front matter cannot be understood: {error}")
    return Definition(keys, parts[1].strip())


def _entries(block: str) -> Iterator[tuple[str, str, list[str]]]:
    """Each key, the rest of its line, and the lines that belong to it."""
    key, rest, below = "", "", list[str]()
    for line in block.split("\n"):
        found = _KEY.fullmatch(line)
        if found is not None:
            if key:
                yield key, rest, below
            key, rest, below = found["key"], found["rest"].strip(), []
        elif key:
            below.append(line)
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"`{line.strip()[:60]}` is not `KEY: VALUE`")
    if key:
        yield key, rest, below


def _value(key: str, rest: str, below: list[str]) -> Any:
    text = "\n".join((rest, *below)).strip()
    if rest.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass  # It may be YAML.
    try:
        found = _yaml("\n".join((f"{key}: {rest}", *below)), is_text=key in TEXT_KEYS or key in LIST_KEYS)
    except ValueError as error:
        if key in TEXT_KEYS or (key in LIST_KEYS and not rest.startswith("[")):
            return _plain("\n".join(below) if rest in _BLOCK_MARKS else text)
        raise ValueError(f"the value of `{key}` {error}") from None
    return _plain(text) if key in TEXT_KEYS and not isinstance(found, str) else found


def _yaml(text: str, *, is_text: bool) -> Any:
    """The value of a text with one key."""
    nested = max((len(found[0]) for line in text.split("\n") if (found := _INDENT.match(line))), default=0)
    brackets = text.count("[") + text.count("{")
    if len(text) > _MOST_YAML or brackets > _MOST_BRACKETS or nested > _DEEPEST:
        raise ValueError("is too long or too nested for YAML; write it as JSON")
    loader = yaml.BaseLoader if is_text else yaml.SafeLoader  # Both make only plain values.
    try:
        # An alias is found before the text is loaded, because a few aliases can stand for millions of values.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise _HasAlias
        loaded = yaml.load(text, Loader=loader)  # noqa: S506  the loader is one of two safe ones
        ((_key, value),) = loaded.items()
        json.dumps(value, allow_nan=False)
    except yaml.YAMLError:
        raise ValueError("is not valid YAML") from None
    except _HasAlias:
        raise ValueError("uses an alias, which haft does not support") from None
    except (TypeError, AttributeError, ValueError, RecursionError):
        raise ValueError("cannot be represented in JSON; write dates as text") from None
    return value


class _HasAlias(Exception):
    pass


def _plain(text: str) -> str:
    """A text that is not valid YAML: its lines as one, without quotes around them."""
    line = " ".join(text.split())
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] and line[0] in "\"'" else line
