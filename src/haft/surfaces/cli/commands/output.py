"""`haft output RUN`: prints the whole kept output of a run, byte for byte, without loading it into memory as a whole.

Of a very long output, haft keeps only the beginning and the end. The size of the gap between them is printed on stderr,
so that stdout has only the tool's own bytes.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from haft.contracts import BadUsage
from haft.surfaces.cli.globals import Globals, HaftCommand
from haft.surfaces.cli.place import history_with
from haft.surfaces.cli.screen.printing import facts, say, writing
from haft.surfaces.cli.words.run_completion import complete_run
from haft.surfaces.text.terminal import is_terminal, visible

if TYPE_CHECKING:
    from haft.service import Frame

MOST_IN_JSON: Final = 10_000_000
LONGEST_LINE: Final = 1_000_000
"""The longest line that is matched as a whole. Longer ones are matched in pieces of this size, because a line can have
any length."""

Piece = tuple[bytes, int]
"""A piece of output, and how many bytes are missing before it."""


@click.command("output", cls=HaftCommand)
@click.argument("run", shell_complete=complete_run, help="A run: its id, or the beginning of the id.")
@click.option("--grep", metavar="RE", help="Only lines that this regular expression matches.")
@click.option(
    "--lines", "span", metavar="A:B", help="Only lines A to B. Lines are counted from 1. `A:` and `:B` work too."
)
@click.pass_obj
def print_output(options: Globals, run: str, grep: str | None, span: str | None) -> None:
    """Print the stored output of a run: stdout and stderr together, in their original order."""
    fits = _matcher(grep)
    first, last = _span(span)
    with history_with(run) as kept:
        record = kept.find(run)
        frames = kept.output(record, first)
        pieces: Iterable[Piece] = ((frame.data, frame.skipped) for frame in frames)
        if fits is not None or span is not None:
            pieces = _chosen(_lines(frames), fits, first, last)
        if options.json:
            facts(_gathered(record.id, pieces, record.outcome["outputBytes"]))
            return
        skipped = _print(pieces)
    if skipped and not options.quiet:
        say(f"{skipped:_} bytes between head and tail were not kept")


def _matcher(expression: str | None) -> Callable[[bytes], Any] | None:
    if expression is None:
        return None
    try:
        return re.compile(expression.encode("utf-8", "surrogateescape")).search
    except re.error as error:
        raise BadUsage(f"`--grep` needs a regular expression: {error}") from error


def _span(text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 1, None
    match = re.fullmatch(r"(\d*)(:?)(\d*)", text)
    if match is None or text in ("", ":") or (not match[2] and match[3]):
        raise BadUsage(f"`--lines` is given as A:B, not `{text}`", hint="`10:20`, `10:`, `:20` or `10`")
    first = int(match[1] or 1)
    last = int(match[3]) if match[3] else (None if match[2] else first)
    if first < 1 or (last is not None and last < first):
        raise BadUsage(f"`--lines {text}` selects no lines", hint="lines count from 1, and A is not after B")
    return first, last


def _lines(frames: Iterable[Frame]) -> Iterator[tuple[bytes, int, int]]:
    """The output line by line: the line's bytes, the number of bytes missing before it, and its number. A gap ends the
    line before it."""
    rest, number = b"", 1
    for frame in frames:
        if frame.skipped:
            if rest:
                yield rest, 0, number
            rest = b""
            yield b"", frame.skipped, number
        if frame.line != number:
            rest, number = b"", frame.line  # The lines before this frame's first one were skipped.
        *whole, rest = (rest + frame.data).split(b"\n")
        for line in whole:
            yield line + b"\n", 0, number
            number += 1
        while len(rest) > LONGEST_LINE:
            yield rest[:LONGEST_LINE], 0, number
            rest = rest[LONGEST_LINE:]
    if rest:
        yield rest, 0, number


def _chosen(
    pieces: Iterable[tuple[bytes, int, int]], fits: Callable[[bytes], Any] | None, first: int, last: int | None
) -> Iterator[Piece]:
    for line, skipped, number in pieces:
        if skipped:
            yield b"", skipped
            continue
        if last is not None and number > last:
            return
        if number >= first and (fits is None or fits(line.removesuffix(b"\n"))):
            yield line, 0


def _print(pieces: Iterable[Piece]) -> int:
    """Write the pieces to stdout, and return how many bytes are missing."""
    write = _for_terminal() if is_terminal(sys.stdout) else _for_program(sys.stdout.buffer)
    missing = 0
    with writing():
        for data, skipped in pieces:
            missing += skipped
            write(data)
        sys.stdout.flush()
    return missing


def _for_program(stdout: BinaryIO) -> Callable[[bytes], object]:
    return stdout.write


def _for_terminal() -> Callable[[bytes], object]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return lambda data: sys.stdout.write(visible(decoder.decode(data)))


def _gathered(run: str, pieces: Iterable[Piece], total: int) -> dict[str, Any]:
    """The result for `--json`, with at most `MOST_IN_JSON` bytes of the output."""
    kept = bytearray()
    skipped = left = 0
    for data, missing in pieces:
        skipped += missing
        room = MOST_IN_JSON - len(kept)
        kept += data[:room]
        left += max(0, len(data) - room)
    text = kept.decode("utf-8", "replace")
    return {"run": run, "output": text, "bytes": total, "skipped": skipped, "truncated": left > 0}
