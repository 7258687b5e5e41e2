"""`list_directory`: the entries of one directory, sorted by name.

It reads through the descriptor that the workspace opened, so that it lists exactly the directory that was resolved.
Memory is bounded for any number of entries. Links are shown with their target and not followed.
"""

from __future__ import annotations

import heapq
import os
import stat
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, NamedTuple

from haft.builtin.blocking import in_thread
from haft.builtin.definition import PATH, Builtin
from haft.contracts import Answer, Effects, ToolContext, ToolFailed
from haft.files import shown

_MOST_ENTRIES: Final = 10_000


class ListDirectory(Builtin):
    name = "list_directory"
    paths = ("path",)
    reads = ("path",)
    writes = ()
    description = (
        "List one directory of the workspace, sorted by name.\n"
        "One entry a line: `name/` for a directory, `name (N bytes)` for a file, `name -> target` for a link. Hidden "
        "and ignored files are listed too. Shows at most 10,000 entries and does not go into subdirectories: to look "
        "for files by name in the whole tree use find_files."
    )
    properties: ClassVar[dict[str, Any]] = {
        "path": {**PATH, "default": ".", "description": "Directory relative to the workspace. Default: the workspace."},
    }
    effects = Effects(readonly=True, idempotent=True)

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        path: str = arguments.get("path", ".")
        # This always runs in a thread, because the number of entries, and so the time, is not known before.
        entries, count = await in_thread(lambda: _list(path, context))
        lines = [entry.line() for entry in entries]
        if count > _MOST_ENTRIES:
            lines.append(f"… and {count - _MOST_ENTRIES} more entries that are not shown")
        if not count:
            lines.append(f"`{shown(path)}` is empty")
        return Answer(text="\n".join(lines), result=[entry.to_json() for entry in entries])


class _Entry(NamedTuple):
    name: str
    type: Literal["file", "directory", "link", "other"]
    size: int | None = None
    target: str = ""

    def line(self) -> str:
        name = shown(self.name)
        match self.type:
            case "directory":
                return f"{name}/"
            case "file":
                return f"{name} ({self.size} byte{'' if self.size == 1 else 's'})"
            case "link":
                return f"{name} -> {shown(self.target)}"
            case "other":
                return f"{name} (not a regular file)"

    def to_json(self) -> dict[str, Any]:
        try:
            self.name.encode()
        except UnicodeEncodeError:
            return {"name": shown(self.name), "type": self.type, "size": self.size}
        return {"name": self.name, "type": self.type, "size": self.size}


def _list(path: str, context: ToolContext) -> tuple[list[_Entry], int]:
    """The first entries by name, and the number of all entries."""
    count = 0
    directory = context.workspace.open_directory(path)
    try:
        with os.scandir(directory) as found:

            def counted() -> Any:
                nonlocal count
                for entry in found:
                    count += 1
                    if count % 1000 == 0 and context.cancelled:
                        raise ToolFailed("the call was stopped while it read a directory")
                    yield entry

            # This keeps only the entries that are shown; sorting all of them could need memory for a million names.
            first = heapq.nsmallest(_MOST_ENTRIES, counted(), key=attrgetter("name"))
        entries = [entry for entry in (_entry(directory, item) for item in first) if entry is not None]
    except OSError as error:
        raise ToolFailed(f"`{shown(path)}` cannot be listed: {(error.strerror or str(error)).lower()}") from error
    finally:
        os.close(directory)
    return entries, count


def _entry(directory: int, found: os.DirEntry[str]) -> _Entry | None:
    try:
        status = found.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return _Entry(found.name, "link", target=os.readlink(found.name, dir_fd=directory))
    except FileNotFoundError:
        return None  # The entry was removed after its name was read.
    if stat.S_ISDIR(status.st_mode):
        return _Entry(found.name, "directory")
    if stat.S_ISREG(status.st_mode):
        return _Entry(found.name, "file", status.st_size)
    return _Entry(found.name, "other")
