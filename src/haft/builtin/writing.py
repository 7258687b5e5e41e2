"""Functions that `write_file` and `edit_file` share: for the limit on the size of a file, and for the change set that
the tools declare.

If a write would change nothing, the tools write nothing, and declare no change. The workspace writes the file.
"""

from __future__ import annotations

from typing import Final

from haft.contracts import MARK, Change, Changes, InvalidArguments, LimitExceeded, ToolContext, WrittenFile
from haft.files import digest_of, shown

UNCHANGED = Changes(engine="declared")
"""The changes of a call that had nothing to write."""


def require_size(path: str, size: int, context: ToolContext) -> None:
    """Raise `LimitExceeded` if a file of `size` bytes is over the limit."""
    limit = context.limits.max_file_bytes
    if size > limit:
        raise LimitExceeded("max_file_bytes", limit, f"`{shown(path)}` would have {size:_} bytes")


WHY_NO_MARK: Final = f"haft shows `{MARK}` in place of a secret: a file that held the secret holds the real value there"


def refuse_mark(tool: str, text: str) -> None:
    """Raise an error if a text contains the mark that haft shows in place of a secret: written to a file, the mark
    would replace the real value."""
    if MARK in text:
        raise InvalidArguments(
            tool,
            [f"the text holds a mark that could replace a real value: {WHY_NO_MARK}"],
            hint="change the lines around it with edit_file, and leave the line with the mark as it is",
        )


def declared(replaced: WrittenFile, before: str | None, content: bytes) -> Changes:
    """The change set of one written file: the directories created for it, then the file."""
    directories = [Change(path=path, type="create", kind="directory") for path in replaced.directories]
    file = Change(
        path=replaced.path,
        type="create" if replaced.created else "modify",
        before=before,
        after=digest_of(content),
    )
    return Changes(engine="declared", state="committed", files=(*directories, file))
