"""What strace wrote down of a line, call by call, each with the program that made it."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from corpora.jail import Watched

CALL = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+|\?)(?:<(.*?)>)?(?: ([A-Z]+) \(.*\))?(?:\(deleted\))?$", re.DOTALL)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
PLACE = re.compile(r"AT_FDCWD<(.*?)>|\d+<(.*?)>")
FORKING = frozenset(("clone", "clone3", "fork", "vfork"))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the kernel."""

    program: str
    """That made it."""
    name: str
    text: str
    """Its arguments, as strace writes them."""
    strings: tuple[str, ...]
    place: str
    """What a relative path is relative to."""
    result: str
    opened: str | None
    error: str | None

    @property
    def path(self) -> str:
        """Of what was opened, links resolved; as near as can be told where nothing was."""
        if self.opened:
            return self.opened
        return posixpath.normpath(posixpath.join(self.place, self.strings[0])) if self.strings else self.place


def calls(watched: Watched) -> Iterator[Call]:
    """All of them, the one that starts bash aside."""
    programs: dict[str, str] = {}
    matches = [match for line in _whole_lines(watched.trace) if (match := CALL.match(line))]
    parents = {match[4]: match[1] for match in matches if match[2] in FORKING}
    begun = False
    for match in matches:
        pid, name, text, result, opened, error = match.groups()
        strings = tuple(_unescaped(each) for each in STRING.findall(text))
        place = PLACE.match(text)
        made_by = programs.setdefault(pid, programs.get(parents.get(pid, ""), "bash"))
        if name == "execve" and result == "0" and strings:
            programs[pid] = os.path.basename(strings[0])
            if not begun:
                begun = True
                continue
        where = (place[1] or place[2]) if place else watched.workspace
        yield Call(made_by, name, text, strings, where, result, opened, error)


def _whole_lines(trace: str) -> Iterator[str]:
    """Calls that another process interrupted are put together again; those that never ended count."""
    waiting: dict[str, str] = {}
    for line in trace.splitlines():
        pid, _, rest = line.partition(" ")
        if line.endswith("<unfinished ...>"):
            waiting[pid] = line.removesuffix("<unfinished ...>").rstrip()
        elif rest.lstrip().startswith("<... "):
            begun = waiting.pop(pid, None)
            if begun is not None:
                yield begun + rest.partition("resumed>")[2]
        else:
            yield line
    for line in waiting.values():
        yield line.rstrip(", ") + ") = ?"


@cache
def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    return plain.encode("latin-1", "replace").decode(errors="replace")
