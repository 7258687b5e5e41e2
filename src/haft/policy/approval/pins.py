"""Definitions that were approved, by a person or a rule. Approval holds for the tool as it was: what it says of itself,
and its files.

haft's own tools and those that the embedding program hands over are vouched for by these. For all others the bytes of
the files that make up the tool belong to the definition, and of the files that these load as code, as far as that can
be told. The text of small ones is kept, to show what changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from typing import Any, Final

from haft.contracts import ToolSpec
from haft.policy.approval.sourced import Loaded, loaded_by
from haft.storage import Connection, KeptPin, encode
from haft.values import dataclass

LARGEST_SHOWN: Final = 256_000
"""Bytes of one file whose text is kept."""
MOST_DIFFERENCE: Final = 2_000
"""Lines of a difference."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A definition."""

    digest: str
    definition: dict[str, Any]


def loaded_files(spec: ToolSpec) -> Loaded:
    """The files that a tool's own files load. Of plugins and templates these are among its own."""
    if not spec.files or spec.is_vouched_for:
        return Loaded()
    if spec.kind not in ("amp-toolbox", "bash-plugin") and spec.provenance != "installed":
        return Loaded()
    return loaded_by(spec.files)


def held_files(spec: ToolSpec) -> dict[str, str]:
    """The files that an approval of a tool holds for, and their digests."""
    return {path: str(held_file(path)["digest"]) for path in (*spec.files, *loaded_files(spec).files)}


def pin_of(spec: ToolSpec) -> Pin | None:
    """The tool as it is now; None where its maker vouches for it."""
    if spec.provenance == "builtin" and "export" not in spec.meta:
        return None
    definition: dict[str, Any] = {
        "name": spec.name,
        "kind": spec.kind,
        "origin": spec.origin,
        "description": spec.description,
        "inputSchema": spec.input_schema,
        "outputSchema": spec.output_schema,
        "effects": spec.effects.to_json(),
        "digest": spec.digest,
        "files": {path: held_file(path) for path in (*spec.files, *loaded_files(spec).files)},
    }
    bare = {**definition, "files": {path: file["digest"] for path, file in definition["files"].items()}}
    return Pin(hashlib.sha256(b"haft definition\0" + encode(bare)).hexdigest(), definition)


def is_unchanged(pin: Pin) -> bool:
    """Whether the files of a tool still are those that were agreed to."""
    return all(held_file(path)["digest"] == file["digest"] for path, file in pin.definition["files"].items())


def held_file(path: str) -> dict[str, Any]:
    """A file's digest, and its text where that is short. One that cannot be read is like no other."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return {"digest": "not a regular file", "text": None}
            data = file.read(LARGEST_SHOWN + 1)
            digest = hashlib.sha256(data)
            while more := file.read(1 << 20):
                digest.update(more)
    except OSError as error:
        return {"digest": f"not readable: {error.strerror}", "text": None}
    text = data.decode("utf-8", "backslashreplace") if len(data) <= LARGEST_SHOWN and b"\0" not in data else None
    return {"digest": digest.hexdigest(), "text": text}


class Pins:
    """What was agreed to in one workspace."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._store = connection.pins
        self._workspace = workspace

    def of(self, tool: str) -> Pin | None:
        kept = self._store.of(self._workspace, tool)
        return None if kept is None else Pin(kept.digest, kept.definition)

    def holding(self, path: str) -> list[tuple[str, Pin]]:
        """Every tool that a file is part of, with its definition."""
        found = self._store.holding(self._workspace, path)
        return [(kept.tool, Pin(kept.digest, kept.definition)) for kept in found if path in kept.definition["files"]]

    def hold(self, tool: str, pin: Pin, who: str) -> str:
        """Keep a definition where none is kept; the digest of the one that is kept then."""
        return self._store.hold(self._workspace, KeptPin(tool, pin.digest, pin.definition), who, time.time())

    def agree(self, tool: str, pin: Pin, who: str) -> None:
        self._store.agree(self._workspace, KeptPin(tool, pin.digest, pin.definition), who, time.time())


def difference(before: Pin, after: Pin) -> str:
    """What changed between two definitions, as a person reads it."""
    lines = [*_compared("definition", _told(before), _told(after))]
    old, new = before.definition["files"], after.definition["files"]
    for path in sorted({*old, *new}):
        was, now = old.get(path), new.get(path)
        if was is not None and now is not None and was["digest"] == now["digest"]:
            continue
        lines += _file_compared(path, was, now)
    if len(lines) > MOST_DIFFERENCE:
        lines = [*lines[:MOST_DIFFERENCE], f"… {len(lines) - MOST_DIFFERENCE:_} more lines"]
    return "\n".join(lines)


def _told(pin: Pin) -> str:
    shown = {name: value for name, value in pin.definition.items() if name not in ("files", "digest")}
    return json.dumps(shown, indent=2, ensure_ascii=True, sort_keys=True)


def _file_compared(path: str, was: dict[str, Any] | None, now: dict[str, Any] | None) -> list[str]:
    old, new = was and was["text"], now and now["text"]
    if (was is not None and old is None) or (now is not None and new is None):
        return [f"{path}: from {was and was['digest']} to {now and now['digest']}"]
    return list(_compared(path, old or "", new or ""))


def _compared(name: str, before: str, after: str) -> list[str]:
    import difflib

    return list(
        difflib.unified_diff(
            before.split("\n"), after.split("\n"), f"{name} as agreed to", f"{name} as it is now", lineterm=""
        )
    )
