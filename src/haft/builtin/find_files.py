"""`find_files`: files by name, in the whole tree or beneath one directory.

ripgrep walks the tree, because it knows which files are ignored, and `globs` matches the names. Each name is matched as
it arrives, so that only the matching names need memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Final

from haft.builtin.definition import PATH, Builtin
from haft.builtin.ignore_files import ignore_files_above, ripgrep_basis
from haft.contracts import Answer, AnswerBasis, Effects, InvalidArguments, ToolContext
from haft.files import shown

_MOST_FILES: Final = 10_000


class FindFiles(Builtin):
    name = "find_files"
    description = (
        "Find files of the workspace by name.\n"
        "pattern is a glob: `*`, `?`, `[abc]`, `[!abc]`, `{a,b}`, and `**` for any number of directories. Without `/` "
        "it is matched against the file's name in every directory (`*.py`), with `/` against the path below `path` "
        "(`src/**/test_*.py`). Hidden files are found; what .gitignore excludes, and .git itself, is not; links are "
        "not followed. Gives paths relative to the workspace, sorted, at most 10,000. To look inside files use search."
    )
    properties: ClassVar[dict[str, Any]] = {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "A glob, such as `*.py`."},
        "path": {**PATH, "default": ".", "description": "Where to look. Default: the whole workspace."},
    }
    required = ("pattern",)
    paths = ("path",)
    reads = ("path",)
    writes = ()
    effects = Effects(readonly=True, cacheable=True, idempotent=True)
    hosting = "per-call"

    def reads_besides(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        return ignore_files_above(paths)

    def answer_basis(self, places: list[str]) -> AnswerBasis:
        from haft.builtin.ripgrep import find_ripgrep

        return ripgrep_basis(places, find_ripgrep())

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        from haft.builtin.globs import matcher
        from haft.builtin.ripgrep import Listener, aim

        pattern: str = arguments["pattern"]
        path: str = arguments.get("path", ".")
        try:
            fits = matcher(pattern)
        except ValueError as error:
            raise InvalidArguments(self.name, [f"pattern is not a glob that can be used: {error}"]) from error
        target = aim(context.workspace, path)
        found = _Found(fits, target.prefix)
        listener = Listener(found.receive)
        end = await context.launcher.run(target.command(["--files", "--null"]), listener)
        # Exit code 1 means that there are no files. 2 means that something could not be read, which is a failure only
        # if nothing was read.
        if end.code > 1 and not (end.code == 2 and found.seen):
            raise listener.failure(end.code)
        lines = [shown(file) for file in found.files]
        if not lines:
            lines.append(f"no files match `{shown(pattern)}` in `{shown(path)}`")
        if found.truncated:
            lines.append(f"… and more: only the first {_MOST_FILES} files are shown")
        return Answer(text="\n".join(lines), result={"files": found.files, "truncated": found.truncated})


class _Found:
    """Collects the names that match."""

    def __init__(self, fits: Callable[[str], bool], prefix: str) -> None:
        self.files: list[str] = []
        self.truncated = False
        self.seen = False
        self._fits = fits
        self._begun = b""
        self._prefix = prefix

    def receive(self, data: bytes) -> None:
        *names, self._begun = (self._begun + data).split(b"\0")
        for name in names:
            self._judge(os.fsdecode(name))

    def _judge(self, path: str) -> None:
        self.seen = True
        below = path.removeprefix("./")
        if not self._fits(below):
            return
        if len(self.files) == _MOST_FILES:
            self.truncated = True
            return
        self.files.append(_json_safe(self._prefix + below))


def _json_safe(path: str) -> str:
    """The path, with escapes for bytes that JSON cannot contain."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return shown(path)
    return path
