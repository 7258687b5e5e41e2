"""The input of an executable when it runs: arguments on stdin in the form it expects, and the variables of the
protocol."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from haft.contracts import InvalidArguments
from haft.schema import shortened
from haft.sources.amp_toolbox.start_command import ENVIRONMENT

_ENDS_A_LINE: Final = re.compile("[\r\n\0\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Characters that some programs treat as the end of a line: the text after one could look like another parameter."""
_LATER: Final = re.compile(_ENDS_A_LINE.pattern + r"|\\(?:[nrfv]|0{0,2}1[2-5]|x0?[a-dA-D]|u000[a-dA-D])")
"""The characters of `_ENDS_A_LINE`, and escapes that `echo` of many shells turns into a new line."""
_WORD: Final = re.compile(
    r"(?:[\W\d_]*(?:export|declare|local|readonly|typeset|set|setenv|env|let|const|var|my)\s(?:\s*-\w+\s)*)*[\W\d_]*(\w[\w.-]*)"
)
"""The part of a line that a program may read as a name: the first word, after bullets, quotes, dashes and similar."""
_MARKED: Final = re.compile(r"\W*?[:=]")
_ADDRESS: Final = re.compile(r"\s*https?://[^\s=]+(?:\s|$)")
_SHORTEST_BEGINNING: Final = 3
"""The fewest letters that count as an abbreviation of a longer name: programs match `^target`, or accept `--tar`."""
_THREAD: Final = re.compile(r"T-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ESCAPES: Final = {ord(letter): f"\\u{ord(letter):04x}" for letter in "\x85\u2028\u2029"}
_THREADS: Final = uuid.UUID("6b1f1d0e-7f0a-5b64-9d7e-2f4c4b1f9a11")


def as_json(arguments: Mapping[str, Any]) -> bytes:
    """The arguments as one JSON object."""
    return json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()


def as_text(arguments: Mapping[str, Any], order: Iterable[str], separator: str) -> bytes:
    """One line for each argument, in the order of the parameters. Null values are left out."""
    names = dict.fromkeys((*(name for name in order if name in arguments), *arguments))
    lines = [f"{name}{separator}{_text(value)}\n" for name in names if (value := arguments[name]) is not None]
    return "".join(lines).encode()


def check_text(
    tool: str, arguments: Mapping[str, Any], separator: str, declared: Iterable[str] = (), *, assigns: bool = False
) -> None:
    """Refuse arguments that a tool which takes text could misread. haft does not know how a program parses its lines,
    so a value of several lines is accepted only if no line after the first looks like a parameter. If the tool
    `assigns` variables whose names come from its input, no value of several lines is accepted."""
    problems = list(_forgeries(arguments, separator.strip() or separator, {*declared, *arguments}, assigns))
    if problems:
        raise InvalidArguments(
            tool, problems, hint="change that line; a tool that describes itself in JSON can take any value"
        )


def forged_name(line: str, declared: Iterable[str]) -> str | None:
    """The parameter name that a program may see in a line: a declared name or a similar one, or any name before `:` or
    `=`. None if there is no such name."""
    found = _WORD.match(line)
    if found is None:
        return None
    bare = _bare(found[1])
    for name in declared:
        known = _bare(name)
        shorter, longer = sorted((bare, known), key=len)
        if bare == known or (len(shorter) >= _SHORTEST_BEGINNING and longer.startswith(shorter)):
            return name
    is_marked = _MARKED.match(line, found.end()) is not None
    return found[1] if is_marked and not _ADDRESS.match(line) else None


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _forgeries(arguments: Mapping[str, Any], mark: str, names: set[str], assigns: bool) -> Iterator[str]:
    for name, value in arguments.items():
        shown = shortened(name, 80)
        if not name.strip() or name != name.strip() or mark in name or _ENDS_A_LINE.search(name):
            yield f"`{shown}` cannot be the name of a parameter on a line of text"
        elif isinstance(value, str) and "\0" in value:
            yield f"`{shown}` has the character NUL, which a line of text cannot have"
        elif isinstance(value, str):
            for line in _LATER.split(value)[1:]:
                forged = forged_name(line, names)
                if forged is not None or (assigns and line.strip()):
                    which = "" if forged is None else f", `{shortened(forged, 80)}`"
                    yield (
                        f"`{shown}` has the line `{shortened(line.strip(), 80)}`, and the tool takes its arguments "
                        f"as lines of text: it could read that line as another parameter{which}"
                    )
                    break


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    # `echo` does not turn escapes such as `\u000a` into new lines, and a JSON parser reads the same value.
    return re.sub(r"\\(.)", _as_code, json.dumps(value, ensure_ascii=False).translate(_ESCAPES))


def _as_code(escape: re.Match[str]) -> str:
    code = {"n": "000a", "r": "000d", "f": "000c", "b": "0008", "t": "0009"}.get(escape[1])
    return escape[0] if code is None else f"\\u{code}"


def execute_environment(thread: str) -> dict[str, str]:
    """The variables that the protocol gives to a call. Published tools read the thread from any of three variables."""
    shaped = shaped_thread(thread)
    return {
        "TOOLBOX_ACTION": "execute",
        **ENVIRONMENT,
        "AMP_THREAD_ID": shaped,
        "AGENT_THREAD_ID": shaped,
        "AMP_CURRENT_THREAD_ID": shaped,
    }


def shaped_thread(thread: str) -> str:
    """The id of a thread in the form that tools expect, `T-<uuid>`. The same thread always gives the same id."""
    return thread if _THREAD.fullmatch(thread) else f"T-{uuid.uuid5(_THREADS, thread)}"
