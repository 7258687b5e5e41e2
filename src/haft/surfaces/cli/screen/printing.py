"""How commands speak: facts on stdout, talk on stderr.

`facts` prints one JSON value, `lines` and `table` print for people, `data` is what they stand on. Only the raw output
of a run reaches stdout by another way.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any

from haft.contracts import HaftError, MachineError
from haft.surfaces.cli.screen.short_names import shortened
from haft.surfaces.cli.screen.terminal import fitted, is_terminal, one_line, styled, visible


class StdoutFailed(MachineError):
    """What should have been printed was not: there is nowhere left to print to."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"standard output cannot be written: {cause.strerror}")


def to_json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that any reader takes: no NaN, no bytes that UTF-8 cannot hold."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=str)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, indent=indent, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: only an escape can carry it
        text = json.dumps(_finite(value), ensure_ascii=True, indent=indent, default=str)
    return text


def _finite(value: Any) -> Any:
    """`value` with null for the numbers that JSON has no form for."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def facts(value: Any) -> None:
    """One JSON value on stdout: on one line for programs, indented and escaped for people."""
    if is_terminal(sys.stdout):
        data(visible(to_json_text(value, indent=2)) + "\n")
    else:
        data(to_json_text(value) + "\n")


def data(text: str) -> None:
    """Text on stdout as it is; bytes that were not UTF-8 go out as they came in."""
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
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return text.encode("utf-8", "backslashreplace")


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """While writing to stdout: a full disk is no bug of ours. A reader that went away is left to `main`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutFailed(error) from error


def lines(texts: Iterable[str]) -> None:
    """Lines for a person."""
    verbatim(map(shortened, texts))


def verbatim(texts: Iterable[str]) -> None:
    """Lines for a person that are not ours: a patch shows what files hold."""
    for text in texts:
        data(f"{text}\n")


def table(rows: Sequence[Sequence[str]], *, style_first: str | None = None, cut: bool = True) -> None:
    """Aligned columns, the last one cut to the terminal's width. Cells are made visible here."""
    shortened(" ".join(cell for row in rows for cell in row))  # All at once: each look-up opens the database.
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
    """A word on stderr."""
    sys.stderr.write(visible(shortened(text)) + "\n")
    sys.stderr.flush()


def complain(message: str, hint: str | None = None) -> None:
    """An error: one sentence, and what to do on a line of its own."""
    _marked("error:", "bad", message)
    if hint:
        _marked("hint:", "dim", hint)


def warn(message: str) -> None:
    """Something that does not stop us and should be known."""
    _marked("warning:", "warn", message)


def _marked(mark: str, style: str, text: str) -> None:
    sys.stderr.write(f"{styled(mark, style, sys.stderr)} {visible(shortened(text))}\n")
    sys.stderr.flush()


def complain_of(error: HaftError) -> None:
    """An error of ours, in its own words."""
    complain(error.message, error.hint)
