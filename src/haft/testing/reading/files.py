"""Reads scenario files: `NAME.scenario.yaml`, `.yml`, `.toml` or `.json`. Remembers the line of each part, for
messages."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import yaml

from haft.contracts import BadUsage
from haft.testing.reading.parts import MOST_LEVELS
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
        line = data.count(b"\n", 0, error.start) + 1
        raise BadUsage(f"{path}:{line}: this is not UTF-8: {error.reason} at byte {error.start}") from error
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
    """The value in a file, and the lines of its parts."""
    try:
        if path.endswith(".toml"):
            return tomllib.loads(text), _toml_lines(text)
        if path.endswith(".json"):
            return _from_json(path, text)
        return _from_yaml(path, text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+)", str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise BadUsage(f"{path}:{line}: this is not TOML: {error}") from error
    except json.JSONDecodeError as error:
        raise BadUsage(f"{path}:{error.lineno}: this is not JSON: {error.msg}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise BadUsage(f"{path}:{line}: this is not YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the character U+{ord(text[error.position]):04X} must be written as an escape in double quotes"
        raise BadUsage(f"{path}:{line}: this is not YAML: {what}") from error
    except RecursionError as error:
        raise BadUsage(f"{path}:1: the file is nested too deeply") from error
    except ValueError as error:  # For example a number of thousands of digits, which Python does not read.
        raise BadUsage(f"{path}:1: a value cannot be read: {error}") from error


def _from_json(path: str, text: str) -> tuple[Any, dict[str, int]]:
    twice: list[str] = []
    value = json.loads(text, object_pairs_hook=lambda pairs: _noted(pairs, twice))
    lines = _json_lines(path, text)
    if twice:
        raise BadUsage(f"{path}:1: the key {twice[0]!r} appears twice in one table")
    return value, lines


def _from_yaml(path: str, text: str) -> tuple[Any, dict[str, int]]:
    node = yaml.compose(text, Loader=_Loader)
    lines: dict[str, int] = {}
    _note_lines(path, node, (), lines)
    return (None if node is None else _Loader("").construct_document(node)), lines


def _noted(pairs: Sequence[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    """A table of JSON. Notes the keys that appear twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _value in pairs)
        twice += [key for key, count in counts.items() if count > 1]
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
        (tag, pattern) for tag, pattern in pairs if tag.rpartition(":")[2] not in ("timestamp", "bool", "int", "float")
    ]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_MERGE: Final = "tag:yaml.org,2002:merge"
_FORMS: Final = {
    "tag:yaml.org,2002:bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"),
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+][0-9]+)$"
    ),
    "tag:yaml.org,2002:null": re.compile(r"(?:~|null|Null|NULL|)$"),
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _FORMS["tag:yaml.org,2002:bool"], [*"tTfF"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _FORMS["tag:yaml.org,2002:int"], [*"-+0123456789"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FORMS["tag:yaml.org,2002:float"], [*"-+.0123456789"])


_TAGS: Final = frozenset(f"tag:yaml.org,2002:{each}" for each in ("str", "int", "float", "bool", "null", "map", "seq"))


def _note_lines(path: str, node: yaml.Node | None, at: tuple[str, ...], lines: dict[str, int]) -> None:
    """Note the line of each part. Refuse keys that appear twice, values that JSON does not have, and deep nesting."""
    if node is None:
        return
    line = node.start_mark.line + 1
    if node.tag not in _TAGS:
        raise BadUsage(f"{path}:{line}: the tag {node.tag.replace('tag:yaml.org,2002:', '!!')} is not supported here")
    if len(at) > MOST_LEVELS:
        raise BadUsage(f"{path}:{line}: the file is nested deeper than {MOST_LEVELS} levels")
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == _MERGE:
                raise BadUsage(f"{path}:{line}: merge keys (`<<`) are not supported here; write the values again")
            if not isinstance(key, yaml.ScalarNode):
                raise BadUsage(f"{path}:{line}: a key must be a text")
            if key.value in seen:
                raise BadUsage(f"{path}:{line}: the key {key.value!r} appears twice in one table")
            seen.add(key.value)
            lines[".".join((*at, key.value))] = line
            _note_lines(path, key, at, lines)
            _note_lines(path, value, (*at, key.value), lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[".".join((*at, str(index)))] = value.start_mark.line + 1
            _note_lines(path, value, (*at, str(index)), lines)
    elif node.tag in _FORMS and not _FORMS[node.tag].match(node.value):
        raise BadUsage(f"{path}:{line}: {node.value!r} is not {node.tag.replace('tag:yaml.org,2002:', '!!')}")


def _json_lines(path: str, text: str) -> dict[str, int]:
    """The lines of the parts of a JSON text, which a YAML parser mostly understands; none if it does not."""
    lines: dict[str, int] = {}
    try:
        _note_lines(path, yaml.compose(text.replace("\t", " "), Loader=_Loader), (), lines)
    except yaml.YAMLError:
        return {}
    return lines


_TOML_TABLE: Final = re.compile(r"\s*\[(\[)?([^\]]+)\]")
_TOML_KEY: Final = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=")


def _toml_lines(text: str) -> dict[str, int]:
    """The lines of tables and keys in a TOML text. Keys inside inline tables and texts of several lines are not
    told apart, so that a line may be that of the part around."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    at = ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _TOML_TABLE.match(line):
            name = found[2].strip().replace('"', "").replace("'", "")
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
