"""The bash files of a plugin: one file, or the files that `agent_plugin.json` names. Starts nothing."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from haft.contracts import Provenance
from haft.sources.bash_plugin.references import PluginReference
from haft.sources.identity import identity_of

DESCRIPTOR: Final = "agent_plugin.json"
MOST_TOOLS: Final = 200
MOST_FILES: Final = 1_000
LARGEST_DESCRIPTOR: Final = 1_000_000
_LABELS: Final = tuple(
    re.compile(rf"""^[ \t]*\(?["']?{word}["']?(?:\s*\|[^)\n]*)?\)""".encode(), re.MULTILINE)
    for word in ("schema", "run")
)
"""The `case` labels of a script with subcommands."""


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A file of a plugin that is a tool, or that cannot be a tool because of a `problem`."""

    path: str
    folder: str
    """The folder of the plugin, which the tool may read."""
    reference: PluginReference
    provenance: Provenance
    identity: str = ""
    problem: str | None = None
    files: tuple[str, ...] = ()
    """All files of the plugin."""
    takes_config: bool = True
    """Whether the tool gets settings of the configuration. A plugin of an untrusted workspace gets none."""

    @property
    def key(self) -> str:
        return self.path

    @property
    def group(self) -> str:
        """The name of the cache group, which has all tools of the plugin's folder."""
        return f"bash-plugin:{self.folder}"


def files_of(reference: PluginReference, place: str, provenance: Provenance, within: str | None) -> list[PluginFile]:
    """The tools of the plugin at the path `place`. If `within` is given, links may not lead out of it."""
    finder = _FileFinder(reference, provenance, within)
    if not os.path.lexists(place):
        return [finder.broken(place, f"there is no {place}; fix the path in {reference.source}")]
    if os.path.isdir(place) and not reference.is_file:
        return list(finder.of_folder(place))
    if os.path.isdir(place):
        return [finder.broken(place, f"it is a folder; write `bash:{place}` or {{bash_tool = {{path = …}}}}")]
    return [finder.of_file(place, os.path.dirname(place))]


def is_bash_plugin(script: bytes) -> bool:
    """Whether a script is a bash plugin: it has the subcommands `schema` and `run`, and does not mention the toolbox
    protocol."""
    return b"TOOLBOX_ACTION" not in script and all(label.search(script) for label in _LABELS)


class _FileFinder:
    def __init__(self, reference: PluginReference, provenance: Provenance, within: str | None) -> None:
        self._reference = reference
        self._provenance = provenance
        self._within = within

    def broken(self, path: str, problem: str) -> PluginFile:
        return PluginFile(path, os.path.dirname(path), self._reference, self._provenance, "", problem)

    def of_file(self, path: str, folder: str, files: tuple[str, ...] = ()) -> PluginFile:
        try:
            found = os.stat(path)
        except OSError as error:
            return self.broken(path, f"it cannot be read: {error.strerror}")
        if not stat.S_ISREG(found.st_mode):
            return self.broken(path, "it is not a regular file")
        problem = self._leaves(path)
        if problem is None and not os.access(path, os.R_OK):
            problem = "it may not be read; change its permissions"
        return PluginFile(
            path,
            folder,
            self._reference,
            self._provenance,
            identity_of(found),
            problem,
            files,
            takes_config=self._within is None,
        )

    def of_folder(self, folder: str) -> Iterator[PluginFile]:
        """The files that the descriptor of a folder names."""
        path = os.path.join(folder, DESCRIPTOR)
        try:
            descriptor = descriptor_at(path)
        except ValueError as error:
            yield self.broken(path, str(error))
            return
        inner = self._reference.subdirectory or descriptor.get("subdirectory") or "."
        tools = descriptor.get("bash_tools", [])
        if not isinstance(inner, str) or not is_inside(inner):
            yield self.broken(path, f"its `subdirectory` is not a folder inside {folder}")
            return
        if not isinstance(tools, list) or not tools or len(tools) > MOST_TOOLS:
            yield self.broken(path, 'it names no bash tools; write {"bash_tools": [{"file": "my_tool.bash"}]}')
            return
        plugin_files = tuple(sorted(_plugin_files(folder)))
        if len(plugin_files) > MOST_FILES:
            yield self.broken(path, f"its folder has more than {MOST_FILES} files, more than one approval can cover")
            return
        for tool in tools:
            file = tool.get("file") if isinstance(tool, dict) else None
            if not isinstance(file, str) or not file or not is_inside(file):
                yield self.broken(path, f'{tool!r} is not {{"file": …}} with a path inside the folder'[:300])
                continue
            yield self.of_file(os.path.normpath(os.path.join(folder, inner, file)), folder, plugin_files)

    def _leaves(self, path: str) -> str | None:
        real = os.path.realpath(path)
        if self._within is None or real.startswith(self._within.rstrip("/") + "/"):
            return None
        return f"it leads out of the workspace, to {real}; to use it anyway, name it in your own configuration"


def descriptor_at(
    path: str,
    content: str = '{"bash_tools": [{"file": "my_tool.bash"}]}',
    one_file: str = "{bash_tool = {file = …}}",
) -> dict[str, Any]:
    """The content of the descriptor at a path. Raises `ValueError` if it cannot be used. The message shows `content` as
    an example of a valid descriptor, and `one_file` as the way to name a single file instead of a folder."""
    cure = f"write {content} into it"
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"it is not a regular file; {cure}")
            data = file.read(LARGEST_DESCRIPTOR + 1)
    except FileNotFoundError:
        raise ValueError(f"the folder has no {DESCRIPTOR}; {cure}, or name one file: {one_file}") from None
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    try:
        descriptor = json.loads(data[:LARGEST_DESCRIPTOR])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(descriptor, dict):
        raise ValueError(f"it is not a JSON object; {cure}")  # noqa: TRY004  all problems raise the same error
    return descriptor


def is_inside(path: str) -> bool:
    """Whether a path is relative and stays in its folder. Only the text of the path is checked; links are not
    resolved."""
    return not os.path.isabs(path) and ".." not in path.split("/") and "\0" not in path


def _plugin_files(folder: str) -> Iterator[str]:
    """The paths of all files of a plugin, without links. An approval is valid as long as none of these files
    changes."""
    count = 0
    for top, directories, names in os.walk(folder):
        directories[:] = sorted(name for name in directories if name not in (".git", "__pycache__"))
        for name in sorted(names):
            if not os.path.islink(os.path.join(top, name)):
                yield os.path.join(top, name)
                count += 1
                if count > MOST_FILES:
                    return
