"""The output of `haft skills` about a skill: text for people, JSON for programs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.contracts import Listing
    from haft.service import Activations, Skill


def tools_by_readiness(skill: Skill, listings: Sequence[Listing]) -> tuple[list[str], dict[str, str]]:
    """The tool files of a skill that can be called; and for each of its other tool files, why it cannot be called. The
    tools of its MCP servers are among them, by name."""
    ready, others = [], {}
    for one in listings:
        if one.spec.meta.get("skillFolder") == skill.folder:
            is_server = one.spec.kind == "mcp"
            file = str(one.spec.name) if is_server else os.path.relpath(one.spec.origin, skill.folder)
            if one.enabled:
                ready.append(file)
            else:
                others[file] = f"{one.state}: {one.reason}"
    return sorted(ready), others


def activation_lines(ready: Sequence[str], others: Mapping[str, str], verb: str) -> Iterator[str]:
    """A line for each tool and MCP server of an active skill."""
    yield from (one_line(f"  {file} {verb}") for file in ready)
    yield from (one_line(f"  {file} is not available, it is {reason}") for file, reason in sorted(others.items()))
    if not ready and not others:
        yield "  it has no tools of its own"


def file_lines(files: Sequence[str], verb: str) -> Iterator[str]:
    """A line for each tool file, each with `verb` after its name."""
    for file in files:
        yield one_line(f"  {file} {verb}")
    if not files:
        yield "  it has no tools of its own"


def summary(skill: Skill) -> str:
    """The first line of a skill's description."""
    return skill.description.split("\n", 1)[0]


def listed_summary(skill: Skill, found: Sequence[Skill]) -> str:
    """The summary of a skill. If the skill hides another one, a note about that comes first."""
    other = hides(skill, found)
    return summary(skill) if other is None else f"({other}) {summary(skill)}"


def hides(skill: Skill, found: Sequence[Skill]) -> str | None:
    """A text that says that `skill`, which comes from the workspace, hides a built-in skill or a skill of the user with
    the same name. None if `skill` hides no such skill."""
    if skill.provenance != "workspace" or not skill.is_usable:
        return None
    for other in found:
        if other.shadowed_by == skill.folder and other.problem is None and other.provenance != "workspace":
            return (
                "hides the built-in one" if other.provenance == "builtin" else f"hides the user's one in {other.folder}"
            )
    return None


def state_of(skill: Skill, activations: Activations) -> str:
    """The state of a skill, in a word or two."""
    if skill.problem is not None:
        return "broken"
    if skill.shadowed_by is not None:
        return "shadowed"
    if skill.folder in activations.of(None):
        return "active"
    count = len(activations.threads(skill.folder))
    return f"in {count} thread{'s' * (count > 1)}" if count else "-"


def why_not(skill: Skill) -> str | None:
    """Why a skill cannot be used; None if it can."""
    if skill.problem is not None:
        return f"{skill.problem} ({skill.folder})"
    if skill.shadowed_by is not None:
        return f"{skill.folder} is shadowed by {skill.shadowed_by}, which has the same name"
    return None


def fact_of(skill: Skill, activations: Activations) -> dict[str, Any]:
    """A skill as JSON."""
    return {
        **skill.to_json(),
        "active": skill.is_usable and skill.folder in activations.of(None),
        "threads": activations.threads(skill.folder) if skill.is_usable else [],
    }


def change_of(
    name: str,
    thread: str | None,
    files: Sequence[str],
    others: Mapping[str, str] | None = None,
    servers: Sequence[str] = (),
    *,
    active: bool,
    changed: bool,
) -> dict[str, Any]:
    """The result of activating or deactivating a skill as JSON."""
    return {
        "name": name,
        "thread": thread,
        "active": active,
        "changed": changed,
        "tools": list(files),
        "notReady": dict(others or {}),
        "mcpServers": list(servers),
    }
