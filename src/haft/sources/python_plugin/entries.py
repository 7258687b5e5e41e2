"""The Python plugins of a configuration entry: classes in a file or an installed package, or a file of functions.

This module runs in the host and imports nothing of the plugin.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from haft.contracts import Provenance
from haft.sources.bash_plugin.discover import DESCRIPTOR, descriptor_at, is_inside
from haft.sources.bash_plugin.references import PluginReference
from haft.sources.identity import identity_at

MOST_FILES: Final = 500


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One plugin, or a plugin that cannot be loaded because of a `problem`."""

    path: str
    """The path of the file that the plugin is loaded from; the dotted module name if the plugin is an installed
    package."""
    folder: str | None
    """The folder of the plugin, which the plugin may read and import from; None if the plugin is an installed
    package."""
    reference: PluginReference
    provenance: Provenance
    class_name: str | None = None
    """The name of the plugin class; None if it is the only plugin class in the file."""
    is_functions: bool = False
    """Whether the plugin is a file of `@tool` functions."""
    identity: str = ""
    problem: str | None = None
    files: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.path}:{self.class_name or ''}:{self.is_functions}"

    @property
    def group(self) -> str:
        """The name of the group in the cache of descriptions. All plugins of one folder are in one group."""
        return f"python-plugin:{self.folder or self.path}"


def digest_of_config(config: Mapping[str, Any]) -> str:
    """A text that stands for the configuration that plugins get."""
    return hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()[:12]


def entries_of(
    reference: PluginReference, place: str | None, provenance: Provenance, config_digest: str
) -> list[PluginEntry]:
    """The plugins that a reference names. `config_digest` is part of their identity, because the descriptions of their
    tools may depend on the configuration."""
    if reference.dotted is not None or place is None:
        name, _colon, inner = (reference.dotted or "").replace(":", ".").rpartition(".")
        return [PluginEntry(name, None, reference, provenance, inner, identity=f"{_version()}:{config_digest}")]
    if not os.path.lexists(place):
        return [_broken(place, reference, provenance, f"there is no {place}; fix the path in {reference.source}")]
    if not os.path.isdir(place):
        return [_at(place, os.path.dirname(place), None, reference, provenance, config_digest)]
    if reference.is_file:
        return [_broken(place, reference, provenance, "it is a folder; `python:` names a file")]
    return list(_of_folder(place, reference, provenance, config_digest))


def _of_folder(
    folder: str, reference: PluginReference, provenance: Provenance, config_digest: str
) -> Iterator[PluginEntry]:
    path = os.path.join(folder, DESCRIPTOR)
    try:
        file = f"`{reference.written.rstrip('/')}/plugin.py`"
        descriptor = descriptor_at(path, '{"entries": ["plugin.py:MyPlugin"]}', file)
    except ValueError as error:
        yield _broken(path, reference, provenance, str(error))
        return
    entries = descriptor.get("entries")
    if not entries and descriptor.get("bash_tools"):
        cure = f"it is a plugin of bash tools; write `bash:{reference.written.removeprefix('path:')}`"
        yield _broken(path, reference, provenance, cure)
        return
    inner = descriptor.get("subdirectory") or "."
    if not isinstance(entries, list) or not entries or not isinstance(inner, str) or not is_inside(inner):
        cure = 'it names no plugin; write {"entries": ["plugin.py:MyPlugin"]}'
        yield _broken(path, reference, provenance, cure)
        return
    base = os.path.normpath(os.path.join(folder, inner))
    for entry in entries:
        name = entry.get("entry") or entry.get("path") if isinstance(entry, dict) else entry
        if not isinstance(name, str) or not name:
            yield _broken(path, reference, provenance, f"{entry!r} is not an entry such as `plugin.py:MyPlugin`"[:300])
            continue
        name = name.removeprefix("path:")
        file, _colon, class_name = name.partition(":") if ".py" in name else _dotted(name)
        if not is_inside(file):
            yield _broken(path, reference, provenance, f"`{name}` lies outside the folder"[:300])
            continue
        located = os.path.normpath(os.path.join(base, file))
        yield _at(located, base, class_name or None, reference, provenance, config_digest)


def _dotted(name: str) -> tuple[str, str, str]:
    """Split `package.module:Class` or `package.module.Class` into three texts: the path of the file in the plugin's
    folder, a colon, and the name of the class."""
    module, _point, class_name = name.replace(":", ".").rpartition(".")
    return f"{module.replace('.', '/')}.py", ":", class_name


def _at(
    path: str,
    folder: str,
    class_name: str | None,
    reference: PluginReference,
    provenance: Provenance,
    config_digest: str,
) -> PluginEntry:
    if not os.path.isfile(path):
        return _broken(path, reference, provenance, f"there is no file {path}")
    files = _files(path, folder, deep=reference.path != path)
    return PluginEntry(
        path,
        folder,
        reference,
        provenance,
        class_name,
        reference.written.startswith("python:"),
        _identity(files, config_digest),
        files=files,
    )


def has_same_files(entry: PluginEntry, config_digest: str) -> bool:
    """Whether a plugin that is one file still has the files with which it was found. Where the file lies is not looked
    at again: as long as no file changes, it is the same code."""
    assert entry.folder is not None
    return entry.identity == _identity(_files(entry.path, entry.folder, deep=False), config_digest)


def _identity(files: Sequence[str], config_digest: str) -> str:
    """The identity of a plugin. It covers all files of the plugin, because the plugin may import any of them."""
    identities = hashlib.sha256("\0".join(f"{each}\0{identity_at(each)}" for each in files).encode()).hexdigest()
    return f"{identities[:24]}:{config_digest}"


def _files(path: str, folder: str, *, deep: bool) -> tuple[str, ...]:
    """The paths of the code files that a plugin may import: its own file, the files beside it and, if `deep`, the files
    in all folders below."""
    return (path, *islice(_other_files(path, folder, deep=deep), MOST_FILES))


def _other_files(path: str, folder: str, *, deep: bool) -> Iterator[str]:
    for top, directories, names in os.walk(folder) if deep else ((folder, [], _names(folder)),):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(names):
            inner = os.path.join(top, name)
            if name.endswith((".py", ".so")) and inner != path and (deep or not os.path.isdir(inner)):
                yield inner


def _names(folder: str) -> list[str]:
    """The names in a folder, without the detour of `os.walk`, because every call of a plugin needs them."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _broken(path: str, reference: PluginReference, provenance: Provenance, problem: str) -> PluginEntry:
    return PluginEntry(path, None, reference, provenance, problem=problem)


def _version() -> str:
    """A text that usually changes when installed packages change."""
    places = [path for path in sys.path if path.endswith("site-packages")]
    return ":".join(str(os.stat(path).st_mtime_ns) for path in places if os.path.isdir(path))
