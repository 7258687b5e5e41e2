"""Reads the description of a function and of its parameters from a docstring.

`signature` puts the texts into the schema. Three styles are read, Google (`Args:`), NumPy (`Parameters` underlined) and
Sphinx (`:param x:`); the description is the whole text before the first section or field of such a style. If a
docstring has none of these styles, all of it is the description, so that reading never fails.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_GOOGLE: Final = re.compile(r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*")
_GOOGLE_ITEM: Final = re.compile(r"(?P<names>\*{0,2}\w+)\s*(\([^)]*\))?\s*:(?P<text>.*)")
_NUMPY: Final = re.compile(r"(Parameters|Other Parameters)\s*")
_UNDERLINE: Final = re.compile(r"\s*-{3,}\s*")
_NUMPY_ITEM: Final = re.compile(r"(?P<names>\*{0,2}\w+(\s*,\s*\*{0,2}\w+)*)\s*(:.*)?")
_SPHINX: Final = re.compile(r":(param|parameter|arg|argument|key|keyword)\b[^:]*?(?P<name>\w+)\s*:(?P<text>.*)")
_SPHINX_OTHER: Final = re.compile(r":\w+[^:]*:.*")


@dataclass(slots=True)
class Docstring:
    """The parts of a docstring."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Parse a docstring of any style."""
    lines = inspect.cleandoc(text or "").splitlines()
    found = Docstring()
    first: int | None = None
    for index, line in enumerate(lines):
        if _GOOGLE.fullmatch(line.strip()):
            _read_indented(lines, index + 1, _indent(line), _GOOGLE_ITEM, found)
        elif _NUMPY.fullmatch(line.strip()) and index + 1 < len(lines) and _UNDERLINE.fullmatch(lines[index + 1]):
            _read_flush(lines, index + 2, _indent(line), found)
        elif _SPHINX.fullmatch(line.strip()):
            _read_sphinx(lines, index, found)
        else:
            continue
        first = index if first is None else first
    found.description = "\n".join(lines[:first]).strip()
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_indented(lines: Sequence[str], start: int, margin: int, item: re.Pattern[str], found: Docstring) -> None:
    """Google style: items are indented under the header, and the further lines of an item are indented deeper than its
    first line."""
    column: int | None = None
    name: str | None = None
    for line in lines[start:]:
        if not line.strip():
            continue
        if _indent(line) <= margin:
            return
        column = _indent(line) if column is None else column
        match = item.fullmatch(line.strip()) if _indent(line) <= column else None
        if match:
            name = match["names"].lstrip("*")
            found.parameters.setdefault(name, match["text"].strip())
        elif name is not None:
            found.parameters[name] = f"{found.parameters[name]} {line.strip()}".strip()


def _read_flush(lines: Sequence[str], start: int, margin: int, found: Docstring) -> None:
    """NumPy style: names are at the header's column, and their descriptions are indented below."""
    names: list[str] = []
    for index in range(start, len(lines)):
        line = lines[index]
        if not line.strip():
            continue
        if _indent(line) > margin:
            for name in names:
                found.parameters[name] = f"{found.parameters[name]} {line.strip()}".strip()
            continue
        match = _NUMPY_ITEM.fullmatch(line.strip())
        if not match or (index + 1 < len(lines) and _UNDERLINE.fullmatch(lines[index + 1])):
            return
        names = [name.strip().lstrip("*") for name in match["names"].split(",")]
        for name in names:
            found.parameters.setdefault(name, "")


def _read_sphinx(lines: Sequence[str], start: int, found: Docstring) -> None:
    match = _SPHINX.fullmatch(lines[start].strip())
    assert match is not None
    words = [match["text"].strip()]
    for line in lines[start + 1 :]:
        if not line.strip() or _SPHINX_OTHER.fullmatch(line.strip()) or _indent(line) <= _indent(lines[start]):
            break
        words.append(line.strip())
    found.parameters.setdefault(match["name"], " ".join(words).strip())
