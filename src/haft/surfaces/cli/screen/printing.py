"""The printing functions of all commands: results on stdout, messages on stderr.

`facts` prints one JSON value, `lines` and `table` print for people; all of them use `data`. Only the raw output of a
run is written to stdout directly.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from haft.contracts import HaftError, MachineError
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.short_names import shortened
from haft.surfaces.text.terminal import fitted, is_terminal, one_line, styled, visible


class StdoutFailed(MachineError):
    """Standard output cannot be written, for example because the disk is full."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"standard output cannot be written: {cause.strerror}")


def facts(value: Any) -> None:
    """Print one JSON value on stdout: on one line for programs, indented and escaped on a terminal."""
    if is_terminal(sys.stdout):
        data(visible(to_json_text(value, indent=2)) + "\n")
    else:
        data(to_json_text(value) + "\n")


def data(text: str) -> None:
    """Print text on stdout unchanged; surrogate escapes become the bytes that they stand for."""
    with writing():
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            sys.stdout.flush()
            sys.stdout.buffer.write(_as_bytes(text))
        sys.stdout.flush()


def _as_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # The text has a surrogate that does not stand for a byte.
        return text.encode("utf-8", "backslashreplace")


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """A context manager that turns errors of writing to stdout into `StdoutFailed`. The error for a closed pipe is not
    changed, because `main` handles it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutFailed(error) from error


def lines(texts: Iterable[str]) -> None:
    """Print lines for a person, with short run names."""
    verbatim(map(shortened, texts))


def verbatim(texts: Iterable[str]) -> None:
    """Print lines without shortening the names of runs, unlike `lines`: a patch, for example, must stay unchanged."""
    for text in texts:
        data(f"{text}\n")


def table(rows: Sequence[Sequence[str]], *, style_first: str | None = None, cut: bool = True) -> None:
    """Print aligned columns. With `cut`, the last column is cut so that each row fits into the terminal's width.
    Invisible characters are escaped."""
    # Look up all run names at once, because each lookup opens the database.
    shortened(" ".join(cell for row in rows for cell in row))
    cells = [[one_line(shortened(cell)) for cell in row] for row in rows]
    if not cells:
        return
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    for row in cells:
        line = "  ".join(cell.ljust(widths[column]) for column, cell in enumerate(row)).rstrip()
        line = fitted(line) if cut else line
        if style_first is not None and line.startswith(row[0]):
            line = styled(row[0], style_first, sys.stdout) + line[len(row[0]) :]
        data(line + "\n")


def say(text: str) -> None:
    """Print a message on stderr."""
    sys.stderr.write(visible(shortened(text)) + "\n")
    sys.stderr.flush()


def complain(message: str, hint: str | None = None) -> None:
    """Print an error message, and the hint on a line of its own."""
    _marked("error:", "bad", message)
    if hint:
        _marked("hint:", "dim", hint)


def warn(message: str) -> None:
    """Print a warning."""
    _marked("warning:", "warn", message)


def _marked(mark: str, style: str, text: str) -> None:
    sys.stderr.write(f"{styled(mark, style, sys.stderr)} {visible(shortened(text))}\n")
    sys.stderr.flush()


def complain_of(error: HaftError) -> None:
    """Print the message and the hint of an error of haft."""
    complain(error.message, error.hint)
