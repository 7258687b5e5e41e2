"""Rules that speak of a tool or an argument that is not there: whoever wrote them believes that they hold.

It is no error: a tool may come later, or live in another workspace. A pattern with a `*` means whatever fits one day,
and is not looked at, but for the arguments of the tools that fit it now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from haft.contracts import ToolSpec, is_tool_name, near_miss
from haft.policy.rules.names import name_fits, near_argument
from haft.policy.rules.rule import Rule


def what_is_missing(rule: Rule, specs: Sequence[ToolSpec]) -> str | None:
    """What a rule speaks of that none of these tools is or takes, with the near miss; None where all of it is there."""
    meant = [spec for spec in specs if name_fits(rule.tool, spec.name, spec.kind)]
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


def is_of_elsewhere(rule: Rule, specs: Sequence[ToolSpec]) -> bool:
    """Whether a rule of the user's own is for a tool that none of these is, nor is like: most likely another
    workspace's, since that file counts in all of them."""
    if rule.origin != "user" or any(name_fits(rule.tool, spec.name, spec.kind) for spec in specs):
        return False
    return _near(rule.tool.rpartition(":")[2], [spec.name for spec in specs]) is None


def _near(name: str, known: Sequence[str]) -> str | None:
    """The near miss. Of tools of one family, such as `tb__`, what tells them apart is compared."""
    family, mark, _own = name.rpartition("__")
    alike = {one.removeprefix(family + mark): one for one in known if mark and one.startswith(family + mark)}
    near = near_miss(name.removeprefix(family + mark), alike)
    return alike[near] if near else near_miss(name, [one for one in known if one not in alike.values()])


def _properties(spec: ToolSpec) -> Mapping[str, object] | None:
    """The arguments that a tool describes; None where it describes none, and may take any."""
    properties = spec.input_schema.get("properties")
    is_closed = spec.input_schema.get("additionalProperties") is False
    return properties if isinstance(properties, Mapping) and (properties or is_closed) else None


def _did_you_mean(near: str | None) -> str:
    return f": did you mean `{near}`?" if near else ""
