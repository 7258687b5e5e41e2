"""Parses the description that a toolbox executable prints.

JSON is tried first, then text; the form decides how the tool gets its arguments later. The parser accepts what real
tools print: indented lines, lines that are not parameters, types called `bool` and `int`, a parameter called `name`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn

from haft.contracts import BadConfig
from haft.schema import from_compact, from_words, shortened, validator_for, why_not_json, why_too_large

Form = Literal["json", "text"]

LONGEST_NAME: Final = 200
LONGEST_DESCRIPTION: Final = 100_000
MOST_PARAMETERS: Final = 500


NO_DESCRIPTION: Final = "print `description: …`: what it does, and when to use it"
"""The hint for a tool that describes itself as text, but without a line `description:`."""


class Unreadable(Exception):
    """A description that cannot be used: the problem, and how to fix it."""

    def __init__(self, message: str, cure: str) -> None:
        self.message = message
        self.cure = cure
        super().__init__(f"{message}; {cure}")


@dataclass(frozen=True, slots=True)
class Description:
    """The parsed description of a tool."""

    name: str
    """The name as the tool printed it. It may have characters that a tool name may not have."""
    description: str
    input_schema: Mapping[str, Any]
    form: Form
    meta: Mapping[str, Any] = field(default_factory=dict)


def read_description(said: bytes) -> Description:
    """Parse a description. Raises `Unreadable` if that is not possible."""
    try:
        text = said.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"its description is not UTF-8 (byte {error.start})", "print UTF-8") from None
    if not text.strip():
        raise Unreadable("it printed nothing to stdout", "on TOOLBOX_ACTION=describe print its name and description")
    given = _json(text)
    described = _from_json(given) if given is not None else _from_text(text)
    if not described.name.strip() or len(described.name) > LONGEST_NAME:
        raise Unreadable("its name is empty or very long", "give it a name of a word or two")
    if len(described.description) > LONGEST_DESCRIPTION:
        raise Unreadable(f"its description has more than {LONGEST_DESCRIPTION:_} characters", "shorten it")
    _check_schema(described.input_schema)
    return described


def _json(text: str) -> Mapping[str, Any] | None:
    """The JSON object in the text; None if the text is not JSON."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no JSON")

    try:
        given = json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise Unreadable("its description is nested too deeply", "describe parameters more simply") from None
    except ValueError as error:
        if text.lstrip().startswith(("{", "[")):
            raise Unreadable(
                f"its description begins like JSON and is not JSON: {shortened(str(error), 200)}",
                "print one JSON object and nothing else to stdout",
            ) from None
        return None
    if not isinstance(given, dict):
        if isinstance(given, list):
            raise Unreadable("its description is a JSON array", "print one JSON object: one executable is one tool")
        return None
    if (why := why_not_json(given)) is not None:
        raise Unreadable(f"its description is not JSON: {why}", "print valid Unicode, and only finite numbers")
    if (why := why_too_large(given)) is not None:
        raise Unreadable(f"its description is too complex: {why}", "describe its parameters more simply")
    return given


def _from_json(given: Mapping[str, Any]) -> Description:
    name, description = given.get("name"), given.get("description", "")
    if not isinstance(name, str):
        raise Unreadable("its description has no `name`", 'add `"name": "…"`')
    if not isinstance(description, str):
        raise Unreadable("its `description` is not a text", 'make it `"description": "…"`')
    schema, args, meta = given.get("inputSchema"), given.get("args"), given.get("meta")
    if schema is None and args is not None:
        if not isinstance(args, Mapping):
            raise Unreadable("its `args` are not an object", 'write them as {"name": ["type", "description"]}')
        try:
            schema = from_compact(args)
        except ValueError as error:
            raise Unreadable(str(error), 'such as "path": ["string", "the file to read"]') from None
    if schema is None:
        schema = from_compact({})
    if not isinstance(schema, dict):
        raise Unreadable("its `inputSchema` is not an object", "write a JSON Schema of the type `object`")
    return Description(name, description.strip(), schema, "json", dict(meta) if isinstance(meta, Mapping) else {})


def _from_text(text: str) -> Description:
    name: str | None = None
    about: list[str] = []
    parameters: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, words = line.strip().partition(":")
        key, words = key.strip(), words.strip()
        if not colon or not key:
            continue
        if key == "description":
            about.append(words)
        elif key == "name" and name is None:
            name = words
        elif not words and key in ("parameters", "params", "args"):
            continue  # A heading, as in YAML.
        else:
            parameters[key] = words
    if name is None:
        first = shortened(text.strip().split("\n", 1)[0], 60)
        raise Unreadable(f"its description has no line `name:`; it begins with `{first}`", "print `name: …` first")
    if not any(about):
        raise Unreadable("it has no line `description:` with a text", NO_DESCRIPTION)
    return Description(name, "\n".join(about), from_words(parameters), "text")


def _check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `Unreadable` if an input schema is not valid, so that this is known when the tool is listed, and not only
    when it is called."""
    cure = "fix its `inputSchema`"
    if schema.get("type", "object") != "object":
        raise Unreadable(f"its input schema has the type {shortened(repr(schema['type']), 60)}", "make it `object`")
    if not isinstance(schema.get("properties", {}), Mapping):
        raise Unreadable("the `properties` of its input schema are not an object", cure)
    if len(schema.get("properties", {})) > MOST_PARAMETERS:
        raise Unreadable(f"it has more than {MOST_PARAMETERS} parameters", "split it into several tools")
    if (why := why_too_large(schema)) is not None:
        raise Unreadable(f"its input schema is too complex: {why}", cure)
    try:
        validator_for(schema)
    except BadConfig as error:
        raise Unreadable(error.message, cure) from None
