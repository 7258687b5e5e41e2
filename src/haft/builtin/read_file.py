"""`read_file`: a text file, whole or some of its lines.

Whole files are read up to a limit. A range is streamed, so that ten lines of a file of any size need little memory,
even if one line is endless. The module `lines` reads the lines.
"""

from __future__ import annotations

import codecs
import os
from typing import Any, BinaryIO, ClassVar, Final

from haft.builtin.blocking import LONG_READ, in_thread
from haft.builtin.definition import PATH, Builtin
from haft.builtin.lines import Part, count_lines, read_lines
from haft.contracts import Answer, Effects, InvalidArguments, LimitExceeded, ToolContext, ToolFailed
from haft.files import shown

_SNIFFED: Final = 8192


class ReadFile(Builtin):
    name = "read_file"
    description = (
        "Read a text file of the workspace.\n"
        "Gives the content exactly as it is, without line numbers. Use start_line and end_line (counted from 1, both "
        "included) for a part of a long file; a file too large to read whole can only be read this way. Binary files "
        "are named as such and not shown; bytes that are not UTF-8 appear as replacement characters. For the content "
        "of a directory use list_directory."
    )
    properties: ClassVar[dict[str, Any]] = {
        "path": PATH,
        "start_line": {"type": "integer", "minimum": 1, "description": "First line to read. Default: 1."},
        "end_line": {"type": "integer", "minimum": 1, "description": "Last line to read. Default: the last one."},
    }
    required = ("path",)
    paths = ("path",)
    reads = ("path",)
    writes = ()
    effects = Effects(readonly=True, idempotent=True)

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        path: str = arguments["path"]
        start: int | None = arguments.get("start_line")
        end: int | None = arguments.get("end_line")
        if start is not None and end is not None and start > end:
            raise InvalidArguments(self.name, [f"start_line {start} comes after end_line {end}"])
        with context.workspace.open(path) as file:
            size = os.fstat(file.fileno()).st_size

            def read() -> Answer:
                if _is_binary(file):
                    return _binary(path, size)
                if start is None and end is None:
                    return _whole(path, file, size, context)
                return _range(path, file, size, (start or 1, end), context)

            return await in_thread(read) if size > LONG_READ else read()


def _is_binary(file: BinaryIO) -> bool:
    beginning = file.read(_SNIFFED)
    file.seek(0)
    return b"\0" in beginning


def _binary(path: str, size: int) -> Answer:
    return Answer(
        text=f"`{shown(path)}` is a binary file of {size} byte{'' if size == 1 else 's'}; its content is not shown.",
        result=_facts(path, None, None, None, size, binary=True),
    )


def _whole(path: str, file: BinaryIO, size: int, context: ToolContext) -> Answer:
    limit = context.limits.max_file_bytes
    # Read one byte more than allowed, to notice if the file has grown since it was opened.
    content = file.read(limit + 1) if size <= limit else b""
    if max(size, len(content)) > limit:
        raise LimitExceeded(
            "max_file_bytes",
            limit,
            f"`{shown(path)}` has {max(size, len(content)):_} bytes, too many to read whole: "
            "ask for a range of lines with start_line and end_line",
        )
    total = count_lines(content)
    facts = _facts(path, 1, total, total, len(content))
    return Answer(text=content.decode("utf-8", "replace"), result=facts)


def _range(path: str, file: BinaryIO, size: int, lines: tuple[int, int | None], context: ToolContext) -> Answer:
    limit = context.limits.max_file_bytes
    part = read_lines(file, lines[0], lines[1], most=limit, stopped=lambda: context.cancelled)
    if part.total is not None and lines[0] > max(part.total, 1):
        count = "1 line" if part.total == 1 else f"{part.total:_} lines"
        raise ToolFailed(f"`{shown(path)}` has {count}, there is no line {lines[0]:_}")
    facts = _facts(path, part.first, part.last, part.total, size)
    if not part.cut:
        return Answer(text=part.content.decode("utf-8", "replace"), result=facts)
    return Answer(text=_cut_text(part, limit), result={**facts, "truncated": True})


def _cut_text(part: Part, limit: int) -> str:
    # Decode as if more bytes followed, so that a character that was cut at the end is left out, not shown as damaged.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(part.content)
    return f"{text}\n[cut in line {part.last} after {limit} bytes, the most that is read at once]"


def _facts(
    path: str, first: int | None, last: int | None, total: int | None, size: int, *, binary: bool = False
) -> dict[str, Any]:
    return {
        "path": shown(path),
        "startLine": first,
        "endLine": last,
        "totalLines": total,
        "bytes": size,
        "binary": binary,
    }
