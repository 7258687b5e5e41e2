"""Passes arguments and settings to a bash tool: as words or on stdin, never through a shell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import InvalidArguments

LONGEST_WORD: Final = 128 * 1024 - 1
"""The most bytes of one argument: Linux starts no program with a longer one."""
MOST_WORDS: Final = 1_000_000
"""The most bytes of all arguments together."""


def with_defaults(arguments: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with defaults filled in: first the defaults of `positional`, then those of the schema."""
    filled = dict(arguments)
    for place in known["positional"]:
        if "default" in place:
            filled.setdefault(place["name"], place["default"])
    for name, schema in known["inputSchema"].get("properties", {}).items():
        if isinstance(schema, Mapping) and "default" in schema:
            filled.setdefault(name, schema["default"])
    return filled


def words_of(arguments: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[list[str], bytes]:
    """The words after the subcommand, and the content of stdin."""
    match known["mode"]:
        case "json":
            return ["--args-json"], json.dumps(arguments, ensure_ascii=False).encode()
        case "positional":
            return _positional(arguments, [place["name"] for place in known["positional"]]), b""
        case _:
            order = known["inputSchema"].get("properties", {})
            names = dict.fromkeys((*(name for name in order if name in arguments), *arguments))
            return [word for name in names for word in _flag(name, arguments[name])], b""


def check_words(tool: str, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse arguments that cannot be passed as words. On stdin every valid value can be passed."""
    if known["mode"] == "json":
        return
    words, _stdin = words_of(arguments, known)
    total = 0
    for word in words:
        size = len(word.encode("utf-8", "surrogatepass"))
        total += size
        if "\0" in word:
            raise InvalidArguments(tool, ["a value has a NUL character, which an argument cannot have"])
        if size > LONGEST_WORD or total > MOST_WORDS:
            problem = f"a value has {size:_} bytes, more than can be passed as an argument"
            raise InvalidArguments(tool, [problem], hint='a tool with `"args_mode": "json"` takes any length')


def _flag(name: str, value: Any) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, bool):
        yield f"--{name}" if value else f"--no-{name}"
        return
    for one in value if isinstance(value, list) else [value]:
        yield f"--{name}"
        yield _word(one)


def _positional(arguments: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    given = [name for name in names if arguments.get(name) is not None]
    if not given:
        return []
    last = names.index(given[-1])
    return [_word(arguments.get(name)) for name in names[: last + 1]]


def _word(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def settings_of(keys: Sequence[str], config: Mapping[str, Any]) -> dict[str, str]:
    """The variables for the settings that a tool declares. Only texts, numbers and booleans are passed."""
    variables = {}
    for key in keys:
        value = config.get(key)
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, str | int | float) and "\0" not in str(value):
            variables[f"AGENT_TOOL_CONFIG_{upper_snake(key)}"] = str(value)
    return variables


def upper_snake(key: str) -> str:
    """The name in upper case with underscores: `SMTP_USER` for `smtpUser` and for `smtp-user`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    return re.sub(r"[^A-Za-z0-9]", "_", parted).upper()
