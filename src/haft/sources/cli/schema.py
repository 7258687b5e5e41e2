"""Describes the parameters of a command: as a JSON Schema, or as one type and one help text for each parameter."""

from __future__ import annotations

from typing import Any

from haft.sources.cli.spec import Command


def schema_of(command: Command) -> dict[str, Any]:
    """The input schema of a command."""
    properties = {one["name"]: _property(one) for one in command["parameters"]}
    required = [one["name"] for one in command["parameters"] if one["required"]]
    found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required} if required else found


def _property(one: dict[str, Any]) -> dict[str, Any]:
    choices = {"enum": one["choices"]} if one.get("choices") else {}
    # Not as the schema's `default`: haft would pass it, and a program may treat a given value differently from none.
    default = f"{one['default']} by default" if "default" in one and not one["required"] else ""
    text = f"{one['help'].rstrip('.')}; {default}" if one["help"] and default else one["help"] or default
    described = {"description": text} if text else {}
    if one.get("many"):
        number = {"minItems": one["number"], "maxItems": one["number"]} if "number" in one else {}
        return {"type": "array", "items": {"type": one["items"], **choices}, **number, **described}
    return {"type": one["type"], **choices, **described} if one["type"] != "object" else {"type": "object", **described}


def with_help(command: Command) -> Command:
    """The command with all facts about each parameter in its help text. A wrapper (an executable for one command)
    describes a parameter only by a type and a help text, so the facts have no other place."""
    return {**command, "parameters": [{**one, "help": _help(one)} for one in command["parameters"]]}


def _help(one: dict[str, Any]) -> str:
    parts = [one["help"].rstrip(".") + "." if one["help"] else ""]
    if one.get("choices"):
        parts.append(f"One of: {', '.join(map(str, one['choices']))}.")
    if "number" in one:
        parts.append(f"{one['number']} values.")
    default = f"Optional, {one['default']} by default." if "default" in one else "Optional."
    parts.append("Required." if one["required"] else default)
    return " ".join(filter(None, parts))
