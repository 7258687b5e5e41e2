"""JSON that a person writes: on the command line, in a file, or in an editor."""

from __future__ import annotations

import json
import sys
from typing import Any

from haft.contracts import BadUsage


def read_arguments(text: str | None) -> dict[str, Any]:
    """The arguments of `--args`: JSON, `@FILE` for a file with JSON, or `-` for standard input."""
    if text is None:
        return {}
    source = "`--args`"
    if text == "-":
        source, text = "standard input", _decoded("standard input", sys.stdin.buffer.read())
    elif text.startswith("@"):
        source = text[1:]
        try:
            with open(source, "rb") as file:
                text = _decoded(source, file.read())
        except OSError as error:
            raise BadUsage(f"the arguments in {source} cannot be read: {error.strerror}") from error
    value = parse_json(text, source)
    if not isinstance(value, dict):
        raise BadUsage(f"{source} must hold a JSON object", hint='such as {"path": "a.txt"}')
    return value


def parse_json(text: str, source: str) -> Any:
    """Parse JSON. `NaN` and `Infinity`, which Python would accept, are refused."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not valid JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadUsage(f"{source} is not JSON: {error.msg.lower()} at {where}") from error
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"{source} is not JSON: {error}") from error


def _decoded(source: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadUsage(f"{source} is not UTF-8") from error
