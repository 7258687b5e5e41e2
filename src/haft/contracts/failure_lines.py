"""Finds the line of a program's output that says why the program failed. Often that is not the last line, because stack
traces, summaries and hints follow it. The patterns know the English messages of interpreters, compilers and package
managers; for all other programs the last line counts."""

from __future__ import annotations

import re
from typing import Final, Literal

LONGEST: Final = 300
MOST_LINES: Final = 400
LONGEST_LINE: Final = 4_000

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PROGRESS: Final = re.compile(r"^[\s\d:.%kMG-]+(?=curl: \()")
_CLASS: Final = r"(?:[A-Za-z_][\w.$:]*)?(?:Error|Exception|Interrupt|Failure)"
_NOISE: Final = re.compile(
    r"[\s})\]^~|]*$|exit status \d+|Node\.js v|Bun v|Deno v|\s+(?:at|from) |make(?:\[\d+\])?: \*\*\*|"
    r"(?:note|hint|help): |"
    r"npm (?:ERR!|error) (?:code|errno|syscall|path|dest|cwd|A complete log|Log files|\s*$|.*_logs/)|"
    r"error: (?:could not compile|aborting due to|script .* exited|recipe )|For more information about this error|"
    r"BEGIN failed|Stack trace:|#\d+ |\s+thrown in |goroutine \d+ |Some errors have|Compilation failed|\s+code: '",
    re.IGNORECASE,
)
"""Lines around the error line that do not say what failed."""

_TELLING: Final[tuple[tuple[re.Pattern[str], Literal["first", "last"]], ...]] = (
    (re.compile(r"panic: |fatal error: |thread '.*' panicked at "), "first"),
    (re.compile(r"(?:PHP )?(?:Fatal|Parse) error: "), "first"),
    (re.compile(r".*\((?:\w+::)*\w*(?:Error|Exception|ENOENT|EACCES)\)$"), "first"),  # Ruby
    (re.compile(r"\S+?:\d+(?::\d+)?:? (?:fatal )?error\b|\S+\.go:\d+(?::\d+)?: |\S+\(\d+,\d+\): error "), "first"),
    (re.compile(r"error(?:\[\w+\])?: "), "first"),  # cargo, rustc, uv, deno, bun
    (re.compile(r"npm (?:ERR!|error) "), "first"),
    (re.compile(r"\s*× "), "first"),  # uv, ruff, miette
    (re.compile(r"Can't locate |syntax error at |.+ at \S+ line \d+\.$"), "first"),  # Perl
    (re.compile(rf"(?:Uncaught |Unhandled |Exception in thread \"[^\"]*\" )?{_CLASS}(?: \[\w+\])?(?:: |$)"), "last"),
    (re.compile(r".*(?:command not found|: not found$|unbound variable|parameter (?:null or )?not set)"), "last"),
    (re.compile(r"(?:\w+: )?fatal: |\w+: \(\d+\) |.*\bERROR\b[:\]]|.*\b[Ee]rror: "), "last"),
    (re.compile(r".*(?:No such file or directory|Permission denied|is required|must be set|annot |ailed )"), "last"),
)  # fmt: skip
"""Patterns of error lines, the surest first. If several lines match, the second value says which one to take."""
_EXCEPTION: Final = re.compile(r"(?:[A-Za-z_][\w.]*)(?:: |$)")


def without_progress(line: str) -> str:
    """The line without the progress that curl prints before its error."""
    return _PROGRESS.sub("", line)


def error_line(text: str) -> str | None:
    """The line that says what failed; None if no line matches a known pattern."""
    lines = [
        without_progress(_COLOUR.sub("", line[:LONGEST_LINE])).rstrip() for line in text.splitlines()[-MOST_LINES:]
    ]
    found = _raised(lines)
    if found is None:
        left = [number for number, line in enumerate(lines) if not _NOISE.match(line)]
        for pattern, which in _TELLING:
            fitting = [number for number in left if pattern.match(lines[number])]
            if fitting:
                found = fitting[0 if which == "first" else -1]
                break
    if found is None:
        return None
    line = lines[found].strip()
    if re.match(r"thread '.*' panicked at .*:$", line) and found + 1 < len(lines):
        line = f"{line} {lines[found + 1].strip()}"
    return _short(line)


def error_or_last_line(text: str) -> str:
    """The line that says what failed; if there is none, the last line with a text, or an empty text."""
    found = error_line(text)
    if found is not None:
        return found
    said = [line.strip() for line in _COLOUR.sub("", text[-LONGEST_LINE:]).splitlines() if line.strip()]
    return _short(next((line for line in reversed(said) if not _NOISE.match(line)), said[-1] if said else ""))


def _raised(lines: list[str]) -> int | None:
    """The index of the line that names the exception of the last Python traceback; None if there is no such line. It is
    the first line after `Traceback (…)` that looks like an exception and is not indented further than `Traceback`."""
    head = next(
        (n for n in reversed(range(len(lines))) if lines[n].lstrip().startswith("Traceback (most recent")), None
    )
    if head is None:
        return None
    margin = len(lines[head]) - len(lines[head].lstrip())
    for number in range(head + 1, len(lines)):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip()) <= margin and _EXCEPTION.match(line.strip()):
            return number
    return None


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
