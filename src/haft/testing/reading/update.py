"""Writes what a call did into its scenario file, in place of what the file expects.

Only expectations that the file has are replaced; everything else, also comments, stays as it is. A scenario that
expects nothing yet gets its output and files. Nothing is written for a call that ended in another way than the scenario
says: it was not the call that somebody wants to keep. Workspace paths and ids of runs are written as placeholders, and
also times, if they are times of today.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from haft.contracts import BadUsage
from haft.testing.reading.files import read_scenario_file
from haft.testing.reading.first_expectation import first_expectation
from haft.testing.reading.quoting import block_text, quoted
from haft.testing.scenarios.masks import days_around, masked
from haft.testing.scenarios.scenario import Mismatch, Result, Scenario
from haft.values import dataclass

_UPDATABLE: Final = re.compile(r"expect\.(message|output|stderr|result|exit|asked|files\..+)$", re.DOTALL)
_OTHER_END: Final = ("tool", "expect.status", "expect.error")
_BEFORE_KEY: Final = re.compile(" *(?:- +)*")
_TEXTS: Final = ("message", "output", "stderr")


@dataclass(frozen=True)
class Updated:
    """What became of the mismatches of one file."""

    path: str
    replaced: tuple[str, ...]
    """The parts of the scenarios that were replaced."""
    left: tuple[str, ...]
    """The parts that no update can replace."""


def update_files(results: Iterable[Result]) -> list[Updated]:
    """Update the scenario files of results. Raises `BadUsage` if cases contradict each other in what they share."""
    by_file: dict[str, list[Result]] = {}
    for each in results:
        if each.outcome is not None:
            by_file.setdefault(each.scenario.location.path, []).append(each)
    updated = [_update(path, found) for path, found in by_file.items()]
    return [each for each in updated if each.replaced or each.left]


def _update(path: str, results: Sequence[Result]) -> Updated:
    if path.endswith(".toml"):
        return Updated(path, (), tuple(_named(result, each.path) for result in results for each in result.mismatches))
    before = read_scenario_file(path)
    if any(each.scenario not in before for each in results):
        raise BadUsage(f"{path} changed while its scenarios ran", hint="run them again")
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    try:
        nodes = dict(_nodes(yaml.compose(text, Loader=yaml.SafeLoader), ""))
    except yaml.YAMLError as error:
        raise BadUsage(
            f"{path} cannot be updated, because it has tabs or is no YAML", hint="change it by hand"
        ) from error
    edits: dict[int, tuple[int, str]] = {}
    updated: set[int | None] = set()
    replaced: list[str] = []
    left: list[str] = []
    for result in results:
        if any(each.path in _OTHER_END for each in result.mismatches):
            left += [_named(result, each.path) for each in result.mismatches]
            continue
        if (table := _expects_nothing(result, nodes)) is not None:
            output = _masked((result.outcome or {})["output"], result)
            at, new = first_expectation(result, table, text, output)
            edits[at] = (at, edits.get(at, (at, ""))[1] + new)
            updated.add(result.scenario.case)
            replaced.append(_named(result, "expect"))
            continue
        for each in result.mismatches:
            node = _node(each, result, nodes)
            value = _value(each, result)
            if node is None or value is None:
                left.append(_named(result, each.path))
                continue
            start, end = node.start_mark.index, node.end_mark.index
            new = _written(value[0], text, node, is_json=path.endswith(".json"))
            if edits.setdefault(start, (end, new)) != (end, new):
                raise BadUsage(
                    f"{path}:{node.start_mark.line + 1}: several cases share this expectation, and differ in it",
                    hint="write the expectation into each case",
                )
            updated.add(result.scenario.case)
            replaced.append(_named(result, each.path))
    for start in sorted(edits, reverse=True):
        end, new = edits[start]
        text = text[:start] + new + text[end:]
    if replaced:
        _replace(path, text, before, updated)
    return Updated(path, tuple(replaced), tuple(left))


def _named(result: Result, part: str) -> str:
    """A part of a scenario with its line and, if there are several cases, the name of the case."""
    name = "" if result.scenario.case is None else f" of {result.scenario.name!r}"
    return f"`{part}`{name} (line {result.scenario.location.line_of(part)})"


def _expects_nothing(result: Result, nodes: Mapping[str, yaml.Node]) -> yaml.MappingNode | None:
    """The table of a scenario, or of its case, if neither says what to expect."""
    case = result.scenario.case
    if result.scenario.fault is not None:  # A fault says by itself what to expect.
        return None
    tables = [nodes.get(""), *([] if case is None else [nodes.get(f"cases.{case}")])]
    for table in tables:
        if not isinstance(table, yaml.MappingNode) or any(key.value.startswith("expect") for key, _ in table.value):
            return None
    return tables[-1]  # type: ignore[return-value]  # checked in the loop


def _replace(path: str, text: str, before: Sequence[Scenario], updated: Collection[int | None]) -> None:
    """Write a whole file, so that no reader sees half of it, and only if it reads back and no other case changes."""
    path = os.path.realpath(path)
    if not os.access(path, os.W_OK):
        raise BadUsage(f"{path} is read-only")
    stem, ending = os.path.splitext(path)
    temporary = f"{stem}.{os.getpid()}.tmp{ending}"
    try:
        with open(temporary, "x", encoding="utf-8", newline="") as file:
            file.write(text)
        try:
            after = read_scenario_file(temporary)
            if any(
                one.case not in updated and one.expect != other.expect for one, other in zip(before, after, strict=True)
            ):
                raise BadUsage(
                    f"{path}: a case shares an expectation with others that passed, or did not run",
                    hint="write the expectation into each case",
                )
            shutil.copymode(path, temporary)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise BadUsage(f"{path} cannot be written: {error.strerror}") from error


def _nodes(node: yaml.Node | None, at: str) -> Iterator[tuple[str, yaml.Node]]:
    if node is not None:
        yield at, node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _nodes(value, f"{at}.{key.value}".lstrip("."))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _nodes(value, f"{at}.{index}".lstrip("."))
            if at.endswith("expectedFiles") and isinstance(value, yaml.MappingNode):
                found = {key.value: inner for key, inner in value.value}
                if "path" in found and "content" in found:
                    path = f"{at.removesuffix('expectedFiles')}expect.files.{found['path'].value}"
                    yield path, found["content"]


def _node(mismatch: Mismatch, result: Result, nodes: Mapping[str, yaml.Node]) -> yaml.Node | None:
    """The node of an expectation: in the case of the scenario, or in what all cases share."""
    if not _UPDATABLE.match(mismatch.path):
        return None
    case = result.scenario.case
    for prefix in ([f"cases.{case}."] if case is not None else []) + [""]:
        for ending in (".equals", ".content", ""):
            node = nodes.get(f"{prefix}{mismatch.path}{ending}")
            if node is not None and (isinstance(node, yaml.ScalarNode) or mismatch.path == "expect.result"):
                return node
    return None


def _value(mismatch: Mismatch, result: Result) -> tuple[Any] | None:
    """The value to write; None if it cannot be written."""
    part = mismatch.path.split(".")[1]
    outcome = result.outcome or {}
    if part == "result":
        return (outcome["result"],)
    if part == "files" and mismatch.actual is not None and not isinstance(mismatch.actual, str):
        return None
    if part in (*_TEXTS, "files") and isinstance(mismatch.actual, str):
        return (_masked(mismatch.actual, result),)
    return (mismatch.actual,)


def _masked(text: str, result: Result) -> str:
    """A text with placeholders."""
    return masked(text, result.workspace, times=days_around(time.time()))


def _written(value: Any, text: str, node: yaml.Node, *, is_json: bool) -> str:
    """A value as it is written at a node: a block for a text of several lines, if the node was one; else JSON, which is
    YAML too."""
    is_block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    if isinstance(value, str) and is_block and not is_json:
        line = text.rfind("\n", 0, node.start_mark.index) + 1
        indent = len(_BEFORE_KEY.match(text, line)[0]) + 2  # type: ignore[index]  # It matches every line.
        if (block := block_text(value, indent)) is not None:
            return block
        return quoted(value) + "\n"
    return quoted(value)
