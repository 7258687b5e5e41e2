"""Looks at how well an agent is connected: for `haft connect` without a name, and for `haft doctor`. It reads files,
and starts nothing."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from haft.connecting.agent_versions import installed_version, needed_version, too_old_sentence
from haft.connecting.agents import AGENTS
from haft.connecting.agents.agent import Agent, Place
from haft.connecting.changes import lookup, read_file
from haft.connecting.entries import SERVER, Choice, Entry, Launch, entries_for, is_hook_of, is_server_of_haft, trusted
from haft.contracts import BadConfig, BadUsage
from haft.values import dataclass, field, replace

PartState = Literal["none", "ok", "outdated", "broken"]
_SWITCHES: Final[Mapping[str, tuple[Place | None, tuple[str, ...], Any]]] = {
    "claude-code": (AGENTS["claude-code"].approving, ("disableAllHooks",), True),
    "codex": (AGENTS["codex"].user_servers, ("features", "hooks"), False),
    "gemini": (AGENTS["gemini"].user_servers, ("hooksConfig", "enabled"), False),
}
"""Settings with which an agent ignores all hooks: the file, the key and the value."""


@dataclass(slots=True)
class Problem:
    """Something that is wrong with a connection."""

    detail: str
    hint: str
    is_broken: bool = True
    """Whether the connection does not work; False if it is only out of date."""


@dataclass(slots=True)
class Examined:
    """How an agent is connected."""

    agent: Agent
    choice: Choice
    is_installed: bool
    version: str | None = None
    """The installed version, if it can be seen without running the agent."""
    server: PartState = "none"
    hooks: PartState = "none"
    replaced: bool = False
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_connected(self) -> bool:
        return self.server != "none" or self.hooks != "none"

    def coverage(self) -> list[str]:
        """How well the agent is covered, in sentences for a person."""
        if not self.is_connected:
            return ["nothing: haft sees none of its calls"]
        found = []
        if self.server in ("ok", "outdated"):
            found.append("calls of haft's tools are confined, recorded and undoable")
        facts = self.agent.hooks
        if self.hooks in ("ok", "outdated") and facts is not None:
            shell = (
                "runs in haft's sandbox" if facts.rewriting != "off" else "is decided by your rules, without a sandbox"
            )
            found.append(f"its own shell {shell}; its own edits can be undone; its other tools are recorded")
            if (limit := self._limit_of_hooks()) is not None:
                found.append(limit)
        elif self.replaced:
            left = self.agent.replacing.left if self.agent.replacing else ()
            rest = f", except {'; '.join(left)}" if left else ""
            found.append(f"its own shell and file tools are switched off{rest}")
        else:
            found.append("its own shell and file tools are not covered")
        return found

    def _limit_of_hooks(self) -> str | None:
        """What a person must know about the version of the agent; None if its hooks work as they should."""
        needed = needed_version(self.agent)
        if needed is None or (old := too_old_sentence(self.agent, self.version)) is not None:
            return None if needed is None else old
        if self.version is None:
            return f"calls pass if the hook fails to start, unless {self.agent.title} is {needed} or newer"
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent.id,
            "title": self.agent.title,
            "scope": self.choice.scope,
            "installed": self.is_installed,
            "connected": self.is_connected,
            "server": self.server,
            "hooks": self.hooks,
            "replaced": self.replaced,
            "version": self.version,
            "testedVersion": self.agent.version,
            "coverage": self.coverage(),
            "problems": [{"detail": one.detail, "hint": one.hint, "broken": one.is_broken} for one in self.problems],
        }


def is_installed(agent: Agent, env: Mapping[str, str]) -> bool:
    """Whether one of the agent's programs is on PATH."""
    return any(shutil.which(name, path=env.get("PATH")) for name in agent.executables)


def examine(
    agent: Agent,
    choice: Choice,
    launch: Launch,
    env: Mapping[str, str],
    is_valid_token: Callable[[str], bool] = lambda _token: True,
) -> Examined:
    """Look at the files of an agent. `launch` says what haft would write today."""
    found = Examined(agent, choice, is_installed(agent, env), installed_version(agent, env))
    _server(found, launch, env, is_valid_token)
    _hooks(found, launch, env)
    _replacement(found, launch, env)
    _rules(found, launch, env)
    old = too_old_sentence(agent, found.version)
    if found.hooks != "none" and old is not None:
        hint = f"update {agent.title} to {needed_version(agent)} or newer"
        found.problems.append(Problem(old, hint, is_broken=False))
    return found


def _read(found: Examined, entry: Entry) -> Any:
    """The value in the place of an entry; None if it is missing or the file is broken."""
    try:
        content = read_file(entry.file).content
        return None if content is None else lookup(entry.file, content, entry.keys)
    except BadConfig as error:
        if all(one.detail != error.message for one in found.problems):
            found.problems.append(Problem(error.message, error.hint or "mend the file"))
        return None


def _again(found: Examined) -> str:
    words = [f"haft connect {found.agent.id}", *(["--project"] if found.choice.scope == "project" else [])]
    return f"`{' '.join(words)}` writes it anew"


def _server(found: Examined, launch: Launch, env: Mapping[str, str], is_valid_token: Callable[[str], bool]) -> None:
    agent = found.agent
    try:
        (entry, *_) = entries_for(agent, found.choice, replace(launch, url=None), env)
    except BadUsage:
        return
    value = _read(found, entry)
    if not is_server_of_haft(value):
        return
    found.server = "ok"
    command = _command(value)
    if command is None:
        token = _token(value)
        if token is not None and not is_valid_token(token):
            found.server = "broken"
            detail = f"{entry.file}: the token of haft's MCP server is revoked"
            found.problems.append(Problem(detail, f"`haft connect {agent.id} --http` makes a new one"))
    elif shutil.which(command[0], path=env.get("PATH")) is None:
        found.server = "broken"
        detail = f"{entry.file} starts {command[0]}, which is not there"
        found.problems.append(Problem(detail, _again(found)))
    elif any(not _has(value.get(name), wanted) for name, wanted in entry.value.items()):
        found.server = "outdated"
        detail = f"{entry.file}: haft's MCP server is written differently today"
        found.problems.append(Problem(detail, _again(found), is_broken=False))


def _has(value: Any, wanted: Any) -> bool:
    """Whether a value is the wanted one; a person may have added variables."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        return all(value.get(name) == each for name, each in wanted.items())
    return bool(value == wanted)


def present_token(agent: Agent, env: Mapping[str, str]) -> str | None:
    """The token of haft's MCP server in the person's configuration of an agent; None if there is none."""
    entry = Entry(agent.user_servers.resolve(env), "server", "value", (agent.servers_key, SERVER), None)
    value = _read(Examined(agent, Choice(), is_installed=True), entry)
    return _token(value) if isinstance(value, dict) else None


def _command(value: Mapping[str, Any]) -> list[str] | None:
    command = value.get("command")
    if isinstance(command, list):
        return [str(each) for each in command]
    return None if command is None else [str(command)]


def _token(value: Mapping[str, Any]) -> str | None:
    headers = value.get("headers") or value.get("http_headers") or {}
    text = str(headers.get("Authorization", ""))
    return text.removeprefix("Bearer ") if text.startswith("Bearer haft_") else None


def _hooks(found: Examined, launch: Launch, env: Mapping[str, str]) -> None:
    agent = found.agent
    try:
        entries = entries_for(agent, replace(found.choice, hooks=True), launch, env)
    except BadUsage:
        return
    wanted = [entry for entry in entries if entry.part == "hooks" and entry.keys != ("version",)]
    if wanted[0].kind == "file":
        _plugin(found, wanted[0])
        return
    values = [_read(found, entry) for entry in wanted]
    if not any(is_hook_of(value, agent) for value in values):
        return
    current = [
        entry.value in value if entry.kind == "item" and isinstance(value, list) else entry.value == value
        for entry, value in zip(wanted, values, strict=True)
    ]
    found.hooks = "ok" if all(current) else "outdated"
    missing = [path for value in values for path in _missing_programs(value, agent, env)]
    if missing:
        found.hooks = "broken"
        found.problems.append(
            Problem(f"{wanted[0].file}: the hook starts {missing[0]}, which is not there", _anew(found))
        )
    elif found.hooks == "outdated":
        detail = f"{wanted[0].file}: haft's hooks are written differently today"
        found.problems.append(Problem(detail, _anew(found), is_broken=False))
    _obstacles(found, wanted, env)


def _anew(found: Examined) -> str:
    return _again(found).replace("` writes", " --hooks` writes")


def _plugin(found: Examined, entry: Entry) -> None:
    try:
        content = read_file(entry.file).content
    except BadConfig as error:
        found.problems.append(Problem(error.message, error.hint or "mend the file"))
        return
    if content is None or b"haft connect" not in content:
        return
    found.hooks = "ok" if content.decode("utf-8", "replace") == entry.value else "outdated"
    if found.hooks == "outdated":
        found.problems.append(Problem(f"{entry.file} is written differently today", _anew(found), is_broken=False))


def _obstacles(found: Examined, wanted: Sequence[Entry], env: Mapping[str, str]) -> None:
    """What keeps an agent from calling hooks that are there."""
    agent = found.agent
    place, keys, value = _SWITCHES.get(agent.id, (None, (), None))
    if place is not None:
        file = place.resolve(env)
        if _read(found, Entry(file, "hooks", "value", keys, value)) is value:
            found.hooks = "broken"
            detail = f"{file}: `{'.'.join(keys)}` switches all hooks off"
            found.problems.append(Problem(detail, f"remove `{keys[-1]}` from that file"))
    content = read_file(wanted[0].file).content
    trust = [] if content is None else trusted(agent, found.choice, wanted, content.decode(), env)
    if any(_read(found, entry) != entry.value and not _is_trusted(_read(found, entry), entry) for entry in trust):
        found.hooks = "broken"
        detail = f"{agent.title} skips haft's hooks, because they are not trusted as they are now"
        found.problems.append(Problem(detail, f"{_anew(found)}; or trust them with `/hooks` in {agent.title}"))


def _is_trusted(value: Any, entry: Entry) -> bool:
    """Whether the trust is there, together with other keys that the agent wrote."""
    return (
        isinstance(value, dict)
        and value.get("trusted_hash") == entry.value["trusted_hash"]
        and value.get("enabled", True)
    )


def _rules(found: Examined, launch: Launch, env: Mapping[str, str]) -> None:
    """Whether the agent would ask about haft's own program."""
    if found.hooks != "ok":
        return
    if found.replaced or (found.agent.id == "opencode" and _denies_shell(found, env)):
        return
    entries = entries_for(found.agent, replace(found.choice, hooks=True), launch, env)
    for entry in (each for each in entries if each.part == "rules"):
        try:
            value = read_file(entry.file).content if entry.kind == "file" else _read(found, entry)
        except BadConfig:
            value = None
        wanted = entry.value.encode() if entry.kind == "file" else entry.value
        if value != wanted:
            found.hooks = "outdated"
            detail = f"{entry.file}: a rule is missing, so {found.agent.title} asks about haft's own program"
            found.problems.append(Problem(detail, _anew(found), is_broken=False))
            return


def _denies_shell(found: Examined, env: Mapping[str, str]) -> bool:
    """Whether opencode's shell is switched off."""
    file = found.agent.user_servers.resolve(env)
    places = (("permission",), ("permission", "bash"))
    return any(_read(found, Entry(file, "rules", "value", keys, None)) == "deny" for keys in places)


def _missing_programs(value: Any, agent: Agent, env: Mapping[str, str]) -> list[str]:
    """The programs and files that haft's hook lines name and that do not exist."""
    if isinstance(value, dict):
        return [path for each in value.values() for path in _missing_programs(each, agent, env)]
    if isinstance(value, list):
        return [path for each in value for path in _missing_programs(each, agent, env)]
    if not isinstance(value, str) or not is_hook_of(value, agent):
        return []
    words = [word for word in shlex.split(value) if "=" not in word.split("/")[0]]
    missing = [word for word in words if word.startswith("/") and not os.path.exists(word)]
    return missing or [word for word in words[:1] if shutil.which(word, path=env.get("PATH")) is None]


def _replacement(found: Examined, launch: Launch, env: Mapping[str, str]) -> None:
    try:
        entries = entries_for(found.agent, replace(found.choice, replace=True), launch, env)
    except BadUsage:
        return
    wanted = [entry for entry in entries if entry.part == "replace"]
    values = [_read(found, entry) for entry in wanted]
    found.replaced = all(
        entry.value in value if entry.kind == "item" and isinstance(value, list) else entry.value == value
        for entry, value in zip(wanted, values, strict=True)
    )
