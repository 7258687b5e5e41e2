"""How the file tools write: whole files, within the limit, declared as a change set.

`write_file` and `edit_file` both end here. A write that would change nothing does nothing, and says so by declaring no
change. The workspace does the writing; this file knows what to say of it.
"""

from __future__ import annotations

from typing import Final

from haft.contracts import MARK, Change, Changes, InvalidArguments, LimitExceeded, ToolContext, WrittenFile
from haft.files import digest_of, shown

UNCHANGED = Changes(engine="declared")
"""Of a call that found everything as it should be."""


def require_size(path: str, size: int, context: ToolContext) -> None:
    """Raise when a file of `size` bytes may not be written."""
    limit = context.limits.max_file_bytes
    if size > limit:
        raise LimitExceeded("max_file_bytes", limit, f"`{shown(path)}` would have {size:_} bytes")


WHY_NO_MARK: Final = f"haft shows `{MARK}` in place of a secret: a file that held the secret holds the real value there"


def refuse_mark(tool: str, text: str) -> None:
    """Raise where a text holds the mark that haft shows in place of a secret: written to a file, it would replace the
    value itself."""
    if MARK in text:
        raise InvalidArguments(
            tool,
            [f"the text holds a mark that could replace a real value: {WHY_NO_MARK}"],
            hint="change the lines around it with edit_file, and leave the line with the mark as it is",
        )


def declared(replaced: WrittenFile, before: str | None, content: bytes) -> Changes:
    """The change set of one written file: the directories made for it, then the file."""
    directories = [Change(path=path, type="create", kind="directory") for path in replaced.directories]
    file = Change(
        path=replaced.path,
        type="create" if replaced.created else "modify",
        before=before,
        after=digest_of(content),
    )
    return Changes(engine="declared", state="committed", files=(*directories, file))
