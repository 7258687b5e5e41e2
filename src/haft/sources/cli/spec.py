"""Parses and checks the description of a program's commands: from a spec file, or from the program itself."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from haft.contracts import BadConfig, clean_tool_name, near_miss

TYPES: Final = ("string", "integer", "number", "boolean", "array", "object")
TYPES_BY_WAY: Final = {
    "position": TYPES,
    "option": TYPES,
    "flag": ("boolean",),
    "count": ("integer",),
    "stdin": ("string", "object"),
}
"""For each way to pass a value, the types that the value may have."""
MANY: Final = ("repeat", "together", "exactly")
"""How several values are passed. `repeat`: the option is repeated for each value. `together`: the option is given once,
before all values. `exactly`: the same for a fixed number of values, which may also begin with `-`."""
MOST_COMMANDS: Final = 500
MOST_PARAMETERS: Final = 200
LARGEST: Final = 1_000_000
LONGEST_DEFAULT: Final = 40
MOST_NUMBER: Final = 2**63
_EFFECTS: Final = ("readonly", "network", "idempotent")
_CACHEABLE: Final = "cacheable"
"""This effect is in a command only if it holds. So commands without it keep the digest to which approvals are bound."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_OPTION: Final = re.compile(r"-{1,2}[^\s=-][^\s=]*|-[^\s=-]")

Command = dict[str, Any]
"""One command as plain JSON: `name`, `description`, `program`, `words`, `end_of_options`, `parameters`, `effects`."""


def read_spec(text: str, where: str, *, prefix: str | None = None) -> list[Command]:
    """The commands of a spec file, from its text. Raises `BadConfig` if the text is not a valid spec."""
    if len(text) > LARGEST:
        raise BadConfig(f"{where} is larger than {LARGEST:_} bytes")
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfig(f"{where} cannot be understood: {error}") from error
    return commands_of(given, where, prefix=prefix)


def commands_of(given: Mapping[str, Any], where: str, *, prefix: str | None = None) -> list[Command]:
    """The commands of a spec that is already decoded: a spec file, or a program's own description. Raises `BadConfig`
    if it is not valid."""
    spec = _Spec(where)
    return list(spec.commands(given, prefix))


class _Spec:
    def __init__(self, where: str) -> None:
        self._where = where

    def _wrong(self, what: str, hint: str | None = None) -> BadConfig:
        return BadConfig(f"{self._where}: {what}", hint=hint)

    def _keys(self, given: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
        for key in given:
            if key not in known:
                near = near_miss(key, known)
                raise self._wrong(f"{what} has no `{key}`", f"did you mean `{near}`?" if near else None)

    def commands(self, given: Mapping[str, Any], prefix: str | None) -> Iterator[Command]:
        self._keys(given, ("program", "prefix", "end_of_options", "commands"), "the file")
        program = given.get("program")
        program = [program] if isinstance(program, str) else program
        if not isinstance(program, list) or not program or not all(word and _is_word(word) for word in program):
            raise self._wrong("`program` must be the name of a program, or a list of words")
        if prefix is None:
            prefix = given.get("prefix", f"{program[-1].rsplit('/', 1)[-1]}-")
        end = given.get("end_of_options", "--")
        entries = given.get("commands")
        if not isinstance(prefix, str) or not _is_word(end):
            raise self._wrong("`prefix` and `end_of_options` must be texts")
        if not isinstance(entries, list) or not entries or len(entries) > MOST_COMMANDS:
            raise self._wrong(f"it needs [[commands]], at most {MOST_COMMANDS}")
        seen: set[str] = set()
        for number, entry in enumerate(entries, 1):
            command = self._command(entry, number, program, prefix, end)
            if command["name"] in seen:
                raise self._wrong(f"two commands are called `{command['name']}`")
            seen.add(command["name"])
            yield command

    def _command(self, entry: Any, number: int, program: list[str], prefix: str, end: str) -> Command:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"].strip():
            raise self._wrong(f"command {number} has no `name`")
        subject = f"the command `{entry['name']}`"
        known = ("name", "description", "words", "end_of_options", "refused", "parameters", *_EFFECTS, _CACHEABLE)
        self._keys(entry, known, subject)
        words = entry.get("words", entry["name"].split())
        if not isinstance(words, list) or not all(_is_word(word) for word in words):
            raise self._wrong(f"`words` of {subject} must be a list of texts")
        end = entry.get("end_of_options", end)
        refused = entry.get("refused", [])
        if not isinstance(refused, list) or not all(isinstance(one, str) and one for one in refused):
            raise self._wrong(f"`refused` of {subject} must be a list of texts with which no value may begin")
        if not _is_word(end) or not isinstance(entry.get("description", ""), str):
            raise self._wrong(f"`description` and `end_of_options` of {subject} must be texts")
        name = clean_tool_name(prefix + "-".join(entry["name"].split()))
        parameters = entry.get("parameters", {})
        listed = parameters if isinstance(parameters, list) else None
        if listed is None and isinstance(parameters, dict):
            listed = [{"name": key, **one} if isinstance(one, dict) else one for key, one in parameters.items()]
        if listed is None or len(listed) > MOST_PARAMETERS:
            raise self._wrong(f"`parameters` of {subject} must be tables, at most {MOST_PARAMETERS}")
        checked = [self._parameter(one, subject) for one in listed]
        names = [one["name"] for one in checked]
        if len(set(names)) != len(names):
            raise self._wrong(f"{subject} has two parameters of one name")
        if sum(one["by"] == "stdin" or "or_stdin" in one for one in checked) > 1:
            raise self._wrong(f"{subject} has two parameters for one stdin")
        for key in (*_EFFECTS, _CACHEABLE):
            if not isinstance(entry.get(key, False), bool):
                raise self._wrong(f"`{key}` of {subject} must be true or false")
        return {
            "name": name,
            "description": _text(entry.get("description")) or f"Run `{' '.join([program[-1], *words])}`.",
            "program": list(program),
            "words": list(words),
            "end_of_options": end.strip(),
            **({"refused": refused} if refused else {}),
            "parameters": checked,
            "effects": {
                **{key: entry.get(key, False) for key in _EFFECTS},
                **({_CACHEABLE: True} if entry.get(_CACHEABLE) else {}),
            },
        }

    def _parameter(self, given: Any, of: str) -> dict[str, Any]:
        if not isinstance(given, dict) or not isinstance(given.get("name"), str) or not _NAME.fullmatch(given["name"]):
            raise self._wrong(f"a parameter of {of} has no valid name")
        subject = f"`{given['name']}` of {of}"
        known = (
            "name", "type", "items", "help", "required", "by", "option", "off", "choices", "many", "number", "lead",
            "default", "or_stdin",
        )  # fmt: skip
        self._keys(given, known, subject)
        many = given.get("many", "")
        many = {True: "repeat", False: ""}.get(many, many) if isinstance(many, bool) else many
        option = given.get("option", "")
        by = given.get("by") or ("position" if not option else "flag" if given.get("type") == "boolean" else "option")
        types = TYPES_BY_WAY.get(by, ()) if isinstance(by, str) else ()
        kind = given.get("type") or ("array" if many else types[0] if types else "string")
        many = many or ("repeat" if kind == "array" else "")
        if kind not in types or many not in ("", *MANY) or (many and "array" not in types):
            raise self._wrong(
                f"{subject} has a wrong combination of `by`, `type` and `many`",
                f"by: {', '.join(TYPES_BY_WAY)}; type: {', '.join(types or TYPES)}; many: true, {', '.join(MANY)}",
            )
        self._check(given, subject, by, option)
        number = given.get("number")
        is_number = type(number) is int and 1 <= number <= MOST_PARAMETERS and bool(many)
        if not is_number and (number is not None or many == "exactly"):
            raise self._wrong(f"`number` of {subject} must say how many values there are")
        return {
            "name": given["name"],
            "type": "array" if many else kind,
            **({"items": given.get("items") or (kind if kind != "array" else "string")} if many else {}),
            "help": _text(given.get("help")),
            "required": given.get("required", by == "position" and "default" not in given and not many),
            "by": by,
            **({"option": option} if option else {}),
            **({"off": given["off"]} if given.get("off") else {}),
            **({"choices": list(given["choices"])} if given.get("choices") else {}),
            **({"many": many} if many else {}),
            **({"number": number} if number is not None else {}),
            **({"lead": list(given["lead"])} if given.get("lead") else {}),
            **({"or_stdin": True} if given.get("or_stdin") else {}),
            **({"default": given["default"]} if _is_worth_telling(given.get("default")) else {}),
        }

    def _check(self, given: dict[str, Any], subject: str, by: str, option: Any) -> None:
        """Check all keys of a parameter except its type."""
        if by in ("option", "flag", "count") and not _is_option(option):
            raise self._wrong(f"{subject} needs an `option` such as `--{given['name']}`")
        if by in ("position", "stdin") and option:
            raise self._wrong(f"{subject} is passed by {by}, and has an `option`")
        if "off" in given and (by != "flag" or not _is_option(given["off"])):
            raise self._wrong(f"`off` of {subject} must be an option that turns a flag off")
        if not isinstance(given.get("help", ""), str):
            raise self._wrong(f"`help` of {subject} must be a text")
        if given.get("items", "string") not in TYPES or given.get("items") == "array":
            raise self._wrong(f"`items` of {subject} must be one of {', '.join(TYPES)}, but not array")
        choices, lead = given.get("choices", []), given.get("lead", [])
        if not isinstance(choices, list) or not all(_is_word(one) or _is_number(one) for one in choices):
            raise self._wrong(f"`choices` of {subject} must be a list of texts or numbers")
        if not isinstance(lead, list) or not all(_is_word(word) for word in lead):
            raise self._wrong(f"`lead` of {subject} must be a list of texts")
        if "or_stdin" in given and (by != "position" or given.get("many") or not isinstance(given["or_stdin"], bool)):
            raise self._wrong(
                f"`or_stdin` of {subject} must be true or false, for one value that is passed by position"
            )
        if not isinstance(given.get("required", False), bool):
            raise self._wrong(f"`required` of {subject} must be true or false")


def _is_word(value: Any) -> bool:
    """Whether a value can be passed to a program."""
    return isinstance(value, str) and not any(one == "\0" or "\ud800" <= one <= "\udfff" for one in value)


def _is_option(value: Any) -> bool:
    return _is_word(value) and _OPTION.fullmatch(value) is not None


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and abs(value) < MOST_NUMBER and math.isfinite(value)


def _is_worth_telling(default: Any) -> bool:
    """Whether the description names a default: only if the default is a number or a short text, and not a path of this
    machine."""
    is_text = isinstance(default, str) and 0 < len(default) <= LONGEST_DEFAULT and default.isprintable()
    return _is_number(default) or (is_text and os.sep not in default)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
