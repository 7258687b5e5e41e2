"""The parameters of a tool as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from haft.contracts import ToolSpec


def parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an input schema, by name."""
    properties = schema.get("properties")
    return dict(properties) if isinstance(properties, Mapping) else {}


def parameter_lines(schema: Mapping[str, Any]) -> Iterator[str]:
    """One line for each parameter, as Amp prints them: `- name (type): text`. The last line lists the required ones."""
    known = parameters(schema)
    for name, inner in known.items():
        about = inner.get("description", "") if isinstance(inner, Mapping) else ""
        text = " ".join(str(about).split())  # On one line, because a second line could look like another parameter.
        more = ", ".join(_limit_words(resolved(inner, schema)))
        text += f" ({more})" if more and text else more
        yield f"- {' '.join(name.split())} ({type_words(inner, schema)}): {text}".removesuffix(": ")
    required = [name for name in known if name in schema.get("required", ())]
    if required and len(required) < len(known):
        yield ""
        yield f"Required: {', '.join(required)}."


_LIMITS: Final = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
)


def _limit_words(schema: Mapping[str, Any]) -> Iterator[str]:
    """The limits and the default of a parameter, in words."""
    for key, words in _LIMITS:
        if isinstance(schema.get(key), int | float) and not isinstance(schema[key], bool):
            yield f"{words} {schema[key]}"
    if schema.get("default") not in (None, "", [], {}):
        yield f"default {' '.join(json.dumps(schema['default'], ensure_ascii=False).split())}"


def after_dashes(spec: ToolSpec) -> Iterator[str]:
    """Help lines for parameters whose name is also an option of haft: how to give such a parameter on the command line.
    Nothing if there are no such parameters."""
    from haft.surfaces.cli.words.parameters import is_option

    both = [f"--{name}" for name in parameters(spec.input_schema) if is_option(f"--{name}")]
    if both:
        yield ""
        yield f"haft has options with the same names: {', '.join(both)}."
        yield f"Put the tool's own parameters after `--`: `haft tools use {spec.name} -- {both[0]} VALUE`."


def type_words(schema: Any, root: Mapping[str, Any]) -> str:
    """The type of a parameter, in a word or two: `integer`, `array of string`, `"a" | "b"`."""
    schema = resolved(schema, root)
    options = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(options, list):
        return " | ".join(f'"{option}"' if isinstance(option, str) else str(option) for option in options)
    for form in ("anyOf", "oneOf"):
        if isinstance(schema.get(form), list):
            return " | ".join(dict.fromkeys(type_words(inner, root) for inner in schema[form]))
    types = schema.get("type", "any")
    if types == "array" and "items" in schema:
        return f"array of {type_words(schema['items'], root)}"
    return " | ".join(types) if isinstance(types, list) else str(types)


def types_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> set[str]:
    """The JSON types that a parameter takes; empty if it takes any type."""
    schema = resolved(schema, root)
    for form in ("anyOf", "oneOf"):
        if isinstance(schema.get(form), list) and depth < 8:  # An alternative may refer to itself.
            inner = [types_of(one, root, depth + 1) for one in schema[form]]
            return set().union(*inner) if all(inner) else set()
    types = schema.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` itself; or, if it is a reference, the schema in `root` that it refers to. If there is no such schema in
    `root`, an empty schema, which allows anything."""
    for _ in range(8):  # A reference may be circular.
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target.get(part) if isinstance(target, Mapping) else None
        schema = target
    return {}
