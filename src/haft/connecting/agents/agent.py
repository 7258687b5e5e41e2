"""What haft knows about an agent, as plain data. One module beside this one describes each agent.

Everything in haft that depends on an agent reads it here: `haft connect`, the hooks, `haft run`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final, Literal

from haft.values import dataclass, field

Scope = Literal["user", "project"]
Rewriting = Literal["with-allow", "plain", "off"]
"""How an agent runs a shell call that a hook has rewritten: only if the hook's answer also allows the call; also
without a decision; or not at all, as far as a probe has shown."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder of an agent: below the home directory, or where a variable of the environment says."""

    path: str
    """Absolute, or beginning with `~/`; in project scope relative to the workspace."""
    variable: str | None = None
    """A variable that replaces the first `replaced` of `path`."""
    replaced: str = ""
    mac: str | None = None
    """The path on macOS, if it is another one."""
    others: tuple[str, ...] = ()
    """Other names of the same file in its folder, or other paths. The first that exists counts, if `path` does not
    exist."""

    def resolve(self, env: Mapping[str, str], workspace: str | None = None) -> str:
        """The absolute path."""
        first = self._absolute(
            self.mac if self.mac is not None and sys.platform == "darwin" else self.path, env, workspace
        )
        if self.others and not os.path.lexists(first):
            others = (self._other(each, first, env, workspace) for each in self.others)
            return next((each for each in others if os.path.lexists(each)), first)
        return first

    def paths(self, env: Mapping[str, str]) -> list[str]:
        """All paths at which the agent looks for the file."""
        first = self._absolute(self.mac if self.mac is not None and sys.platform == "darwin" else self.path, env, None)
        return [first, *(self._other(each, first, env, None) for each in self.others)]

    def _other(self, other: str, first: str, env: Mapping[str, str], workspace: str | None) -> str:
        beside = os.path.join(os.path.dirname(first), other)
        return beside if "/" not in other else self._absolute(other, env, workspace)

    def _absolute(self, path: str, env: Mapping[str, str], workspace: str | None) -> str:
        if self.variable is not None and env.get(self.variable) and path.startswith(self.replaced):
            path = env[self.variable] + path.removeprefix(self.replaced)
        if path.startswith("~/"):
            return os.path.join(env.get("HOME") or os.path.expanduser("~"), path[2:])
        return os.path.normpath(os.path.join(workspace or "/", path))


@dataclass(frozen=True, slots=True)
class Blocking:
    """A setting with which an agent denies a call if the hook itself fails."""

    setting: str
    since: str
    """The first version of the agent that knows the setting."""
    passes_before: tuple[str, ...]
    """The failures after which an older version lets the call pass, in words for people."""


@dataclass(frozen=True, slots=True)
class HookFacts:
    """How an agent calls a program before and after its own tools."""

    user: Place
    project: Place | None
    before: tuple[str, ...]
    """The events before a tool runs, as the agent names them."""
    after: tuple[str, ...]
    limit_seconds: float
    """The time limit that haft asks for in the configuration. The hook must have answered before it."""
    rewriting: Rewriting
    shell_tools: tuple[str, ...]
    """The agent's names of its own shell tools."""
    edit_tools: tuple[str, ...] = ()
    blocks_on_failure: bool = False
    """Whether the configuration that haft writes makes the agent deny a call if the hook dies or hangs."""
    passes: tuple[str, ...] = ()
    """The failures of a hook after which this agent lets the call pass, in words for people."""
    own_rules: tuple[str, ...] = ()
    """What is different for the agent's own rules and their answers, in words for people."""
    blocking: Blocking | None = None
    """The setting that `blocks_on_failure` needs, if older versions of the agent do not know it."""
    unseen: tuple[str, ...] = ()
    """The agent's tools that never reach a hook, in words for people."""


@dataclass(frozen=True, slots=True)
class Replacing:
    """How an agent's own tools are switched off."""

    tools: tuple[str, ...]
    """The tools that `haft connect --replace` switches off, as the agent names them."""
    user: Place
    """The file in which they are switched off."""
    project: Place | None
    kept: tuple[str, ...] = ()
    """For an agent that takes a list of the tools that stay instead: all its other tools."""
    left: tuple[str, ...] = ()
    """The tools that stay although haft has a tool for the same task, in words for people."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent."""

    id: str
    """The name in haft's commands, such as `claude-code`."""
    title: str
    executables: tuple[str, ...]
    """The names of its programs on PATH. The first is the one that people start."""
    client_names: tuple[str, ...]
    """How it may call itself as an MCP client (`clientInfo.name`); the beginning of the name is enough."""
    servers_key: str
    """The key of the object with the MCP servers, in the two files below."""
    user_servers: Place
    """The file that lists the person's MCP servers."""
    project_servers: Place | None
    """The file that lists the MCP servers of a project; None if the agent has none."""
    folders: tuple[Place, ...]
    """The files and folders with its configuration, logins and history."""
    model_hosts: tuple[str, ...]
    """The hosts of its model and login, by default. A configured gateway is not among them."""
    key_variables: tuple[str, ...] = ()
    """Variables of the environment with which people give the agent a key or another address of the model."""
    carried: tuple[str, ...] = ()
    """Glob patterns, relative to the home directory or to the folder that a variable names: files that the agent
    writes while it works and that decide nothing later, such as logins and history."""
    not_carried: tuple[str, ...] = ()
    """Glob patterns of files among `carried` that decide something later, such as notes that the agent always reads."""
    dropped: tuple[str, ...] = ()
    """Glob patterns of files that the agent makes again when it needs them, and that can run: programs that it
    downloaded, scripts that its shell loads, and git directories of its own."""
    deciding_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """JSON files that hold both: for each, the top-level keys that decide what runs later. The rest is like
    `carried`."""
    sandbox_off: tuple[str, ...] = ()
    """The words that switch its own sandbox off, to be put after the program; empty if it has none that is on."""
    sandbox_off_variables: Mapping[str, str] = field(default_factory=dict)
    approving: Place | None = None
    """The file of the person in which haft's tools are approved, so that only haft asks; None if the entry of the
    server says it, or if the agent does not ask."""
    hooks: HookFacts | None = None
    replacing: Replacing | None = None
    package: str | None = None
    """The agent's package in npm's registry. A package for one platform has this name, `-` and the platform."""
    version_folders: tuple[str, ...] = ()
    """Where an installer puts each version into a file or folder of its own: the names of the folders with them."""
    has_windows: bool = False
    """Whether it is an editor with windows of its own, which `haft run` cannot start in a terminal."""
    version: str | None = None
    """The version with which tests showed all this; None if it was written from the agent's documentation and not
    run."""

    def to_json(self) -> dict[str, Any]:
        """The facts that `haft connect --json` prints."""
        return {"id": self.id, "title": self.title, "executables": list(self.executables), "version": self.version}


DOCUMENTED: Final = None
"""The version of agents that could not be run."""
