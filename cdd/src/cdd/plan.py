"""Parses `plan.md`: its sections, and their tasks.

A task is a line with a checkbox, after a bullet (`-`, `*`, `+`), a number (`1.`, `1)`), heading signs, or nothing. The
checkboxes `[ ]` and `[]` mean open, and so do the marks for started work, `[~]` and `[/]`. `[x]` and `[X]` mean done.
Any other text in brackets is not a task. Code fences have no tasks and no headings. Every text is a valid plan: parsing
never fails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_TASK: Final = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]+)?\[([ \t]*|[~/xX])\](?:[ \t]+(.*))?")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_MOST_LISTED: Final = 5
_FENCE: Final = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Task:
    """One line with a checkbox."""

    text: str
    done: bool
    line: int
    """The number of the line, counted from 1."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the lines after it up to the next heading of any level."""

    above: tuple[str, ...]
    """The lines of the higher headings that this section belongs to, the outermost first."""
    text: str
    tasks: tuple[Task, ...]

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if not task.done)


@dataclass(frozen=True, slots=True)
class Plan:
    """The sections of a plan in order. Text before the first heading is a section, too."""

    sections: tuple[Section, ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(task for section in self.sections for task in section.tasks)

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if not task.done)

    def listed_open_tasks(self) -> str:
        """The first open tasks, one on each line, and how many more there are."""
        lines = [f"  line {task.line}: {task.text}" for task in self.open_tasks[:_MOST_LISTED]]
        more = len(self.open_tasks) - len(lines)
        return "\n".join([*lines, *([f"  and {more} more"] if more else [])])

    @property
    def next_section(self) -> Section | None:
        """The first section with an open task; None if no task is open."""
        return next((section for section in self.sections if section.open_tasks), None)


class Fence:
    """Tells for each line of a Markdown text, in order, whether it is code."""

    def __init__(self) -> None:
        self._opened = ""

    def holds(self, line: str) -> bool:
        """Whether the line is in a code fence, or is its first or last line. A fence that is not closed reaches to the
        end, as in Markdown."""
        found = _FENCE.fullmatch(line)
        if self._opened:
            if found and found[1].startswith(self._opened) and not found[2].strip():
                self._opened = ""
            return True
        if found and not (found[1][0] == "`" and "`" in found[2]):
            self._opened = found[1]
        return bool(self._opened)


def heading_of(line: str) -> tuple[int, str] | None:
    """The level and title of a heading; None if the line is not a heading."""
    found = _HEADING.fullmatch(line)
    return (len(found[1]), (found[2] or "").strip()) if found else None


def read_plan(text: str) -> Plan:
    """Parse the text of a `plan.md`."""
    sections: list[Section] = []
    above: list[tuple[int, str]] = []
    lines: list[str] = []
    tasks: list[Task] = []
    fence = Fence()

    def close() -> None:
        if any(line.strip() for line in lines):
            trail = tuple(line for _level, line in (above[:-1] if above else above))
            sections.append(Section(trail, "\n".join(lines).strip("\n"), tuple(tasks)))
        lines.clear()
        tasks.clear()

    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        is_code = fence.holds(line)
        heading = None if is_code else heading_of(line)
        if heading:
            close()
            above = [*((level, title) for level, title in above if level < heading[0]), (heading[0], line.strip())]
        lines.append(line)
        found = None if is_code else _TASK.fullmatch(line)
        if found:
            tasks.append(Task((found[2] or "").strip(), found[1] in ("x", "X"), number))
    close()
    return Plan(tuple(sections))
