"""`write_file`: writes one whole file, new or in place of an old one, in one step."""

from __future__ import annotations

from typing import Any, ClassVar

from haft.builtin.blocking import in_thread
from haft.builtin.definition import PATH, Builtin
from haft.builtin.writing import UNCHANGED, declared, refuse_mark, require_size
from haft.contracts import Answer, Effects, InvalidArguments, ToolContext
from haft.files import digest_of, digest_of_file, shown


class WriteFile(Builtin):
    name = "write_file"
    description = (
        "Write a whole text file of the workspace, creating it or replacing what it held.\n"
        "Missing directories are created. The content is written exactly as given, in UTF-8; give the complete file, "
        "nothing is kept of the old one. To change a part of an existing file use edit_file."
    )
    properties: ClassVar[dict[str, Any]] = {
        "path": PATH,
        "content": {"type": "string", "description": "The complete new content of the file."},
    }
    required = ("path", "content")
    paths = ("path",)
    reads = ("path",)
    writes = ("path",)
    effects = Effects(idempotent=True)

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        path: str = arguments["path"]
        refuse_mark(self.name, arguments["content"])
        try:
            content = arguments["content"].encode()
        except UnicodeEncodeError:
            raise InvalidArguments(self.name, ["content is not valid Unicode: it contains a lone surrogate"]) from None
        require_size(path, len(content), context)
        # Always in a thread, because a write waits for the disk.
        return await in_thread(lambda: _write(path, content, context))


def _write(path: str, content: bytes, context: ToolContext) -> Answer:
    workspace = context.workspace
    # Taken before the old content is read, so that any later change of the file is a conflict.
    identity = workspace.identity(path)
    before = None
    if identity is not None:
        with workspace.open(path) as file:
            before = digest_of_file(file, lambda: context.cancelled)
        if before == digest_of(content):
            return Answer(text=f"{shown(path)} already has this content", changes=UNCHANGED)
    replaced = workspace.replace(path, content, expect=identity)
    text = f"wrote {len(content)} byte{'' if len(content) == 1 else 's'} to {shown(path)}"
    return Answer(
        text=f"{text} (created)" if replaced.created else text,
        changes=declared(replaced, before, content),
    )
