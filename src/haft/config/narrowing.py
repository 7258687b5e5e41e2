"""What of a workspace's configuration counts before anyone has trusted it, and what is set aside.

A cloned repository brings its own file. What narrows counts at once: lower limits, a stricter sandbox, tools that are
disabled, rules that reject or ask. So does what adds confined tools. The rest waits for `haft trust`.
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
"""Characters of a value in a sentence."""
_ELSEWHERE: Final = regex(r"://|@|\bgit[+:]|\.git\b")
FREE_TABLES: Final = frozenset({"cli", "config", "providers", "templates.instances"})
"""Settings with values of any kind, keys and passwords among them."""
NOTHING: Final = object()
"""Instead of a value that does not count at all."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A value that was set aside, and why."""

    name: str
    value: Any
    source: str
    why: str
    waits: bool = True
    """Whether it counts once its file is trusted."""

    @property
    def shown(self) -> Any:
        """The value as it may be printed: of tables that may hold anything, names alone."""
        return _names_alone(self.value) if self.name in FREE_TABLES else self.value

    def sentence(self) -> str:
        until = "does not count until you trust this file (`haft trust`): before that," if self.waits else "is ignored:"
        return f"{self.source}: {self.assignment(MOST_SHOWN)} {until} {self.why}"

    def assignment(self, most: int | None = None) -> str:
        """The name and the value, of which `most` characters."""
        value = json.dumps(self.shown, default=str, ensure_ascii=False)
        value = value if most is None or len(value) <= most else f"{value[:most]}…"
        return f"`{self.name} = {value}`"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.shown, "source": self.source, "why": self.why}


def narrowed(setting: Setting, value: Any, values: Mapping[str, Any], source: str) -> tuple[Any, list[Ignored]]:
    """What of a checked value counts: it, a part of it, or `NOTHING`; and what is set aside."""
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


def _names_alone(value: Any) -> Any:
    """A table, or a list of them, with `…` for every value; of a template's tool also what it is called and made of."""
    if isinstance(value, list):
        return [_names_alone(one) for one in value]
    if isinstance(value, dict):
        told = ("name", "template") if "template" in value else ()
        return {name: one if name in told else _names_alone(one) for name, one in value.items()}
    return "…"


def _is_inside(path: str) -> bool:
    """Whether a path of a workspace's file stays in it, by its words."""
    return not path.startswith(("/", "~")) and ".." not in path.split("/")


def _is_confined(plugin: Any) -> bool:
    """Whether it is a bash plugin of this machine, which runs in the sandbox."""
    if isinstance(plugin, dict):
        told = plugin.get("bash_tool")
        return set(plugin) == {"bash_tool"} and isinstance(told, dict) and "git" not in told
    return isinstance(plugin, str) and plugin.startswith("bash:") and not _ELSEWHERE.search(plugin)


def narrowed_rules(rules: Sequence[dict[str, Any]], sources: Sequence[str]) -> tuple[list[int], list[Ignored]]:
    """Which rules of a workspace count, by number; and what is set aside. An `ask` counts without its grant."""
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
