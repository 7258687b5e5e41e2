"""Reads scenario files: `NAME.scenario.yaml`, `.yml`, `.toml` or `.json`. Remembers the line of each part, for
messages."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import yaml

from haft.contracts import BadUsage
from haft.testing.reading.spellings import scenarios_from
from haft.testing.scenarios.scenario import Location, Scenario

ENDINGS: Final = (".scenario.yaml", ".scenario.yml", ".scenario.toml", ".scenario.json")
MOST_BYTES: Final = 10_000_000
_FORMATS: Final = (".yaml", ".yml", ".toml", ".json")
_SKIPPED: Final = frozenset({"node_modules", "__pycache__", "venv"})


def is_scenario_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file has the name of a scenario file."""
    return os.fspath(path).endswith(ENDINGS)


def find_scenario_files(paths: Iterable[str]) -> list[str]:
    """The scenario files at paths: every file that is named, and in folders those with the name of a scenario file, in
    a stable order. Hidden folders except `.agents`, and installed packages, are skipped. Raises `BadUsage` for a path
    that does not exist."""
    found: dict[str, None] = {}
    for path in paths:
        if os.path.isdir(path):
            found.update(dict.fromkeys(_inside(path)))
        elif os.path.exists(path):
            if not path.endswith(_FORMATS):
                raise BadUsage(f"{path} is not a scenario file", hint=f"its name must end with {' or '.join(_FORMATS)}")
            found[path] = None
        else:
            raise BadUsage(f"there is no file or folder {path}")
    return list(found)


def _inside(folder: str) -> Iterator[str]:
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not _is_skipped(each))
        yield from (os.path.normpath(os.path.join(at, each)) for each in sorted(files) if is_scenario_file(each))


def _is_skipped(folder: str) -> bool:
    """Whether a folder with this name is skipped. `.agents` has the tools of a project."""
    return folder in _SKIPPED or (folder.startswith(".") and folder != ".agents")


def read_scenario_file(path: str) -> list[Scenario]:
    """The scenarios in a file, one for each case. Raises `BadUsage` with the line and the mistake."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise BadUsage(f"{path} is larger than {MOST_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadUsage(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    value, lines = _parsed(path, text)
    return scenarios_from(
        value,
        directory=os.path.dirname(os.path.abspath(path)),
        name=_stem(path),
        at=Location(path, 1, lines),
    )


def _stem(path: str) -> str:
    name = os.path.basename(path)
    ending = next((each for each in (*ENDINGS, *_FORMATS) if name.endswith(each)), "")
    return name.removesuffix(ending)


def _parsed(path: str, text: str) -> tuple[Any, dict[str, int]]:
    if path.endswith(".toml"):
        try:
            return tomllib.loads(text), _toml_lines(text)
        except tomllib.TOMLDecodeError as error:
            raise BadUsage(f"{path} is not TOML: {error}") from error
    if path.endswith(".json"):
        try:
            value = json.loads(text, object_pairs_hook=lambda pairs: _unique(path, pairs))
        except json.JSONDecodeError as error:
            raise BadUsage(f"{path}:{error.lineno}: this is not JSON: {error.msg}") from error
        except RecursionError as error:
            raise BadUsage(f"{path} is nested too deeply") from error
        return value, _json_lines(text)
    try:
        node = yaml.compose(text, Loader=_Loader)
        lines: dict[str, int] = {}
        _note_lines(path, node, "", lines)
        return (None if node is None else _Loader("").construct_document(node)), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f":{mark.line + 1}"
        raise BadUsage(f"{path}{line}: this is not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise BadUsage(f"{path} is not YAML: {error}") from error
    except RecursionError as error:
        raise BadUsage(f"{path} is nested too deeply") from error


def _unique(path: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadUsage(f"{path}: the key {key!r} appears twice in one table")
        found[key] = value
    return found


class _Loader(yaml.SafeLoader):
    """YAML whose values are those of JSON: no dates, and `yes`, `on` and the like are texts. It has no aliases, because
    a few of them can stand for a huge value."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            problem = "aliases (`*name`) are not supported here; write the value again"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.peek_event().start_mark)  # type: ignore[no-untyped-call]  # not typed there
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in pairs
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool", "tag:yaml.org,2002:int")
    ]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), [*"tTfF"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"), [*"-+0123456789"])


def _note_lines(path: str, node: yaml.Node | None, at: str, lines: dict[str, int]) -> None:
    """Note the line of each part. Refuse keys that appear twice."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            name = str(key.value)
            line = key.start_mark.line + 1
            if name in seen:
                raise BadUsage(f"{path}:{line}: the key {name!r} appears twice in one table")
            seen.add(name)
            part = f"{at}.{name}".lstrip(".")
            lines[part] = line
            _note_lines(path, value, part, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            part = f"{at}.{index}".lstrip(".")
            lines[part] = value.start_mark.line + 1
            _note_lines(path, value, part, lines)


def _json_lines(text: str) -> dict[str, int]:
    """The lines of the parts of a JSON text, which a YAML parser mostly understands; none if it does not."""
    lines: dict[str, int] = {}
    try:
        _note_lines("", yaml.compose(text.replace("\t", " "), Loader=_Loader), "", lines)
    except (yaml.YAMLError, BadUsage, RecursionError):
        return {}
    return lines


_TOML_TABLE: Final = re.compile(r"\s*\[(\[)?\s*([^\]]+?)\s*\]")
_TOML_KEY: Final = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=")


def _toml_lines(text: str) -> dict[str, int]:
    """The lines of tables and keys in a TOML text. Keys inside inline tables and texts of several lines are not
    told apart, so that a line may be that of the part around."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    at = ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _TOML_TABLE.match(line):
            name = found[2].replace('"', "").replace("'", "")
            if found[1]:
                counts[name] = counts.get(name, -1) + 1
                name = f"{name}.{counts[name]}"
            else:
                head, dot, rest = name.partition(".")
                name = f"{head}.{counts[head]}.{rest}" if head in counts and dot else name
            at = name
            lines.setdefault(at, number)
        elif found := _TOML_KEY.match(line):
            key = found[1].replace('"', "").replace("'", "").replace(" ", "")
            lines.setdefault(f"{at}.{key}".lstrip("."), number)
    return lines
