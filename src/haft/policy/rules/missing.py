"""Finds rules for a tool or an argument that does not exist. The author of such a rule probably believes that it
applies. Such a rule is no error, because the tool may be added later, or belong to another workspace. If the tool's
name contains `*`, only the rule's arguments are checked, against the tools that match now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from haft.contracts import ToolSpec, is_tool_name, near_miss
from haft.policy.rules.names import name_matches, near_argument
from haft.policy.rules.rule import Rule


def missing_target(rule: Rule, specs: Sequence[ToolSpec]) -> str | None:
    """A sentence that names the tool or argument that does not exist, with a suggestion; None if the tool and all
    arguments of the rule exist."""
    meant = [spec for spec in specs if name_matches(rule.tool, spec.name, spec.kind)]
    kind, colon, name = rule.tool.rpartition(":")
    if not meant:
        if not is_tool_name(name):
            return None
        near = _near(name, [spec.name for spec in specs if not kind or spec.kind == kind])
        return f"there is no tool called `{rule.tool}` here" + _did_you_mean(near and f"{kind}{colon}{near}")
    known = [_properties(spec) for spec in meant]
    if None in known:
        return None
    taken = sorted({argument for each in known for argument in each or ()})
    for argument in rule.matches if rule.exactly is None else rule.exactly:
        if argument not in taken:
            return f"`{rule.tool}` has no argument `{argument}`" + _did_you_mean(near_argument(argument, taken))
    return None


def is_for_other_workspace(rule: Rule, specs: Sequence[ToolSpec]) -> bool:
    """Whether a rule in the user's file names a tool that neither exists in this workspace nor resembles one that does.
    Such a rule is probably for another workspace, because the user's file applies to all workspaces."""
    if rule.origin != "user" or any(name_matches(rule.tool, spec.name, spec.kind) for spec in specs):
        return False
    return _near(rule.tool.rpartition(":")[2], [spec.name for spec in specs]) is None


def _near(name: str, known: Sequence[str]) -> str | None:
    """The most similar name, or None. For names with a common prefix such as `tb__`, only the rest of the name is
    compared."""
    family, mark, _own = name.rpartition("__")
    alike = {one.removeprefix(family + mark): one for one in known if mark and one.startswith(family + mark)}
    near = near_miss(name.removeprefix(family + mark), alike)
    return alike[near] if near else near_miss(name, [one for one in known if one not in alike.values()])


def _properties(spec: ToolSpec) -> Mapping[str, object] | None:
    """The arguments that a tool's schema describes; None if it describes none, so that the tool may accept any."""
    properties = spec.input_schema.get("properties")
    is_closed = spec.input_schema.get("additionalProperties") is False
    return properties if isinstance(properties, Mapping) and (properties or is_closed) else None


def _did_you_mean(near: str | None) -> str:
    return f": did you mean `{near}`?" if near else ""
