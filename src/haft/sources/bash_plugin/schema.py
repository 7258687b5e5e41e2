"""Parses the output of `bash FILE schema`: one tool, its parameters, and how it takes its arguments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import BadConfig, is_tool_name
from haft.schema import shortened, validator_for, why_not_json, why_too_large

MODES: Final = ("flags", "positional", "json")


class BadSchema(Exception):
    """A schema that breaks the contract: the problem, and how to fix it."""

    def __init__(self, message: str, cure: str) -> None:
        self.message = message
        self.cure = cure
        super().__init__(f"{message}; {cure}")


def read_schema(output: bytes) -> dict[str, Any]:
    """The cache entry of a tool, from the output of `schema`. Raises `BadSchema` if the output breaks the contract."""
    schema = _object(output)
    identity, mode, tools = schema.get("id"), schema.get("args_mode"), schema.get("tools")
    if not isinstance(identity, str) or not identity:
        raise BadSchema("its schema has no `id`", 'add `"id": "…"`, the name of its tool')
    if not isinstance(schema.get("version"), str):
        raise BadSchema("its schema has no `version`", 'add `"version": "0.1.0"`')
    if mode not in MODES:
        raise BadSchema(f"its `args_mode` is {shortened(json.dumps(mode), 60)}", f"write one of {', '.join(MODES)}")
    if not isinstance(tools, list) or len(tools) != 1:
        count = len(tools) if isinstance(tools, list) else 0
        raise BadSchema(f"its schema has {count} tools", "one file is one tool: put each into a file of its own")
    function = tools[0].get("function") if isinstance(tools[0], dict) else None
    if not isinstance(function, dict) or tools[0].get("type", "function") != "function":
        raise BadSchema("its tool is not a function", 'write {"type": "function", "function": {"name": …}}')
    if function.get("name") != identity:
        function_name = shortened(json.dumps(function.get("name")), 80)
        raise BadSchema(
            f"its `id` is `{shortened(identity, 80)}` and its function is called {function_name}",
            "give both the same name",
        )
    if not is_tool_name(identity):
        raise BadSchema(
            f"`{shortened(identity, 80)}` cannot be the name of a tool", "use 1 to 64 letters, digits, `_` and `-`"
        )
    description = function.get("description", "")
    parameters = function.get("parameters", {"type": "object", "properties": {}})
    if not isinstance(description, str):
        raise BadSchema("its description is not a text", 'make it `"description": "…"`')
    known = {
        "name": identity,
        "version": schema["version"],
        "mode": mode,
        "description": description.strip(),
        "inputSchema": _checked(parameters),
        "positional": _positional(schema.get("positional"), mode, parameters),
        "configKeys": _config_keys(schema.get("config_keys", [])),
    }
    return {**known, "digest": hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()}


def _object(output: bytes) -> dict[str, Any]:
    cure = "print one JSON object to stdout and nothing else"
    try:
        schema = json.loads(output.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadSchema(f"its schema is not UTF-8 (byte {error.start})", "print UTF-8") from None
    except (ValueError, RecursionError) as error:
        reason = shortened(str(error), 200)
        what = f"`schema` does not print JSON: {reason}" if output.strip() else "`schema` prints nothing"
        raise BadSchema(what, cure) from None
    if not isinstance(schema, dict):
        raise BadSchema("`schema` does not print a JSON object", cure)
    if (why := why_not_json(schema)) is not None:
        raise BadSchema(f"its schema is not JSON: {why}", "print valid Unicode, and only finite numbers")
    if (why := why_too_large(schema)) is not None:
        raise BadSchema(f"its schema is too complex: {why}", "describe its parameters more simply")
    return schema


def _checked(parameters: Any) -> dict[str, Any]:
    cure = "fix its `parameters`"
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise BadSchema("its `parameters` are not a JSON Schema of the type `object`", cure)
    if not isinstance(parameters.get("properties", {}), Mapping):
        raise BadSchema("the `properties` of its parameters are not an object", cure)
    if (why := why_too_large(parameters)) is not None:
        raise BadSchema(f"its `parameters` are too complex: {why}", cure)
    try:
        validator_for(parameters)
    except BadConfig as error:
        raise BadSchema(error.message, cure) from None
    return parameters


def _positional(places: Any, mode: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    if mode != "positional":
        return []
    if not isinstance(places, list) or not all(
        isinstance(place, dict) and isinstance(place.get("name"), str) for place in places
    ):
        raise BadSchema(
            "its arguments are positional, and `positional` is not a list of names", 'write [{"name": "path"}, …]'
        )
    names = [place["name"] for place in places]
    if len(set(names)) < len(names):
        raise BadSchema("`positional` names a parameter twice", "name each once")
    missing = [name for name in parameters.get("properties", {}) if name not in names]
    if missing:
        raise BadSchema(f"`positional` has no place for `{shortened(missing[0], 80)}`", "name every parameter in it")
    return places


def _config_keys(keys: Any) -> list[str]:
    if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
        raise BadSchema("its `config_keys` are not a list of names", 'write `"config_keys": ["my_key"]`')
    return keys
