"""Texts for values, types and places in messages.

`explain` and `coerce` make their sentences from these texts, so that both use the same words. Values come from agents
and tools, which may be hostile, so the values are shortened, and terminal control characters are escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

LONGEST_VALUE: Final = 60
LONGEST_NAME: Final = 80
MOST_CHOICES: Final = 20

_TYPE_WORDS: Final = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def escaped(text: str) -> str:
    """The text with escapes for all characters that are not printable."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def shortened(text: str, longest: int) -> str:
    """`text` on one printable line of at most about `longest` characters."""
    # Cut before escaping too: a value may be megabytes long.
    line = escaped(text[: longest + 1])
    return line if len(line) <= longest else line[: longest - 1] + "…"


def quoted(value: Any) -> str:
    """The value as JSON, on one short printable line."""
    if isinstance(value, str):
        return f'"{shortened(value, LONGEST_VALUE)}"'
    if isinstance(value, list | tuple | dict) and len(value) > LONGEST_VALUE:
        return "an array" if not isinstance(value, dict) else "an object"
    try:
        text = json.dumps(value, ensure_ascii=False, default=lambda other: f"<{type(other).__name__}>")
    except (ValueError, TypeError, RecursionError):
        text = f"<{type(value).__name__}>"
    return shortened(text, LONGEST_VALUE)


def value_with_type(value: Any) -> str:
    """The value after the name of its JSON type: `the string "x"`."""
    if value is None or isinstance(value, bool):
        return quoted(value)
    for python_types, word in (((str,), "string"), ((int, float), "number"), ((list, tuple), "array")):
        if isinstance(value, python_types):
            return f"the {word} {quoted(value)}"
    return f"the object {quoted(value)}" if isinstance(value, Mapping) else f"a Python `{type(value).__name__}`"


def place(path: Sequence[str | int]) -> str:
    """The place in the arguments: `edits[2].old_string`, or `the arguments` for the whole."""
    if not path:
        return "the arguments"
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"`{shortened(text.removeprefix('.'), LONGEST_NAME)}`"


def in_backticks(name: str) -> str:
    """The name of a parameter or key, in backticks."""
    return f"`{shortened(name, LONGEST_NAME)}`"


def either(words: Iterable[str]) -> str:
    """The words as a choice in a sentence: `a`, `a or b`, `a, b or c`."""
    *most, last = dict.fromkeys(words)
    return f"{', '.join(most)} or {last}" if most else last


def choices(options: Sequence[Any]) -> str:
    """The first allowed values, in their order, and how many more there are."""
    shown = [quoted(option) for option in options[:MOST_CHOICES]]
    if len(options) > MOST_CHOICES:
        shown.append(f"… ({len(options) - MOST_CHOICES} more)")
    return ", ".join(shown)


def type_words(types: Iterable[str]) -> str:
    """JSON type names as a phrase: `an integer or null`."""
    return either(_TYPE_WORDS.get(name, name) for name in types)


def resolve(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` with references into `root` followed. A reference that cannot be followed becomes `{}`, which accepts
    any value."""
    for _ in range(32):  # A reference may lead in a circle.
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        target = step_into(root, [_unescape(part) for part in reference[1:].split("/")[1:]])
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **siblings} if isinstance(target, Mapping) else None
    return {}


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def step_into(value: Any, path: Iterable[str | int]) -> Any:
    """The value at `path` inside nested objects and arrays; None if nothing is at that path."""
    for part in path:
        try:
            value = value[int(part)] if isinstance(value, list | tuple) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value


def expected(schema: Any, root: Mapping[str, Any]) -> str:
    """The value that a schema expects, in a few words: `an integer`, `one of "a", "b"`."""
    schema = resolve(schema, root)
    if "const" in schema:
        return quoted(schema["const"])
    options = schema.get("enum")
    if isinstance(options, list):
        return f"one of {choices(options)}"
    types = schema.get("type")
    if isinstance(types, str):
        return type_words([types])
    if isinstance(types, list) and types:
        return type_words(str(name) for name in types)
    for key in ("anyOf", "oneOf"):
        forms = schema.get(key)
        # Nested alternatives are not listed, because a longer phrase would not help.
        if isinstance(forms, list) and forms:
            return either(
                "a value" if {"anyOf", "oneOf"} & set(inner) else expected(inner, root)
                for inner in (resolve(form, root) for form in forms)
            )
    return "any value"
