"""The file of `haft tools batch`: a JSON array of calls, or one call a line."""

from __future__ import annotations

import sys
from typing import Any, Final

from haft.contracts import BadUsage
from haft.surfaces.cli.words.json_input import parse_json

MOST_BYTES: Final = 64_000_000
_HINT: Final = 'write a JSON array of calls, or one call a line: {"tool": …, "args": {…}}'


def read_batch(place: str) -> list[Any]:
    """The calls in a file; `-` is standard input. The calls themselves are not checked."""
    source = "standard input" if place == "-" else place
    try:
        if place == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with open(place, "rb") as file:
                data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadUsage(f"the calls in {source} cannot be read: {reason}") from error
    if len(data) > MOST_BYTES:
        raise BadUsage(f"{source} has more than {MOST_BYTES:,} bytes", hint="make several batches")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadUsage(f"{source} is not UTF-8") from error
    if text.lstrip().startswith("["):
        found = _parsed(text, source)
        assert isinstance(found, list)
        return found
    lines = enumerate(text.split("\n"), 1)
    return [_call(line, f"line {number} of {source}") for number, line in lines if line.strip()]


def _call(line: str, source: str) -> Any:
    try:
        return _parsed(line, source)
    except BadUsage as error:
        # The line has its number in the file. Its number in itself would contradict that.
        raise BadUsage(error.message.replace(" at line 1, column ", " at column "), hint=_HINT) from error


def _parsed(text: str, source: str) -> Any:
    try:
        return parse_json(text, source)
    except BadUsage as error:
        raise BadUsage(error.message, hint=_HINT) from error
