"""Which tools a type of sub-agent gets, and which of the tools that it names it does not get.

A type names haft's tools, or the tools of Claude Code that haft has under another name. What has no counterpart is left
out, never replaced by something that can do more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from haft.agents.agent_type import AgentType
from haft.agents.builtin_types import READING_TOOLS
from haft.contracts import BadConfig, Listing, near_miss
from haft.lazy import regex
from haft.values import dataclass

TASK: Final = "task"
"""The tool that starts sub-agents. Only its own name stands for it, no pattern."""

FROM_CLAUDE_CODE: Final = {
    "Agent": TASK,
    "Bash": "shell",
    "Edit": "edit_file",
    "Glob": "find_files",
    "Grep": "search",
    "LS": "list_directory",
    "MultiEdit": "edit_file",
    "Read": "read_file",
    "Skill": "skill",
    "Task": TASK,
    "Write": "write_file",
}
"""The tools of Claude Code that haft has, each with haft's name."""

WITHOUT_COUNTERPART: Final = frozenset(
    {
        "AskUserQuestion",
        "BashOutput",
        "ExitPlanMode",
        "KillBash",
        "KillShell",
        "NotebookEdit",
        "NotebookRead",
        "TodoWrite",
        "WebFetch",
        "WebSearch",
    }
)
"""The tools of Claude Code that haft does not have."""

_PART: Final = regex(r"(?P<tool>[A-Za-z][\w-]*)\((?P<calls>.*)\)")
_SERVER: Final = regex(r"mcp__(?:(?!__)[\w-])+")


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """The tools that a type gets in a workspace."""

    names: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    """Each tool that the type names but does not get, and why."""

    def require(self, agent: AgentType) -> None:
        """Raise `BadConfig` if no tool is left."""
        if not self.names:
            why = "; ".join(f"`{name}`: {reason}" for name, reason in self.left_out)
            raise BadConfig(
                f"the sub-agent `{agent.name}` has no tools" + (f": {why}" if why else ""),
                hint=f"`haft agent show {agent.name}` lists the tools that it names",
            )


def haft_name(word: str) -> str:
    """The name or pattern of haft for a tool as a definition writes it. What haft does not know stays as it is."""
    if _SERVER.fullmatch(word):
        return f"{word}__*"
    return FROM_CLAUDE_CODE.get(word, word)


def denied_name(word: str) -> str:
    """The same for a tool that a type never gets: `Bash(rm:*)` denies the whole tool."""
    part = _PART.fullmatch(word)
    return haft_name(word if part is None else part["tool"])


def unknown_reason(word: str, known: Iterable[str] = ()) -> str:
    """Why a tool that a definition names does not exist."""
    part = _PART.fullmatch(word)
    if part is not None:
        tool = haft_name(part["tool"])
        return f"a type cannot allow only some calls of a tool; name `{tool}`, and write a rule for its calls"
    if word in WITHOUT_COUNTERPART:
        return "haft has no such tool"
    near = near_miss(word, known)
    return "there is no such tool" + (f"; did you mean `{near}`?" if near else "")


def allowed_tools(agent: AgentType, listings: Sequence[Listing]) -> AllowedTools:
    """The tools of a type, of all tools of a workspace."""
    ready = {str(one.spec.name) for one in listings if one.enabled}
    others = {str(one.spec.name): one.why_not for one in listings if one.spec.name not in ready}
    names: dict[str, None] = {}
    left_out: dict[str, str] = {}
    for pattern in agent.tools or READING_TOOLS:
        found = [name for name in (*ready, *others) if _matches(pattern, name)]
        denied = {name for name in found if any(_matches(one, name) for one in agent.disallowed)}
        names.update(dict.fromkeys(sorted(name for name in found if name in ready and name not in denied)))
        if not found:
            left_out[pattern] = unknown_reason(pattern, ready)
        elif "*" not in pattern and pattern not in names:
            left_out[pattern] = "the type disallows it" if pattern in denied else others[pattern]
        elif denied == set(found):
            left_out[pattern] = "the type disallows it"
    return AllowedTools(tuple(names), tuple(left_out.items()))


def _matches(pattern: str, name: str) -> bool:
    """Whether a name or a pattern, in which `*` stands for any text, means the tool `name`."""
    if "*" not in pattern or name == TASK:
        return pattern == name
    first, *middle, last = pattern.split("*")
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for literal in middle:
        at = name.find(literal, at, end)
        if at < 0:
            return False
        at += len(literal)
    return True
