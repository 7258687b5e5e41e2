"""Writes plain data as YAML that people like to read, and that reads back as exactly the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haft.lazy import regex
from haft.testing.reading.quoting import block_text, escaped, quoted

_PLAIN: Final = regex(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_PLAIN: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "nan", "inf"})
_WIDE: Final = 100


def yaml_text(data: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """The data as YAML, below the comments."""
    head = "".join(f"# {_on_one_line(each)}\n" for each in comments)
    return head + "".join(_table(data, 0))


def _on_one_line(text: str) -> str:
    return escaped(text.replace("\n", " ").replace("\t", " "))


def _table(data: Mapping[str, Any], indent: int) -> Iterator[str]:
    for key, value in data.items():
        yield f"{' ' * indent}{_key(key)}:{_value(value, indent)}"


def _value(value: Any, indent: int) -> str:
    """What stands after the colon of a key, with the end of its line."""
    if isinstance(value, str) and "\n" in value:
        block = block_text(value, indent + 2)
        if block is not None:
            return f" {block}" if block.endswith("\n") else f" {block}\n"
    short = f" {inline(value)}\n"
    if isinstance(value, Mapping) and value and (len(short) + indent > _WIDE or _has_lines(value)):
        return "\n" + "".join(_table(value, indent + 2))
    if isinstance(value, list) and value and len(short) + indent > _WIDE:
        return "\n" + "".join(f"{' ' * indent}  - {inline(each)}\n" for each in value)
    return short


def _has_lines(value: Mapping[str, Any]) -> bool:
    return any((isinstance(each, str) and "\n" in each) or isinstance(each, Mapping) for each in value.values())


def inline(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_PLAIN:
        return value
    return quoted(value)


def _key(key: str) -> str:
    return inline(str(key))
