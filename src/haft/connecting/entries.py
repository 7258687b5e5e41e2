"""The entries that haft writes into an agent's configuration: its MCP server, its hooks, the agent's own tools that are
switched off. Each agent has its own form for them.

An entry is a value at a path of keys in one file, one item of a list there, or a whole file.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from haft.connecting.agents.agent import Agent, Scope
from haft.connecting.codex_trust import trust_entries
from haft.connecting.launcher import POLICY, is_plain_path, policy_text
from haft.connecting.plugins import plugin_text
from haft.contracts import BadUsage
from haft.lazy import regex
from haft.values import dataclass, field

SERVER: Final = "haft"
"""The name of haft's MCP server in every agent."""
TOKEN_VARIABLE: Final = "HAFT_TOKEN"  # noqa: S105  the name of a variable
Part = Literal["server", "approval", "hooks", "rules", "replace", "trust"]
Kind = Literal["value", "item", "file"]
_STDIO_TYPES: Final = {"claude-code": "stdio", "vscode": "stdio"}
_HTTP_TYPES: Final = {"claude-code": "http", "gemini": "http", "vscode": "http", "opencode": "remote"}
_URL_KEYS: Final = {"antigravity": "serverUrl"}
_WORKSPACE_WORDS: Final = {"cursor": "${workspaceFolder}", "vscode": "${workspaceFolder}"}
"""How editors, which start servers in any directory, name the folder that is open."""
_TOKEN_WORDS: Final = {
    "claude-code": f"${{{TOKEN_VARIABLE}}}",
    "opencode": f"{{env:{TOKEN_VARIABLE}}}",
    "gemini": f"${{{TOKEN_VARIABLE}}}",
    "cursor": f"${{env:{TOKEN_VARIABLE}}}",
    "vscode": f"${{env:{TOKEN_VARIABLE}}}",
    "amp": f"${{{TOKEN_VARIABLE}}}",
}
"""How each agent names a variable of the environment in its configuration."""
_HOOK_LINE: Final = regex(r"(?:^|[/ '\"])(?:surfaces/hook/start\.py['\"]?|haft['\"]? hook) ([a-z-]+)$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that haft writes."""

    file: str
    part: Part
    kind: Kind
    keys: tuple[str, ...]
    """The path of the value, or of the list with the item. Empty for a whole file."""
    value: Any

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "part": self.part,
            "kind": self.kind,
            "keys": list(self.keys),
            "value": self.value,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Entry:
        return cls(value["file"], value["part"], value["kind"], tuple(value["keys"]), value["value"])


@dataclass(frozen=True, slots=True)
class Launch:
    """The words that start haft, for the person's own configuration or for a shared one."""

    server: tuple[str, ...]
    """The command of the MCP server."""
    hook: tuple[str, ...]
    """The command of the hook, without the name of the agent."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that both need, such as `HAFT_HOME` if it is set."""
    url: str | None = None
    """The address of a running server; then it is used instead of the command."""
    token: str | None = None
    """The token for `url`; None in a shared file, which names a variable instead."""
    shell: str | None = None
    """The program with which rewritten lines begin; None for shared files, which contain no path."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the person wants to connect."""

    scope: Scope = "user"
    workspace: str | None = None
    """The root of the project, for the scope `project`."""
    hooks: bool = False
    replace: bool = False


def entries_for(agent: Agent, choice: Choice, launch: Launch, env: Mapping[str, str]) -> list[Entry]:
    """Everything that haft writes for this choice. Raises `BadUsage` if the agent cannot do it."""
    found = [_server(agent, choice, launch, env)]
    if choice.scope == "user" and agent.approving is not None:
        place = agent.approving.resolve(env)
        found.append(Entry(place, "approval", "item", ("permissions", "allow"), f"mcp__{SERVER}"))
    if choice.replace:
        found += _replaced(agent, choice, env)
    if choice.hooks:
        found += _hooks(agent, choice, launch, env)
        found += _rules(agent, choice, launch, env)
    return found


def hook_line(agent: Agent, launch: Launch) -> str:
    """The hook's command as one line for a shell."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in launch.env.items()]
    return " ".join([*variables, *map(shlex.quote, launch.hook), agent.id])


def is_hook_of(value: Any, agent: Agent) -> bool:
    """Whether an item of a configuration is haft's hook for this agent, of any version of haft."""
    if isinstance(value, dict):
        return any(is_hook_of(each, agent) for each in value.values())
    if isinstance(value, list):
        return any(is_hook_of(each, agent) for each in value)
    found = _HOOK_LINE.search(value) if isinstance(value, str) else None
    return found is not None and found[1] == agent.id


def is_server_of_haft(value: Any) -> bool:
    """Whether the entry of an MCP server starts haft, or leads to a haft that runs."""
    if not isinstance(value, dict):
        return False
    command, args = value.get("command"), value.get("args")
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    if "serve" in words and "mcp" in words:
        return True
    headers = value.get("headers") or value.get("http_headers") or {}
    marks = (TOKEN_VARIABLE, "Bearer haft_")
    texts = [*map(str, headers.values()), str(value.get("bearer_token_env_var"))] if isinstance(headers, dict) else []
    return any(mark in text for mark in marks for text in texts)


def _server(agent: Agent, choice: Choice, launch: Launch, env: Mapping[str, str]) -> Entry:
    place = agent.user_servers if choice.scope == "user" else agent.project_servers
    if place is None:
        raise BadUsage(f"{agent.title} has no file for the MCP servers of a project", hint="leave `--project` out")
    value = _stdio(agent, launch) if launch.url is None else _http(agent, launch)
    if choice.scope == "user" and agent.id == "codex":
        # Without `required`, the first turn can go out before haft's tools are there.
        value |= {"required": True, "default_tools_approval_mode": "approve"}
    if choice.scope == "user" and agent.id == "gemini":
        value |= {"trust": True}
    return Entry(place.resolve(env, choice.workspace), "server", "value", (agent.servers_key, SERVER), value)


def _stdio(agent: Agent, launch: Launch) -> dict[str, Any]:
    command, *args = launch.server
    if agent.id in _WORKSPACE_WORDS:
        args += ["-w", _WORKSPACE_WORDS[agent.id]]
    if agent.id == "opencode":
        own = {"environment": dict(launch.env)} if launch.env else {}
        return {"type": "local", "command": [command, *args], **own, "enabled": True}
    kind = {"type": _STDIO_TYPES[agent.id]} if agent.id in _STDIO_TYPES else {}
    return {**kind, "command": command, "args": args, **({"env": dict(launch.env)} if launch.env else {})}


def _http(agent: Agent, launch: Launch) -> dict[str, Any]:
    if agent.id == "codex":
        if launch.token is None:
            return {"url": launch.url, "bearer_token_env_var": TOKEN_VARIABLE}
        return {"url": launch.url, "http_headers": {"Authorization": f"Bearer {launch.token}"}}
    if launch.token is None and agent.id not in _TOKEN_WORDS:
        raise BadUsage(
            f"a shared file of {agent.title} cannot name a token without containing it",
            hint="leave `--project` or `--http` out",
        )
    token = _TOKEN_WORDS[agent.id] if launch.token is None else launch.token
    kind = {"type": _HTTP_TYPES[agent.id]} if agent.id in _HTTP_TYPES else {}
    found = {**kind, _URL_KEYS.get(agent.id, "url"): launch.url, "headers": {"Authorization": f"Bearer {token}"}}
    return {**found, "oauth": False, "enabled": True} if agent.id == "opencode" else found


def _hint_without(option: str, agent: Agent) -> str:
    """What to do where an agent has nothing for an option. `haft run` cannot hold an editor with windows."""
    around = "" if agent.has_windows else f"; `haft run -- {agent.executables[0]}` confines the whole agent"
    return f"leave `{option}` out{around}"


def _replaced(agent: Agent, choice: Choice, env: Mapping[str, str]) -> list[Entry]:
    facts = agent.replacing
    place = None if facts is None else facts.user if choice.scope == "user" else facts.project
    if facts is None or place is None:
        raise BadUsage(
            f"{agent.title} cannot switch its own tools off in a configuration file",
            hint=_hint_without("--replace", agent),
        )
    file = place.resolve(env, choice.workspace)
    if agent.id == "codex":
        return [Entry(file, "replace", "value", ("features", tool), False) for tool in facts.tools]
    if agent.id == "opencode":
        return [Entry(file, "replace", "value", ("permission", tool), "deny") for tool in facts.tools]
    if facts.kept:
        return [Entry(file, "replace", "value", ("tools", "core"), list(facts.kept))]
    keys, form = {
        "claude-code": (("permissions", "deny"), "{}"),
        "cursor": (("permissions", "deny"), "{}"),
        "amp": (("amp.tools.disable",), "builtin:{}"),
    }[agent.id]
    return [Entry(file, "replace", "item", keys, form.format(tool)) for tool in facts.tools]


def _hooks(agent: Agent, choice: Choice, launch: Launch, env: Mapping[str, str]) -> list[Entry]:
    facts = agent.hooks
    place = None if facts is None else facts.user if choice.scope == "user" else facts.project
    if facts is None or place is None:
        raise BadUsage(
            f"{agent.title} calls no program before its own tools",
            hint=_hint_without("--hooks", agent),
        )
    file = place.resolve(env, choice.workspace)
    events = (*facts.before, *facts.after)
    line, limit = hook_line(agent, launch), int(facts.limit_seconds)
    if file.endswith((".js", ".ts")):
        return [Entry(file, "hooks", "file", (), plugin_text(agent, launch.hook, launch.env, limit))]
    command = {"type": "command", "command": line, "timeout": limit}
    if agent.id == "vscode":
        value = {event: [command] for event in events}
        return [Entry(file, "hooks", "value", ("hooks",), value)]
    if agent.id == "antigravity":
        value = {event: [{"matcher": ".*", "hooks": [command]}] for event in events}
        return [Entry(file, "hooks", "value", (SERVER,), value)]
    if agent.id == "cursor":
        own = {"command": line, "timeout": limit}
        blocking = {**own, "failClosed": True}
        found = [
            Entry(file, "hooks", "item", ("hooks", event), blocking if event in facts.before else own)
            for event in events
        ]
        return [Entry(file, "hooks", "value", ("version",), 1), *found]
    if agent.id == "gemini":
        command = {"name": SERVER, **command, "timeout": limit * 1000}
    blocks = {"onFailure": "block"} if agent.id == "claude-code" else {}
    return [
        Entry(
            file,
            "hooks",
            "item",
            ("hooks", event),
            {"matcher": "*", "hooks": [{**command, **(blocks if event in facts.before else {})}]},
        )
        for event in events
    ]


def _rules(agent: Agent, choice: Choice, launch: Launch, env: Mapping[str, str]) -> list[Entry]:
    """The rules with which the agent allows the beginning of a rewritten line and haft's program, so that its other
    rules decide about the command itself. Claude Code and Codex need none: there, haft's hook allows the line."""
    program = launch.shell
    if choice.scope != "user" or choice.replace or program is None or not is_plain_path(program):
        return []  # `--replace` switches the agent's shell off.
    if agent.id == "opencode":
        file = agent.user_servers.resolve(env)
        return [
            Entry(file, "rules", "value", ("permission", "bash", each), "allow") for each in ("false", f"{program} *")
        ]
    if agent.id == "gemini" and agent.hooks is not None:
        folder = os.path.dirname(agent.hooks.user.resolve(env))
        return [Entry(os.path.join(folder, "policies", POLICY), "rules", "file", (), policy_text(program))]
    return []


def trusted(
    agent: Agent, choice: Choice, entries: Sequence[Entry], hooks_text: str, env: Mapping[str, str]
) -> list[Entry]:
    """The entries with which Codex trusts haft's hooks. They depend on the whole text of the hooks' file: Codex counts
    the hooks in it. Nobody else needs them, and a shared file cannot contain them."""
    if agent.id != "codex" or choice.scope != "user" or agent.hooks is None:
        return []
    hooks = [entry for entry in entries if entry.part == "hooks"]
    if not hooks:
        return []
    config = agent.user_servers.resolve(env)
    folder, name = os.path.split(hooks[0].file)
    # Codex resolves links in the path of its folder, and none in the name of the file.
    found = trust_entries(
        os.path.join(os.path.realpath(folder), name), hooks_text, lambda group: is_hook_of(group, agent)
    )
    return [Entry(config, "trust", "value", ("hooks", "state", key), value) for key, value in found.items()]
