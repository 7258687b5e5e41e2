"""The first expectation of a scenario that expects nothing yet: what its call did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from haft.testing.reading.quoting import block_text, quoted
from haft.testing.scenarios.scenario import Result

_STEP: Final = 2


def first_expectation(result: Result, table: yaml.MappingNode, text: str, output: str) -> tuple[int, str]:
    """Where in `text` the expectation of a scenario belongs, whose table is `table`, and what to write there."""
    expect: dict[str, Any] = {"output": output}
    if result.changed:
        expect["files"] = dict(result.changed)
    if table.flow_style:
        at = len(text[: table.end_mark.index - 1].rstrip())
        comma = ", " if table.value and text[at - 1] != "," else ""
        return at, f'{comma}"expect": {quoted(expect)}'
    at = len(text[: _end(table)].rstrip())
    newline = text.find("\n", at)
    at, before = (len(text), "\n") if newline < 0 else (newline + 1, "")
    return at, before + "".join(_lines({"expect": expect}, table.value[0][0].start_mark.column))


def _end(node: yaml.Node) -> int:
    """Where the last value of a node ends: the end of a block node is where the next token begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return int(node.end_mark.index)


def _lines(table: Mapping[str, Any], indent: int) -> list[str]:
    lines = []
    for key, value in table.items():
        start = f"{' ' * indent}{_key(key)}:"
        if isinstance(value, Mapping) and key in ("expect", "files"):
            lines += [f"{start}\n", *_lines(value, indent + _STEP)]
        elif (
            isinstance(value, str) and "\n" in value[:-1] and (written := block_text(value, indent + _STEP)) is not None
        ):
            lines.append(f"{start} {written}")
        else:
            lines.append(f"{start} {quoted(value)}\n")
    return lines


def _key(key: str) -> str:
    """A key as YAML: plain if that cannot be taken for anything else."""
    return key if key.replace("/", "").replace("_", "").isalpha() and not _is_word(key) else quoted(key)


def _is_word(key: str) -> bool:
    return not isinstance(yaml.safe_load(key), str)
