"""Results as text for people: a line for each scenario, and for a failed one the call, each mismatch with its diff,
and what the tool wrote."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from haft.schema import escaped
from haft.testing.scenarios.scenario import PYTHON, Mismatch, Result

_MOST_LINES: Final = 60
_MOST_OF_CHANGE: Final = 15
"""How many lines are shown of a change that nobody expected."""
_MOST_OF_CALL: Final = 300
_MOST_OF_TEXT: Final = 80
Styled = Callable[[str, str], str]
"""A text in a style: `ok`, `bad`, `warn` or `dim`."""


def plain(text: str, _style: str) -> str:
    """A text without any style."""
    return text


def place(result: Result, part: str = "") -> str:
    """The file and line of a scenario, or of a part of it."""
    location = result.scenario.location
    path = os.path.relpath(location.path) if os.path.isabs(location.path) else location.path
    return f"{path}:{location.line_of(part) if part else location.line}"


def lines_of(result: Result, styled: Styled = plain) -> Iterator[str]:
    """The result of one scenario."""
    word, style = ("passed", "ok") if result.passed else ("skipped", "warn") if result.skipped else ("FAILED", "bad")
    where, name = escaped(place(result)), escaped(result.scenario.name)  # A newline in them could forge a line.
    yield f"{styled(word, style)}  {where}  {name}  {styled(f'{result.seconds:.2f} s', 'dim')}"
    if result.skipped:
        yield from (f"    {line}" for line in result.skipped.splitlines())
    if result.mismatches:
        yield from (f"    {line}" if line else "" for line in failure(result, styled))
        yield ""


def failure(result: Result, styled: Styled = plain) -> Iterator[str]:
    """Why a scenario failed: the call, each mismatch, and what the tool wrote."""
    yield styled(call_line(result), "dim")
    for each in result.mismatches:
        yield ""
        if result.scenario.location.path != PYTHON:
            yield styled(escaped(place(result, each.path)), "dim")
        yield from explained(each, styled)
    yield from last_words(result)


def in_one_line(mismatch: Mismatch) -> str:
    """A mismatch, shortened to one line."""
    title, has_expected, rest = mismatch.message.partition("\nExpected: ")
    expected, has_actual, actual = rest.partition("\nActual: ")
    if not (has_expected and has_actual):
        return _shortened(mismatch.message, 2 * _MOST_OF_TEXT)
    return f"{title} expected {_shortened(expected)}, actual {_shortened(actual)}"


def _shortened(text: str, length: int = _MOST_OF_TEXT) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[:length]}…"


def explained(mismatch: Mismatch, styled: Styled = plain) -> Iterator[str]:
    """A mismatch; texts of several lines as a diff."""
    expected, actual = mismatch.expected, mismatch.actual
    if not _are_lines(expected, actual):
        yield from mismatch.message.replace("\n\nActual: ", "\nActual: ").splitlines()
    else:
        title = mismatch.message.partition("\n")[0]
        yield f"{title} - expected, + actual"
        yield from _diff(expected, actual, styled)
    if isinstance(expected, str) and isinstance(actual, str) and expected != actual:
        yield from _invisible(expected, actual)
    if mismatch.change is not None and any(mismatch.change):
        yield "- before the call, + after the call"
        yield from _diff(*mismatch.change, styled, most=_MOST_OF_CHANGE)
    if mismatch.note:
        yield mismatch.note


def call_line(result: Result) -> str:
    """The call, and its fault."""
    shown = f"{escaped(result.scenario.tool)} {json.dumps(dict(result.scenario.args), ensure_ascii=False)}"
    fault = f" with the fault {result.scenario.fault}" if result.scenario.fault is not None else ""
    return f"call: {shown if len(shown) <= _MOST_OF_CALL else f'{shown[:_MOST_OF_CALL]}…'}{fault}"


def _are_lines(expected: Any, actual: Any) -> bool:
    """Whether one of two texts has several lines."""
    texts = isinstance(expected, str) and isinstance(actual, str)
    return texts and any("\n" in text.rstrip("\n") for text in (expected, actual))


def _diff(expected: str, actual: str, styled: Styled, most: int = _MOST_LINES) -> Iterator[str]:
    lines = list(difflib.unified_diff(expected.splitlines(), actual.splitlines(), lineterm="", n=3))[2:]
    for line in lines[:most]:
        yield styled(line, "bad" if line.startswith("-") else "ok" if line.startswith("+") else "dim")
    if len(lines) > most:
        yield f"… and {len(lines) - most} more lines"


def _invisible(expected: str, actual: str) -> Iterator[str]:
    """What cannot be seen of a difference."""
    if expected.rstrip("\n") == actual.rstrip("\n"):
        more = len(actual) - len(actual.rstrip("\n")) - (len(expected) - len(expected.rstrip("\n")))
        many, where = abs(more), "actual" if more > 0 else "expected"
        yield f"The {where} text has {many} more newline{'s' * (many != 1)} at its end."
    elif expected.split() == actual.split():
        yield "The texts differ only in white space."


def last_words(result: Result) -> Iterator[str]:
    """The end of what the tool wrote to stderr, and of its output if the call failed or ended in another way than
    expected. What a mismatch shows is left out."""
    if result.outcome is None:
        return
    paths = {each.path for each in result.mismatches}
    ended_otherwise = bool(paths & {"expect.status", "expect.exit", "expect.error"})
    output, stderr = (result.outcome.get(each) or "" for each in ("output", "stderr"))
    is_shown = any(path.startswith("expect.output") for path in paths)
    if not is_shown and (ended_otherwise or (output and result.outcome["status"] != "done")):
        yield from _end_of("The tool wrote:" if output else "The tool wrote nothing.", output)
        is_shown = True
    if any(path.startswith("expect.stderr") for path in paths) or (is_shown and stderr.strip() in output):
        return
    if stderr.strip():
        yield from _end_of("The tool wrote to stderr:", stderr)


def _end_of(title: str, text: str) -> Iterator[str]:
    yield ""
    yield title
    yield from (f"  {line[:300]}" for line in text.splitlines()[-10:])


def summary(results: Sequence[Result], seconds: float) -> str:
    """How many scenarios passed, failed and were skipped."""
    passed = sum(each.passed for each in results)
    skipped = sum(each.skipped is not None for each in results)
    counts = ((passed, "passed"), (len(results) - passed - skipped, "failed"), (skipped, "skipped"))
    return f"{', '.join(f'{count} {word}' for count, word in counts if count)} in {seconds:.1f} s"
