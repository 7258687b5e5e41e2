"""`edit_file`: exact replacements in one file, all of them or none.

It works on bytes, so that everything outside the replaced text stays exactly the same: line endings, broken UTF-8, a
missing final newline. If a text is not found, the module `mismatch` says why. The module `differences` shows the
changes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from haft.builtin.blocking import in_thread
from haft.builtin.definition import PATH, Builtin
from haft.builtin.writing import UNCHANGED, WHY_NO_MARK, declared, refuse_mark, require_size
from haft.contracts import MARK, Answer, InvalidArguments, LimitExceeded, ToolContext, ToolFailed
from haft.files import digest_of, shown

_LISTED_MATCHES: Final = 10

_OLD = {
    "type": "string",
    "description": "The text to replace, exactly as it stands in the file, with its indentation and line endings.",
}
_NEW = {"type": "string", "description": "The text to put in its place."}
_ALL = {"type": "boolean", "description": "Replace every occurrence. Default: false, the text must occur once."}


class EditFile(Builtin):
    name = "edit_file"
    description = (
        "Replace exact text in a file of the workspace.\n"
        "Give either old_string and new_string, or edits: a list of such replacements, applied in order, each to the "
        "result of the one before. All of them succeed or nothing is written. old_string must occur exactly once: add "
        "lines around it until it does, or set replace_all. Read the file first; to write a new one use write_file."
    )
    properties: ClassVar[dict[str, Any]] = {
        "path": PATH,
        "old_string": _OLD,
        "new_string": _NEW,
        "replace_all": _ALL,
        "edits": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1000,
            "description": "Several replacements in the same file, instead of old_string and new_string.",
            "items": {
                "type": "object",
                "properties": {"old_string": _OLD, "new_string": _NEW, "replace_all": _ALL},
                "required": ["old_string", "new_string"],
                "additionalProperties": False,
            },
        },
    }
    required = ("path",)
    paths = ("path",)
    reads = ("path",)
    writes = ("path",)

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        path: str = arguments["path"]
        edits = _edits(self.name, arguments)
        # Always in a thread, because a write waits for the disk.
        return await in_thread(lambda: _edit(path, edits, context))


class _Edit(NamedTuple):
    old: bytes
    new: bytes
    everywhere: bool
    label: str
    """The number of the edit, for messages; empty if there is only one."""


def _edits(tool: str, arguments: dict[str, Any]) -> list[_Edit]:
    """The edits in the arguments: either one `old_string` with its `new_string`, or the list `edits`. The arguments are
    checked here, because the errors of `oneOf` in a schema are hard to read."""
    single = [key for key in ("old_string", "new_string", "replace_all") if key in arguments]
    if "edits" in arguments:
        if single:
            raise InvalidArguments(tool, [f"give either edits or {single[0]}, not both"])
        wanted: list[dict[str, Any]] = arguments["edits"]
        if not wanted:
            raise InvalidArguments(tool, ["edits is empty"])
    else:
        missing = [key for key in ("old_string", "new_string") if key not in arguments]
        if missing:
            raise InvalidArguments(tool, [f"{key} is missing" for key in missing], hint="or give edits, a list")
        wanted = [arguments]
    edits: list[_Edit] = []
    problems: list[str] = []
    for number, edit in enumerate(wanted, 1):
        label = f"edits[{number - 1}]: " if "edits" in arguments else ""
        problem = _problem(edit["old_string"], edit["new_string"])
        if problem is not None:
            problems.append(label + problem)
            continue
        if MARK not in edit["old_string"]:  # If it is, the file contains the mark, or the edit fails.
            refuse_mark(tool, edit["new_string"])
        old, new = edit["old_string"].encode(), edit["new_string"].encode()
        edits.append(_Edit(old, new, bool(edit.get("replace_all", False)), label))
    if problems:
        raise InvalidArguments(tool, problems)
    return edits


def _problem(old: str, new: str) -> str | None:
    if not old:
        return "old_string is empty; to write a new file use write_file"
    if old == new:
        return "old_string and new_string are the same"
    try:
        (old + new).encode()
    except UnicodeEncodeError:
        return "the text is not valid Unicode: it contains a lone surrogate"
    return None


def _edit(path: str, edits: list[_Edit], context: ToolContext) -> Answer:
    from haft.builtin.differences import short_diff

    workspace = context.workspace
    # Taken before the content is read, so that any later change of the file is a conflict.
    identity = workspace.identity(path)
    limit = context.limits.max_file_bytes
    with workspace.open(path) as file:
        before = file.read(limit + 1)
    if len(before) > limit:
        raise LimitExceeded("max_file_bytes", limit, f"`{shown(path)}` is too large to edit")
    content, replacements = before, 0
    for edit in edits:
        content, count = _apply(path, content, edit)
        require_size(path, len(content), context)
        replacements += count
    if content == before:
        return Answer(text=f"the edits cancel each other out: {shown(path)} stays as it was", changes=UNCHANGED)
    replaced = workspace.replace(path, content, expect=identity)
    times = "1 replacement" if replacements == 1 else f"{replacements} replacements"
    return Answer(
        text=f"made {times} in {shown(path)}\n{short_diff(before, content, shown(replaced.path))}",
        changes=declared(replaced, digest_of(before), content),
    )


def _apply(path: str, content: bytes, edit: _Edit) -> tuple[bytes, int]:
    first = content.find(edit.old)
    if first < 0:
        from haft.builtin.mismatch import why_not_found

        raise ToolFailed(
            f"{edit.label}old_string was not found in `{shown(path)}`; nothing was changed",
            hint=WHY_NO_MARK if MARK.encode() in edit.old else why_not_found(content, edit.old),
        )
    if edit.everywhere:
        return content.replace(edit.old, edit.new), content.count(edit.old)
    # Search from the next byte on, not from the end of the match: `aaa` contains `aa` twice, and either could be meant.
    if content.find(edit.old, first + 1) >= 0:
        raise ToolFailed(
            f"{edit.label}old_string occurs several times in `{shown(path)}` ({_places(content, edit.old)}); "
            "nothing was changed",
            hint="add lines around it until only one place matches, or set replace_all",
        )
    return content[:first] + edit.new + content[first + len(edit.old) :], 1


def _places(content: bytes, old: bytes) -> str:
    """A phrase for a message: the numbers of the lines on which `old` begins."""
    numbers: list[int] = []
    line, counted = 1, 0
    position = content.find(old)
    while position >= 0 and len(numbers) <= _LISTED_MATCHES:
        line += content.count(b"\n", counted, position)
        counted = position
        numbers.append(line)
        position = content.find(old, position + 1)
    distinct = list(dict.fromkeys(numbers[:_LISTED_MATCHES]))
    word = "line" if len(distinct) == 1 else "lines"
    more = " and more" if len(numbers) > _LISTED_MATCHES else ""
    return f"{word} {', '.join(map(str, distinct))}{more}"
