"""Adds tables such as `[providers.NAME]` and single keys to the text of a TOML file, and removes them, line by line, so
that everything else stays as it was written. The new text is parsed again and compared with the old one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.config.toml_text import PIECES, toml_key, toml_value, with_plain_ends
from haft.contracts import BadUsage

_BY_HAND: Final = "edit the file by hand"


def table_text(path: Sequence[str], values: Mapping[str, Any]) -> str:
    """The TOML text of a table, as people write it."""
    header = ".".join(map(toml_key, path))
    return "".join([f"[{header}]\n", *(f"{toml_key(name)} = {toml_value(one)}\n" for name, one in values.items())])


def with_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """The text with one more table at its end. Raises `BadUsage` if the file cannot get the table there."""
    text, ending = with_plain_ends(text)
    expected = _copy(_parsed(text))
    above = expected
    for name in path[:-1]:
        above = above.setdefault(name, {})
        if not isinstance(above, dict):
            raise BadUsage(f"`{'.'.join(path)}` cannot be written: `{name}` is not a table", hint=_BY_HAND)
    above[path[-1]] = dict(values)
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return _checked(f"{text}{gap}{table_text(path, values)}", expected).replace("\n", ending)


def without_table(text: str, path: Sequence[str]) -> str:
    """The text without a table and the tables below it. Comments above a table that stays are kept. Raises `BadUsage`
    if the table is not written with a header of its own."""
    text, ending = with_plain_ends(text)
    expected = _copy(_parsed(text))
    above = expected
    for name in path[:-1]:
        above = above[name]
    del above[path[-1]]
    lines = text.split("\n")
    for start, end in reversed(_ranges(text, path, len(lines))):
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        if end < len(lines) and not lines[end].strip() and (start == 0 or not lines[start - 1].strip()):
            end += 1
        del lines[start:end]
    return _checked("\n".join(lines), expected, gone=path).replace("\n", ending)


def with_key(text: str, table: Sequence[str], name: str, value: Any) -> str:
    """The text with one key of a table set. The key is added below the header of the table; as a dotted key, if the
    file writes the table so; else in a new table at the end."""
    text, ending = with_plain_ends(text)
    before = _parsed(text)
    expected = _copy(before)
    above = expected
    for each in table:
        above = above.setdefault(each, {})
        if not isinstance(above, dict):
            raise BadUsage(f"`{'.'.join(table)}` cannot be written: `{each}` is not a table", hint=_BY_HAND)
    if name in above:
        text = without_key(text, table, name)
    above[name] = value
    line = f"{toml_key(name)} = {toml_value(value)}"
    dotted = f"{'.'.join(map(toml_key, table))}.{line}"
    for changed in (*_below_header(text, table, line), *_above_tables(text, dotted)):
        if _means(changed, expected):
            return changed.replace("\n", ending)
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return _checked(f"{text}{gap}{table_text(table, {name: value})}", expected).replace("\n", ending)


def without_key(text: str, table: Sequence[str], name: str) -> str:
    """The text without one key of a table. Raises `BadUsage` if the key is not on a line of its own."""
    text, ending = with_plain_ends(text)
    expected = _copy(_parsed(text))
    above = expected
    for each in table:
        above = above[each]
    del above[name]
    lines = text.split("\n")
    for number in range(len(lines)):
        if name in lines[number]:
            changed = "\n".join([*lines[:number], *lines[number + 1 :]])
            if _means(changed, expected) or _means(changed, _without_empty(expected, table)):
                return changed.replace("\n", ending)
    raise BadUsage(f"`{'.'.join((*table, name))}` cannot be removed line by line", hint=_BY_HAND)


def _below_header(text: str, table: Sequence[str], line: str) -> list[str]:
    """The text with one more line in a table that has a header: after its last key."""
    lines = text.split("\n")
    found = []
    for start, end in _ranges(text, table, len(lines))[:1]:
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        found.append("\n".join([*lines[:end], line, *lines[end:]]))
    return found


def _above_tables(text: str, line: str) -> list[str]:
    """The text with one more line before the first table, after a line that begins with the same name."""
    lines = text.split("\n")
    first = line.partition(".")[0]
    return [
        "\n".join([*lines[: number + 1], line, *lines[number + 1 :]])
        for number in reversed(range(len(lines)))
        if lines[number].lstrip().startswith((f"{first}.", f"{first} ."))
    ]


def _means(text: str, expected: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        return False


def _without_empty(tables: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The tables without the table at `path`, if nothing is left in it."""
    copy = _copy(tables)
    above = copy
    for name in path[:-1]:
        above = above.get(name, {})
    if path and above.get(path[-1]) == {}:
        del above[path[-1]]
    return copy


def _ranges(text: str, path: Sequence[str], last: int) -> list[tuple[int, int]]:
    """The lines of the table and of the tables below it: the first line of each, and the line after it."""
    headers: list[tuple[int, bool]] = []
    for match in PIECES.finditer(text):
        if match["table"] is not None:
            names = _names(match["table"] + match["below"])
            headers.append((text.count("\n", 0, match.start("table")), names[: len(path)] == list(path)))
    starts = [line for line, _inside in headers]
    return [(line, next((each for each in starts if each > line), last)) for line, is_inside in headers if is_inside]


def _names(header: str) -> list[str]:
    """The names in the header of a table."""
    found: list[str] = []
    inner: Any = tomllib.loads(f"[{header.strip()}]\n")
    while isinstance(inner, dict) and inner:
        ((name, inner),) = inner.items()
        found.append(name)
    return found


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadUsage(f"the file cannot be understood: {error}", hint=_BY_HAND) from error


def _copy(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copy(one) if isinstance(one, dict) else one for name, one in tables.items()}


def _checked(text: str, expected: dict[str, Any], gone: Sequence[str] = ()) -> str:
    """The text, if it means what is expected. The tables above one that is gone may be missing, if they are empty."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadUsage(f"the file cannot be changed line by line: {error}", hint=_BY_HAND) from error
    alternatives = [expected]
    for length in range(len(gone) - 1, 0, -1):
        alternatives.append(_without_empty(alternatives[-1], gone[:length]))
    if found not in alternatives:
        raise BadUsage("the file cannot be changed line by line: more than this table would change", hint=_BY_HAND)
    return text
