"""Makes an `AgentType` of the keys of a definition: of a Markdown file, or of a table of the configuration.

A key of haft with a wrong value makes the definition unusable, because a guess could give the sub-agent too much. A key
that haft does not use is ignored, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, get_args

from haft.agents.agent_type import BUDGET_KEYS, AgentType, TaskIsolation
from haft.agents.builtin_types import BUILTIN_TYPES
from haft.agents.tool_names import denied_name, haft_name
from haft.contracts import BadConfig, Provenance, near_miss
from haft.lazy import regex
from haft.schema import Validator, why_not_json, why_too_large

LONGEST_DESCRIPTION: Final = 4_000
OWN_KEYS: Final = (
    "name",
    "description",
    "tools",
    "disallowedTools",
    "model",
    "maxTurns",
    "limits",
    "output",
    "isolation",
    "temperature",
    "output_tokens",
    "readonly",
    "restricted",
)
OTHER_KEYS: Final = frozenset(
    {
        "background",
        "color",
        "effort",
        "hooks",
        "initialPrompt",
        "mcpServers",
        "memory",
        "permissionMode",
        "skills",
    }
)
"""Keys of Claude Code that have no effect in haft: none of them may give a sub-agent more."""
_SPELLINGS: Final = {"disallowed": "disallowedTools", "disallowed_tools": "disallowedTools", "max_turns": "maxTurns"}
_NAME: Final = regex(r"[a-z0-9-]{1,64}")
_SEPARATOR: Final = regex(r",(?![^(]*\))")
_COUNTS: Final = frozenset(BUDGET_KEYS) - {"seconds", "cost"}


class Unusable(ValueError):
    """A definition that cannot be used. The text is a sentence about the definition."""


def read_type(written: Mapping[str, Any], prompt: str, *, provenance: Provenance, origin: str) -> AgentType:
    """The type that these keys define. Raises `Unusable` if a value is wrong."""
    keys = {_SPELLINGS.get(str(key), str(key)): value for key, value in written.items()}
    unused = ", ".join(f"`{key}`" for key in keys if key in OTHER_KEYS)
    notes = [*([f"no effect in haft: {unused}"] if unused else ()), *unknown_key_notes(keys).values()]
    name = _name(keys.get("name"))
    description = _description(keys.get("description"), notes)
    tools = tuple(dict.fromkeys(map(haft_name, _tools(keys, "tools"))))
    if "tools" in keys and not tools:
        raise Unusable("its `tools` name no tool; leave out the key for the tools of `explore`")
    return AgentType(
        name,
        description,
        prompt.strip(),
        tools,
        _disallowed(keys, notes),
        _text(keys, "model"),
        _budget(keys),
        _number(keys, "temperature", 0, 2),
        _count(keys, "output_tokens"),
        _schema(keys.get("output")),
        _isolation(keys.get("isolation"), notes),
        _truth(keys, "readonly", otherwise=False),
        _truth(keys, "restricted", otherwise=True),
        provenance,
        origin,
        tuple(notes),
    )


def is_type_name(name: str) -> bool:
    """Whether a text can be the name of a type."""
    return _NAME.fullmatch(name) is not None


def unknown_key_notes(keys: Iterable[str]) -> dict[str, str]:
    """The keys that neither haft nor Claude Code knows, and a note about each."""
    found = {}
    for key in keys:
        if key not in OWN_KEYS and key not in OTHER_KEYS and key not in _SPELLINGS:
            near = near_miss(key, OWN_KEYS)
            found[key] = f"there is no key `{_short(key)}`" + (f"; did you mean `{near}`?" if near else "")
    return found


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unusable("it has no `name`; add `name: …`")
    name = value.strip()
    if not is_type_name(name):
        raise Unusable(f"`{_short(name)}` is not a valid name; use at most 64 characters of a-z, 0-9 and `-`")
    if any(name == one.name for one in BUILTIN_TYPES):
        raise Unusable(f"`{name}` is a built-in type, which cannot be replaced; use another name")
    return name


def _description(value: Any, notes: list[str]) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unusable("it has no `description`; say what it is for, and when to use it")
    if len(value.strip()) > LONGEST_DESCRIPTION:
        notes.append(f"its description has {len(value.strip()):_} characters: only {LONGEST_DESCRIPTION:_} count")
    return value.strip()[:LONGEST_DESCRIPTION]


def _text(keys: Mapping[str, Any], key: str) -> str:
    value = keys.get(key, "")
    if not isinstance(value, str) or "\0" in value or "\n" in value:
        raise Unusable(f"its `{key}` is not a text on one line")
    return value.strip()


def _tools(keys: Mapping[str, Any], key: str) -> list[str]:
    value = keys.get(key, [])
    if isinstance(value, str):
        value = _SEPARATOR.split(value)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise Unusable(f"its `{key}` must be names of tools: a list, or a text with commas")
    return [one.strip() for one in value if one.strip()]


def _disallowed(keys: Mapping[str, Any], notes: list[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for word in _tools(keys, "disallowedTools"):
        name = denied_name(word)
        if "(" in word:
            notes.append(f"`{_short(word)}` in `disallowedTools` disallows all calls of `{name}`")
        found[name] = None
    return tuple(found)


def _budget(keys: Mapping[str, Any]) -> dict[str, float]:
    limits = keys.get("limits", {})
    if not isinstance(limits, Mapping):
        raise Unusable(f"its `limits` must be a table with some of {', '.join(BUDGET_KEYS)}")
    found: dict[str, float] = {}
    for key in limits:
        if key not in BUDGET_KEYS:
            near = near_miss(str(key), BUDGET_KEYS)
            hint = f"did you mean `{near}`?" if near else f"the limits are {', '.join(BUDGET_KEYS)}"
            raise Unusable(f"there is no limit `{_short(str(key))}`; {hint}")
        number = _count(limits, key) if key in _COUNTS else _number(limits, key, 0, 1e9)
        if not number:
            raise Unusable(f"its limit `{key}` must be more than 0")
        found[key] = number
    turns = _count(keys, "maxTurns")
    if turns is not None:
        found["cycles"] = min(turns, found.get("cycles", turns))
    return found


def _number(keys: Mapping[str, Any], key: str, least: float, most: float) -> float | None:
    value = keys.get(key)
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise Unusable(f"its `{key}` must be a number from {least:g} to {most:g}")
    return float(value)


def _count(keys: Mapping[str, Any], key: str) -> int | None:
    value = keys.get(key)
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch("[0-9]{1,12}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10**12:
        raise Unusable(f"its `{key}` must be a whole number, at least 1")
    return value


def _truth(keys: Mapping[str, Any], key: str, *, otherwise: bool) -> bool:
    value = keys.get(key, otherwise)
    if not isinstance(value, bool):
        raise Unusable(f"its `{key}` must be true or false")
    return value


def _isolation(value: Any, notes: list[str]) -> TaskIsolation | None:
    if value is None:
        return None
    if value == "worktree":
        notes.append("its isolation `worktree` is read as `layer`")
        return "layer"
    if value in get_args(TaskIsolation):
        return cast("TaskIsolation", value)
    raise Unusable("its `isolation` must be `workspace` or `layer`")


def _schema(value: Any) -> Mapping[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or (why_not_json(value) is not None):
        raise Unusable("its `output` must be a JSON Schema, written as a table")
    problem = why_too_large(value)
    try:
        Validator(value)
    except BadConfig as error:
        problem = problem or error.message
    if problem is not None:
        raise Unusable(f"its `output` cannot be used: {problem}")
    return value


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"
