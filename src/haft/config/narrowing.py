"""Decides which settings of an untrusted workspace count, and which are ignored.

A cloned repository contains its own configuration file. Settings that restrict count at once: lower limits, a stricter
sandbox, disabled tools, rules that reject or ask. Settings that add confined tools count at once, too. All other
settings wait for `haft trust`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.config.placeholders import has_placeholder
from haft.config.settings import FROM_ENVIRONMENT, GRANT_ASIDE, RULE_ASIDE, WHY_NOT, Setting
from haft.lazy import regex
from haft.values import dataclass

MOST_SHOWN: Final = 300
"""The maximum number of characters of an ignored value that a message shows."""
_ELSEWHERE: Final = regex(r"://|@|\bgit[+:]|\.git\b")
FREE_TABLES: Final = frozenset({"cli", "config", "providers", "subagents.types", "templates.instances"})
"""Settings whose values may be anything, including keys and passwords."""
NOTHING: Final = object()
"""Stands for a value that is ignored completely."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A value of the configuration that is ignored, and why."""

    name: str
    value: Any
    source: str
    why: str
    waits: bool = True
    """Whether the value will count once its file is trusted."""

    @property
    def shown(self) -> Any:
        """The value in a form that may be printed: for tables that may contain anything, only the names."""
        return _names_only(self.value) if self.name in FREE_TABLES else self.value

    def sentence(self) -> str:
        single = ", or each server (`haft providers trust NAME`)" if self.name == "providers" else ""
        until = f"is ignored until you trust this file (`haft trust`){single}:" if self.waits else "is ignored:"
        return f"{self.source}: {self.assignment(MOST_SHOWN)} {until} {self.why}"

    def assignment(self, most: int | None = None) -> str:
        """The name and the value, shortened to `most` characters."""
        value = json.dumps(self.shown, default=str, ensure_ascii=False)
        value = value if most is None or len(value) <= most else f"{value[:most]}…"
        return f"`{self.name} = {value}`"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.shown, "source": self.source, "why": self.why}


def narrowed(setting: Setting, value: Any, values: Mapping[str, Any], source: str) -> tuple[Any, list[Ignored]]:
    """The part of a checked value that counts (`NOTHING` if no part counts), and the ignored parts."""
    name = setting.name
    if has_placeholder(value) and name != "templates.instances":
        return NOTHING, [Ignored(name, value, source, FROM_ENVIRONMENT)]
    if name == "tools.timeout":
        before, cap = values[name], values["limits.max_seconds"]
        kept = {tool: number for tool, number in value.items() if number <= before.get(tool, cap)}
        aside = [tool for tool in value if tool not in kept]
        return kept, [Ignored(f"{name}.{tool}", value[tool], source, WHY_NOT["lower"]) for tool in aside]
    if name in ("toolbox.paths", "templates.paths"):
        inside = [path for path in value if _is_inside(path)]
        rest = [path for path in value if path not in inside]
        return inside, [Ignored(name, rest, source, WHY_NOT["inside"])] if rest else []
    if name == "templates.instances":
        inside = [one for one in value if _is_inside(one["template"]) and not has_placeholder(one)]
        aside = [one for one in value if one not in inside]
        why = FROM_ENVIRONMENT if any(map(has_placeholder, aside)) else WHY_NOT["inside"]
        return inside, [Ignored(name, aside, source, why)] if aside else []
    if name == "plugins":
        confined = [one for one in value if _is_confined(one)]
        rest = [one for one in value if not _is_confined(one)]
        return confined, [Ignored(name, rest, source, WHY_NOT["confined"])] if rest else []
    if setting.narrowing == "own-tools":
        others = (
            {key: mark for key, mark in value.items() if "/" not in key or not _is_inside(key)}
            if isinstance(value, dict)
            else value
        )
        aside = [Ignored(name, others, source, WHY_NOT["own-tools"])] if others and value != values[name] else []
        return value, aside
    if setting.widens(value, values[name]):
        return NOTHING, [Ignored(name, value, source, WHY_NOT[setting.narrowing])]
    return value, []


def _names_only(value: Any) -> Any:
    """A table, or a list of tables, in which `…` replaces every value; only the name and template of a template's
    instance stay."""
    if isinstance(value, list):
        return [_names_only(one) for one in value]
    if isinstance(value, dict):
        visible = ("name", "template") if "template" in value else ()
        return {name: one if name in visible else _names_only(one) for name, one in value.items()}
    return "…"


def _is_inside(path: str) -> bool:
    """Whether a path in a workspace's configuration file stays inside the workspace. Only the text of the path is
    examined."""
    return not path.startswith(("/", "~")) and ".." not in path.split("/")


def _is_confined(plugin: Any) -> bool:
    """Whether a plugin is a bash plugin from this machine, not from a git repository: such a plugin runs in the
    sandbox."""
    if isinstance(plugin, dict):
        tool = plugin.get("bash_tool")
        return set(plugin) == {"bash_tool"} and isinstance(tool, dict) and "git" not in tool
    return isinstance(plugin, str) and plugin.startswith("bash:") and not _ELSEWHERE.search(plugin)


def narrowed_rules(rules: Sequence[dict[str, Any]], sources: Sequence[str]) -> tuple[list[int], list[Ignored]]:
    """Which rules of an untrusted workspace count: the indices of these rules, and the ignored rules. An `ask` rule
    counts, but the grant in it is ignored."""
    kept, aside = [], []
    for number, (rule, source) in enumerate(zip(rules, sources, strict=True)):
        if has_placeholder(rule):
            aside.append(Ignored("permissions", rule, source, FROM_ENVIRONMENT))
        elif rule.get("action") not in ("reject", "ask"):
            aside.append(Ignored("permissions", rule, source, RULE_ASIDE))
        else:
            kept.append(number)
            if "grant" in rule:
                aside.append(Ignored("permissions.grant", rule["grant"], source, GRANT_ASIDE))
    return kept, aside
