"""What a task tells, as lines for a person."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import Event
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import one_line, styled, visible

if TYPE_CHECKING:
    from haft.service import RunRecord, Transcript

MOST_RESULT_LINES: Final = 12
"""How many lines of a result a transcript shows."""
MOST_SHOWN: Final = 160
"""How many characters of arguments, results and texts a line shows."""
_STATES: Final = {"thinking", "waiting", "reporting"}


def task_lines(event: Event) -> Iterator[str]:
    """The lines for one event of a task; none if it is of no interest to a person."""
    told = event.facts.get("task") if event.type == "progress" else None
    if isinstance(told, Mapping):
        yield from _lines(told)


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    match told["type"]:
        case "status" if told["state"] in _STATES:
            yield f"{told['state']}: {one_line(told['message'])}"
        case "text":
            yield from (f"“{cut(line)}”" for line in told["text"].splitlines() if line.strip())
        case "tool-execution":
            failed = "" if told["status"] == "done" else f" ({told['status']})"
            yield f"{cut(told['toolName'])} {cut(to_json_text(told['arguments']))}{failed}"
            shown = (line for line in told["result"].splitlines() if line.strip() and not line.startswith("[haft]"))
            first = next(shown, "")
            if first:
                yield f"  → {cut(first)}"
        case "complete":
            calls, files = (len(told[each]) for each in ("toolExecutions", "modifiedFiles"))
            yield f"complete: {_number(calls, 'call')}, {_number(files, 'changed file')}"
        case "error":
            yield f"error: {one_line(told['errorMessage'])}"
        case _:
            pass


def transcript_lines(task: Transcript, run: RunRecord) -> Iterator[str]:
    """The conversation of a task, for reading."""
    spent = task.spent
    yield ""
    yield styled("the conversation of the sub-agent", "bold", sys.stdout)
    ended = task.ended or ("not ended" if run.is_open else "ended with its host")
    yield visible(f"  type {task.agent}, model {task.model}, {ended}")
    if task.continues is not None:
        yield visible(f"  goes on with {task.continues}")
    if task.ended != "done" and not run.is_open:
        yield f"  `haft agent resume {run.id}` goes on with it"
    cycles, calls = _number(spent["cycles"], "cycle"), _number(spent["calls"], "call")
    yield f"  {cycles}, {spent['tokens']:_} tokens, {calls}, {spent['seconds']:.0f} s"
    titles = {"prompt": "told", "text": "wrote", "call": "called", "result": "result"}
    for entry in task.entries:
        title = titles[entry.kind] if entry.tool is None else f"{titles[entry.kind]} {cut(entry.tool)}"
        yield styled(visible(f"{title}:"), "bold", sys.stdout)
        shown = entry.text.splitlines()
        most = len(shown) if entry.kind in ("prompt", "text") else MOST_RESULT_LINES
        yield from (f"  {visible(line)}" for line in shown[:most])
        if len(shown) > most:
            yield f"  … {len(shown) - most} more lines"


def _number(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of}s"


def cut(text: str) -> str:
    """The text on one line, and not too long."""
    line = one_line(" ".join(text.split()))
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]}…"
