"""Parses the files of a scenario: those before the call, and those that are expected after it."""

from __future__ import annotations

import base64
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from haft.testing.reading import parts
from haft.testing.reading.parts import Place, check_keys, content, table, text, text_match
from haft.testing.scenarios.scenario import ExpectedFile, GivenFile, Kind, TextMatch


def _path(where: Place, name: str) -> str:
    """A path in the workspace, without a slash at its end."""
    clean = os.path.normpath(parts.name(where, name))
    if not name or clean == "." or clean.startswith("/") or ".." in name.split("/"):
        raise where.wrong(f"has the path {name!r}, which must lie in the workspace")
    return clean


def _mode(where: Place, value: Any) -> int | None:
    if value is None:
        return None
    written = f"{value:o}" if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(written, str) or not re.fullmatch(r"0?[0-7]{3,4}", written):
        raise where.wrong(f'must be a mode such as "755", not {value!r}')
    return int(written, 8)


def _content(where: Place, value: Mapping[str, Any]) -> bytes:
    if "content" in value and "base64" in value:
        raise where.wrong("has both `content` and `base64`; keep one of them")
    if "base64" in value:
        return _decoded(where / "base64", value["base64"])
    return _encoded(where / "content", value.get("content", ""))


def _encoded(where: Place, value: Any) -> bytes:
    """A text, or bytes, which only Python has."""
    return value if isinstance(value, bytes) else content(where, value)


def _decoded(where: Place, value: Any) -> bytes:
    try:
        return base64.b64decode(text(where, value), validate=True)
    except ValueError as error:
        raise where.wrong(f"is not base64: {error}") from error


def given_files(where: Place, value: Any) -> dict[str, GivenFile]:
    """The files before the call: a table of paths, or a list of tables with `path`."""
    return {path: _given_file(where / path, key, one) for path, key, one in _entries(where, value)}


def _entries(where: Place, value: Any) -> list[tuple[str, str, Any]]:
    """The path, the path as it is written, and the value of each file."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        listed = {}
        for index, each in enumerate(value):
            one = dict(table(where / index, each))
            if "path" not in one:
                raise (where / index).wrong("needs `path`")
            key = text(where / index / "path", one.pop("path"))
            if key in listed:
                raise (where / index).wrong(f"names {key!r} again")
            listed[key] = one
        value = listed
    found = [(_path(where, key), key, one) for key, one in table(where, value).items()]
    counts = Counter(path for path, _key, _one in found)
    if twice := next((path for path, count in counts.items() if count > 1), None):
        raise where.wrong(f"names {twice!r} twice")
    return found


def _table(where: Place, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise where.wrong(f"must be a text or a table, not {value!r}")
    return table(where, value)


def _given_file(where: Place, key: str, value: Any) -> GivenFile:
    if key.endswith("/"):
        if value is not None and not isinstance(value, Mapping):
            raise where.wrong("is a directory, because its path ends with a slash; its value must be null")
        return GivenFile(kind="directory", mode=_mode(where / "mode", (value or {}).get("mode")))
    if isinstance(value, str | bytes):
        return GivenFile(_encoded(where, value))
    if value is None:
        raise where.wrong("must be a text; a path that ends with a slash is a directory")
    found = _table(where, value)
    check_keys(where, found, ("content", "base64", "mode", "link"))
    if "link" in found:
        return GivenFile(kind="link", target=parts.name(where / "link", found["link"]))
    return GivenFile(_content(where, found), mode=_mode(where / "mode", found.get("mode")))


def expected_files(where: Place, value: Any) -> dict[str, ExpectedFile]:
    """The files after the call: a table of paths, or a list of tables with `path` and `content`."""
    return {path: _expected_file(where / path, key, one) for path, key, one in _entries(where, value)}


def _expected_file(where: Place, key: str, value: Any) -> ExpectedFile:
    if value is None:
        return ExpectedFile(exists=False)
    if isinstance(value, str):
        return ExpectedFile(content=TextMatch(equals=value), kind="file")
    found = _table(where, value)
    check_keys(where, found, ("content", "base64", "mode", "link", "kind", "exists", "contains", "matches", "equals"))
    if found.get("exists") is False or ("content" in found and found["content"] is None):
        return ExpectedFile(exists=False)
    kind: Kind | None = "directory" if key.endswith("/") else None
    if "kind" in found:
        if (named := text(where / "kind", found["kind"])) not in get_args(Kind):
            raise (where / "kind").wrong(f"must be one of {', '.join(get_args(Kind))}")
        kind = named  # type: ignore[assignment]  # just checked
    mode = _mode(where / "mode", found.get("mode"))
    if "link" in found:
        return ExpectedFile(kind="link", target=text(where / "link", found["link"]), mode=mode)
    wanted: TextMatch | bytes | None = None
    inline = {name: found[name] for name in ("contains", "matches", "equals") if name in found}
    if inline and "content" in found:
        raise where.wrong("has `content` beside " + ", ".join(f"`{each}`" for each in inline))
    if "base64" in found:
        wanted = _decoded(where / "base64", found["base64"])
    elif inline or "content" in found:
        wanted = text_match(where / "content", inline or found["content"])
    return ExpectedFile(content=wanted, mode=mode, kind=kind or ("file" if wanted is not None else None))
