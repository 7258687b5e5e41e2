"""What an executable is handed when it runs: its arguments on stdin, in its own form, and the protocol's variables."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from haft.contracts import InvalidArguments
from haft.schema import shortened
from haft.sources.amp_toolbox.starting import ENVIRONMENT

_ENDS_A_LINE: Final = re.compile("[\r\n\0\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Where one reader or another takes a line to end: what follows may be another parameter."""
_THREAD: Final = re.compile(r"T-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ESCAPES: Final = {ord(letter): f"\\u{ord(letter):04x}" for letter in "\x85\u2028\u2029"}
_THREADS: Final = uuid.UUID("6b1f1d0e-7f0a-5b64-9d7e-2f4c4b1f9a11")


def as_json(arguments: Mapping[str, Any]) -> bytes:
    """One JSON object."""
    return json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()


def as_text(arguments: Mapping[str, Any], order: Iterable[str], separator: str) -> bytes:
    """One line for each argument, in the order of the parameters. Null is left out."""
    names = dict.fromkeys((*(name for name in order if name in arguments), *arguments))
    lines = [f"{name}{separator}{_text(value)}\n" for name in names if (value := arguments[name]) is not None]
    return "".join(lines).encode()


def check_text(
    tool: str, arguments: Mapping[str, Any], separator: str, declared: Iterable[str] = (), *, ends: str = ""
) -> None:
    """Refuse what a text tool would take for something else than was passed. `ends` are further characters that end a
    name in the lines that it reads. A value of several lines passes where no later line names a parameter."""
    problems = list(_forgeries(arguments, separator.strip() or separator, {*declared, *arguments}, ends))
    if problems:
        raise InvalidArguments(tool, problems, hint="a tool that describes itself in JSON can take any value")


def _forgeries(arguments: Mapping[str, Any], mark: str, names: set[str], ends: str) -> Iterator[str]:
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    # Readers that split without looking for the mark take a line of a name alone for that parameter too.
    end = "|".join(["$", re.escape(mark), *(r"\s" if each == " " else re.escape(each) for each in ends)])
    forged = re.compile(rf"\s*({known})\s*?(?:{end})", re.IGNORECASE)
    for name, value in arguments.items():
        shown = shortened(name, 80)
        if not name.strip() or name != name.strip() or mark in name or _ENDS_A_LINE.search(name):
            yield f"`{shown}` cannot be the name of a parameter on a line of text"
        elif isinstance(value, str) and "\0" in value:
            yield f"`{shown}` holds the character NUL, which no line of text can"
        elif isinstance(value, str):
            later = (found for line in _ENDS_A_LINE.split(value)[1:] if (found := forged.match(line)) is not None)
            if (first := next(later, None)) is not None:
                yield (
                    f"`{shown}` holds a line that begins with `{shortened(first[1], 80)}`, and the tool takes its "
                    "arguments as lines of text: it would be read as that parameter"
                )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).translate(_ESCAPES)


def execute_environment(thread: str) -> dict[str, str]:
    """The protocol's variables. Published tools read the thread from any of three."""
    shaped = shaped_thread(thread)
    return {
        "TOOLBOX_ACTION": "execute",
        **ENVIRONMENT,
        "AMP_THREAD_ID": shaped,
        "AGENT_THREAD_ID": shaped,
        "AMP_CURRENT_THREAD_ID": shaped,
    }


def shaped_thread(thread: str) -> str:
    """A thread as tools expect to see it, `T-<uuid>`: another name always becomes the same one."""
    return thread if _THREAD.fullmatch(thread) else f"T-{uuid.uuid5(_THREADS, thread)}"
