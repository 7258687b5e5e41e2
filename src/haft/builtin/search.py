"""`search`: finds lines in files by regular expression, with ripgrep.

Matches are passed on as they come; the pipeline limits how many are shown.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

from haft.builtin.definition import PATH, Builtin
from haft.builtin.ignore_files import ignore_files_above, ripgrep_basis
from haft.contracts import Answer, AnswerBasis, Effects, InvalidArguments, ToolContext
from haft.files import shown


class Search(Builtin):
    name = "search"
    description = (
        "Search the content of the workspace's files with a regular expression (ripgrep).\n"
        "pattern is a regular expression in Rust's syntax, matched line by line and case-sensitively (begin it with "
        "`(?i)` to ignore case, escape `(`, `[`, `.` and the like to search for them). Each match is one line, "
        "`path:line:text`, sorted by path; lines longer than 500 bytes are cut. Hidden files are searched; what "
        ".gitignore excludes is not, unless `glob` names it or `path` is that file; .git, binary files and links are "
        "not. To find files by name use find_files."
    )
    properties: ClassVar[dict[str, Any]] = {
        "pattern": {"type": "string", "minLength": 1, "description": "A regular expression."},
        "path": {**PATH, "default": ".", "description": "A file or a directory. Default: the whole workspace."},
        "glob": {
            "type": "string",
            "minLength": 1,
            "description": "Only files that this glob matches, such as `*.py` or `src/**`; `!` in front: only others.",
        },
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
        from haft.builtin.ripgrep import Listener, aim

        pattern: str = arguments["pattern"]
        path: str = arguments.get("path", ".")
        glob: str | None = arguments.get("glob")
        _require_passable(self.name, pattern=pattern, glob=glob or "")
        target = aim(context.workspace, path)
        # Each value is in the same word as its option, so that a value that begins with `-` is not read as an option.
        options = ["--line-number", "--no-heading", "--with-filename", "--max-columns=500", "--max-columns-preview"]
        if glob is not None and target.file is None:
            options.append(f"--glob={glob}")
        options.append(f"--regexp={pattern}")
        matches = _Matches(context, target.prefix)
        listener = Listener(matches.receive)
        end = await context.launcher.run(target.command(options), listener)
        matches.finish()
        # Exit code 2 means that something could not be read, or that the pattern is wrong. If there are matches, the
        # pattern is right.
        if end.code > 1 and not (end.code == 2 and matches.any):
            raise listener.failure(end.code)
        if matches.any:
            return Answer()
        where = f"`{shown(path)}`" if glob is None else f"files of `{shown(path)}` that match `{shown(glob)}`"
        return Answer(text=f"no matches for `{shown(pattern)}` in {where}")


def _require_passable(tool: str, **texts: str) -> None:
    """Raise an error for texts that cannot be in the argument list of a program."""
    problems = [f"{name} contains a NUL character" for name, text in texts.items() if "\0" in text]
    for name, text in texts.items():
        try:
            text.encode()
        except UnicodeEncodeError:
            problems.append(f"{name} is not valid Unicode: it contains a lone surrogate")
    if problems:
        raise InvalidArguments(tool, problems)


class _Matches:
    """Passes whole lines on to the output. Their paths are relative to the workspace, not to ripgrep's directory."""

    def __init__(self, context: ToolContext, prefix: str) -> None:
        self._start = b"\n" + os.fsencode(prefix)
        self.any = False
        self._context = context
        self._begun = b""

    def receive(self, data: bytes) -> None:
        lines, newline, self._begun = (self._begun + data).rpartition(b"\n")
        if newline:
            self._pass_on(lines + newline)

    def finish(self) -> None:
        if self._begun:
            self._pass_on(self._begun)

    def _pass_on(self, lines: bytes) -> None:
        self.any = True
        plain = (b"\n" + lines).replace(b"\n./", self._start)[1:]
        self._context.output("stdout", plain)
