"""The files that a command line reads and writes, as far as its words say so.

The footprint of a line is known only if haft knows every program in it and every operand, and all files lie inside the
workspace. In every other case it is unknown: a change of directory, a variable, a pattern of file names, a background
job, a program outside the tables, a link or `/tmp` as the place of a write. Hard links cannot be detected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from haft.contracts import UNKNOWN, Footprint
from haft.policy.analysis.analyser import analyse_line
from haft.policy.analysis.command.options import SplitCommand, Unlisted, split_command
from haft.policy.analysis.program import Argument, LinkReason
from haft.policy.analysis.programs import PROGRAMS
from haft.policy.analysis.programs.bytes import BYTES
from haft.policy.analysis.programs.text import TEXT
from haft.policy.analysis.programs.writing import WRITING, WritingProgram
from haft.policy.analysis.scope import is_harmless_name
from haft.policy.analysis.tree.path_resolver import PathResolver, is_standard_stream
from haft.policy.analysis.verdict import AnalysisContext, Part
from haft.policy.links import links_on_way

_NO_FILES: Final = frozenset((
    "true", "false", ":", "echo", "printf", "sleep", "pwd", "seq", "basename", "dirname", "expr", "tr", "numfmt",
    "factor",
))  # fmt: skip
_TESTS: Final = frozenset(("test", "["))
_OF_DIRECTORY: Final = frozenset(("ls", "dir", "vdir", "du", "tree"))
"""Programs that read the working directory if no operand names a path."""
_GREP: Final = frozenset(("grep", "egrep", "fgrep"))
_RECURSIVE: Final = ("-r", "-R", "--recursive", "--dereference-recursive", "-d", "--directories")
_FROM_PATHS: Final = frozenset((
    *TEXT, *BYTES, *_GREP, *_OF_DIRECTORY, "stat", "readlink", "realpath", "file", "diff", "cmp", "sed", "jq",
)) - {"tr", "nm", "objdump", "readelf", "size"}  # fmt: skip
"""Programs that read no file but those that their arguments name."""
_FIRST_WORD: Final = re.compile(r"[\s({!]*([A-Za-z0-9_:\[.+-]+)")
_READS: Final = ("<",)
_OVERWRITES: Final = (">", ">>", ">|", "&>", "&>>", ">&")


class _Unknown(Exception):
    """haft cannot tell which files a part of the line touches."""


def footprint_of_line(
    command: str, context: AnalysisContext, env: Mapping[str, str], *, is_decided: bool = False
) -> Footprint:
    """What a line reads and writes, with these variables in its environment. Links are resolved on the disk as it is
    now. With `is_decided`, haft knows already whether the line only reads. Never raises."""
    if not all(map(is_harmless_name, env)):
        return UNKNOWN  # A variable such as PATH may change which program a name stands for.
    first = _FIRST_WORD.match(command)
    if is_decided and first is not None and not _is_known(first[1]) and first[1] != "if":
        return UNKNOWN  # Most lines end here, and are not parsed a second time.
    analysis = analyse_line(command, context)
    try:
        if not analysis.understood:
            raise _Unknown
        reader = _LineReader(context)
        for part in analysis.parts:
            reader.read(part)
        if reader.copies_links and reader.parts > 1:
            raise _Unknown  # Another part may use a link that is not there yet.
    except (_Unknown, Unlisted):
        return Footprint(None, ()) if analysis.safe else UNKNOWN
    except Exception:  # After any failure, nothing is known.
        return UNKNOWN
    return Footprint((*sorted({*reader.reads, *reader.links(), *reader.writes}),), (*sorted(reader.writes),))


def _is_known(program: str) -> bool:
    return program in _NO_FILES or program in _TESTS or program in _FROM_PATHS or program in WRITING


class _LineReader:
    """Collects the paths of one line, relative to the workspace."""

    def __init__(self, context: AnalysisContext) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.parts = 0
        """How many parts of the line may name paths."""
        self.copies_links = False
        """Whether the line copies or moves a link, or a directory in which links may be."""
        self._named: set[str] = set()
        """The absolute paths as the line names them."""
        self._resolver = PathResolver(context)
        start = self._resolver.start()
        if start is None:
            raise _Unknown
        self._start = start

    def links(self) -> set[str]:
        """The links in the workspace through which the paths of the line lead."""
        return {self._inside(link) for path in self._named for link in links_on_way(path) if self._is_inside(link)}

    def read(self, part: Part) -> None:
        """Add the paths of one part of the line."""
        if not part.literal:
            raise _Unknown
        self.parts += bool(part.text.strip()) and part.program not in _NO_FILES
        if part.kind == "redirection" and len(part.words) == 2:
            sign, target = part.words
            if sign in _READS:
                self._add_reads((target,))
            elif sign in _OVERWRITES:
                self._add_write(target)
            else:
                raise _Unknown
        elif part.kind == "command" and part.program is not None and part.words[0] == part.program:
            self._add_command(part.program, part.words[1:], part)
        elif part.text.strip():
            raise _Unknown

    def _add_command(self, program: str, words: tuple[str, ...], part: Part) -> None:
        if program in WRITING and not (program == "sed" and part.safe):
            self._add_writing(program, WRITING[program], words)
        elif not _is_known(program):
            raise _Unknown
        elif program in _TESTS:
            self._add_reads(word for word in words if word not in ("]", "!", "=", "==", "!=") and word[:1] != "-")
        elif program in _NO_FILES:
            # The table refuses long waits, which matter to policy but touch no file.
            if not part.safe and program != "sleep":
                raise _Unknown
        elif not part.safe or part.starts_others:
            raise _Unknown
        else:
            self._add_reading(program, words)

    def _add_reading(self, program: str, words: tuple[str, ...]) -> None:
        entry = PROGRAMS[program]
        found = split_command(program, [Argument(word) for word in words], entry)
        follows_links = found.entry.check is not None and isinstance(found.entry.check(found.invocation), LinkReason)
        if follows_links or (program in _OF_DIRECTORY and found.invocation.has("-L", "--dereference")):
            raise _Unknown  # It follows links below the files that it reads.
        self._add_reads(_texts(found))
        if not any(each is operand for each in found.paths for operand in found.invocation.operands) and (
            program in _OF_DIRECTORY or (program in _GREP and found.invocation.has(*_RECURSIVE))
        ):
            self._add_reads((".",))

    def _add_writing(self, program: str, entry: WritingProgram, words: tuple[str, ...]) -> None:
        found = split_command(program, [Argument(word) for word in words], entry.program)
        if found.entry.check is not None and found.entry.check(found.invocation) is not None:
            raise _Unknown
        if any(value is not None for name, value in found.invocation.options if name in ("-i", "--in-place")):
            raise _Unknown
        if entry.writes in ("last", "moved"):
            self._add_copy(found, moves=entry.writes == "moved")
            return
        texts = _texts(found) if entry.writes == "operands" else [each.text for each in found.invocation.operands[1:]]
        for text in texts:
            self._add_write(text)

    def _add_copy(self, found: SplitCommand, *, moves: bool) -> None:
        """Add the paths of a `cp` or `mv`."""
        *sources, target = _texts(found) or [""]
        if not sources or not target:
            raise _Unknown
        is_recursive = found.invocation.has("-r", "-R", "--recursive", "-a", "--archive")
        into = self._place(target)
        is_into = os.path.isdir(into) and not found.invocation.has("-T", "--no-target-directory")
        if not is_into and target.endswith("/"):
            raise _Unknown
        for source in sources:
            name = os.path.basename(source.rstrip("/"))
            there = f"{target.rstrip('/')}/{name}" if is_into else target
            # A copy of a directory into an existing one may write through links in it.
            if (is_recursive or moves) and os.path.lexists(self._place(there)) and os.path.isdir(self._place(source)):
                raise _Unknown
            if (is_recursive or moves) and (os.path.isdir(self._place(source)) or links_on_way(self._absolute(source))):
                self.copies_links = True
            if moves:
                self._add_write(source)
            else:
                self._add_reads((source,))
            self._add_write(there)

    def _add_reads(self, paths: Iterable[str]) -> None:
        for path in paths:
            if path and path != "-" and not is_standard_stream(path):
                self.reads.add(self._inside(self._place(path)))

    def _add_write(self, path: str) -> None:
        """Add a path that is written. If it is a link, the footprint is unknown: one program replaces the link, another
        one writes the file to which it leads."""
        if is_standard_stream(path):
            return
        parent, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            raise _Unknown
        directory = self._place(parent or ("/" if path.startswith("/") else "."))
        place = os.path.join(directory, name)
        if self._place(path) != place or self._resolver.special_kind(self._start, path) is not None:
            raise _Unknown
        self.writes.add(self._inside(place))

    def _place(self, path: str) -> str:
        place = self._resolver.resolve(self._start, path)
        if place is None:
            raise _Unknown
        self._named.add(self._absolute(path))
        return place

    def _absolute(self, path: str) -> str:
        return os.path.join(self._resolver.context.workspace, self._resolver.context.cwd, path)

    def _is_inside(self, place: str) -> bool:
        return self._resolver.is_inside(place)

    def _inside(self, place: str) -> str:
        if not self._is_inside(place):
            raise _Unknown
        return os.path.relpath(place, self._resolver.context.workspace)


def _texts(found: SplitCommand) -> list[str]:
    return [each.text for each in found.paths]
