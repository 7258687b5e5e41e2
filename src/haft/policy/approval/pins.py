"""Definitions of tools that a person or a rule approved. An approval holds only as long as the tool's description and
files stay the same.

haft vouches for its own tools, and the embedding program for the tools that it adds. For all other tools, the
definition includes the bytes of the tool's files, and of the files that these load as code, as far as haft can find
them. The text of small files is kept, to show what changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from typing import Any, Final

from haft.contracts import ToolSpec
from haft.policy.approval.loaded_code import LoadedFiles, loaded_by
from haft.storage import Connection, KeptPin, encode
from haft.values import dataclass

MAX_KEPT_BYTES: Final = 256_000
"""The size in bytes up to which the text of a file is kept."""
MAX_DIFFERENCE_LINES: Final = 2_000
"""The maximum number of lines in a diff of two definitions."""
CONFIGURATION: Final = "configuration"
"""Stands before a difference that only the digests of two definitions show."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The definition of a tool, and the digest of the definition."""

    digest: str
    definition: dict[str, Any]


def loaded_files(spec: ToolSpec) -> LoadedFiles:
    """The files that a tool's own files load as code. For kinds of tools whose own files include everything that they
    load, such as templates, the result is empty."""
    if not spec.files or spec.is_vouched_for:
        return LoadedFiles()
    if spec.kind not in ("amp-toolbox", "bash-plugin") and spec.provenance != "installed":
        return LoadedFiles()
    return loaded_by(spec.files)


def pinned_files(spec: ToolSpec) -> dict[str, str]:
    """The files that an approval of a tool covers, and their digests."""
    return {path: str(file_state(path)["digest"]) for path in (*spec.files, *loaded_files(spec).files)}


def pin_of(spec: ToolSpec) -> Pin | None:
    """The definition of a tool as it is now; None if haft itself vouches for the tool."""
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
        "files": {path: file_state(path) for path in (*spec.files, *loaded_files(spec).files)},
    }
    if (server := spec.meta.get("mcp", {}).get("definition")) is not None:
        definition["server"] = server  # What the server says about itself and the tool, so that a diff shows it.
    bare = {**definition, "files": {path: file["digest"] for path, file in definition["files"].items()}}
    return Pin(hashlib.sha256(b"haft definition\0" + encode(bare)).hexdigest(), definition)


def is_unchanged(pin: Pin) -> bool:
    """Whether the files of a tool are still those that were approved."""
    return all(file_state(path)["digest"] == file["digest"] for path, file in pin.definition["files"].items())


def file_state(path: str) -> dict[str, Any]:
    """The digest of a file, and its text; if the file is large, None in place of the text. If the file cannot be read,
    the reason stands in place of the digest."""
    data, digest = b"", hashlib.sha256()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:  # Without a file object: every call reads the files of its tool.
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return {"digest": "not a regular file", "text": None}
            at_once = max(4096, min(found.st_size + 1, 1 << 20))
            while piece := os.read(descriptor, at_once):
                digest.update(piece)
                if len(data) <= MAX_KEPT_BYTES:
                    data += piece
        finally:
            os.close(descriptor)
    except OSError as error:
        return {"digest": f"not readable: {error.strerror}", "text": None}
    text = data.decode("utf-8", "backslashreplace") if len(data) <= MAX_KEPT_BYTES and b"\0" not in data else None
    return {"digest": digest.hexdigest(), "text": text}


class Pins:
    """The approved definitions of one workspace."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._store = connection.pins
        self._workspace = workspace

    def of(self, tool: str) -> Pin | None:
        kept = self._store.of(self._workspace, tool)
        return None if kept is None else Pin(kept.digest, kept.definition)

    def containing(self, path: str) -> list[tuple[str, Pin]]:
        """Every tool whose approved definition includes this file, with the definition."""
        found = self._store.holding(self._workspace, path)
        return [(kept.tool, Pin(kept.digest, kept.definition)) for kept in found if path in kept.definition["files"]]

    def add_if_absent(self, tool: str, pin: Pin, who: str) -> str:
        """Store a definition if none is stored for the tool. Returns the digest of the definition that is stored
        now."""
        return self._store.add_if_absent(self._workspace, KeptPin(tool, pin.digest, pin.definition), who, time.time())

    def approve(self, tool: str, pin: Pin, who: str) -> None:
        self._store.approve(self._workspace, KeptPin(tool, pin.digest, pin.definition), who, time.time())


def difference(before: Pin, after: Pin) -> str:
    """A diff of two definitions, for a person to read."""
    lines = [*_text_difference("definition", _as_text(before), _as_text(after))]
    old, new = before.definition["files"], after.definition["files"]
    for path in sorted({*old, *new}):
        was, now = old.get(path), new.get(path)
        if was is not None and now is not None and was["digest"] == now["digest"]:
            continue
        lines += _file_difference(path, was, now)
    if len(lines) > MAX_DIFFERENCE_LINES:
        lines = [*lines[:MAX_DIFFERENCE_LINES], f"… {len(lines) - MAX_DIFFERENCE_LINES:_} more lines"]
    if not lines:
        lines = [f"{CONFIGURATION}: its command, its grants, another setting, or its installed version has changed"]
    return "\n".join(lines)


def _as_text(pin: Pin) -> str:
    shown = {name: value for name, value in pin.definition.items() if name not in ("files", "digest")}
    return json.dumps(shown, indent=2, ensure_ascii=True, sort_keys=True)


def _file_difference(path: str, was: dict[str, Any] | None, now: dict[str, Any] | None) -> list[str]:
    old, new = was and was["text"], now and now["text"]
    if (was is not None and old is None) or (now is not None and new is None):
        return [f"{path}: from {was and was['digest']} to {now and now['digest']}"]
    return list(_text_difference(path, old or "", new or ""))


def _text_difference(name: str, before: str, after: str) -> list[str]:
    import difflib

    return list(
        difflib.unified_diff(
            before.split("\n"), after.split("\n"), f"{name} as approved", f"{name} as it is now", lineterm=""
        )
    )
