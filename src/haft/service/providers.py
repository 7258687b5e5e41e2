"""The MCP servers of a workspace and its user: lists them, adds them to a haft.toml and removes them, shows what a
person would trust, and saves this trust. Nothing here starts a server: `facades/providers.py` does."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from haft.config import WORKSPACE_FILES, Config, load_config, table_text, with_table, without_table
from haft.contracts import BadUsage, Listing, Principal, Secrets, StorageFailed, near_miss
from haft.files import shown
from haft.service.own_file import OwnFile
from haft.service.providers_login import forget_login
from haft.service.tool_listing import ListedTools
from haft.storage import StateHome
from haft.toolsets import (
    ConfiguredServer,
    Host,
    Input,
    InputStore,
    WrittenServer,
    configured_servers,
    digests_of,
    inputs_in,
    own_files,
    read_server,
    read_server_file,
    secrets_in,
    server_name,
    start_trust,
)
from haft.values import replace

SECTIONS: Final = ("providers", "mcpServers")
"""The names that a haft.toml may use for the table of servers."""
LIST: Final = "`haft providers list` shows the MCP servers"


@dataclass(frozen=True, slots=True)
class ListedProvider:
    """One MCP server, as `haft providers list` prints it."""

    server: ConfiguredServer
    state: str
    """`ready`, or why it has no tools: `inactive` (never asked), `changed` (not trusted), `unreachable`, `broken`,
    `disabled`."""
    reason: str | None
    tools: tuple[str, ...]

    @property
    def title(self) -> str:
        """What people read as its name: for a file that cannot be read, the path of the file."""
        return shown(self.server.provider.source) if self.server.is_file else self.server.provider.name

    def where(self) -> str:
        """The command or the address of the server, as it is written."""
        return address_of(self.server)

    def to_json(self) -> dict[str, Any]:
        provider, written = self.server.provider, self.server.written
        return {
            "name": provider.name,
            "type": provider.transport,
            "state": self.state,
            "reason": self.reason,
            "source": provider.source,
            "provenance": provider.provenance,
            "skill": None if provider.skill is None else provider.skill[0],
            "address": self.where(),
            "cwd": provider.cwd,
            "env": [] if written is None else sorted(written.env),
            "headers": [] if written is None else sorted(written.headers),
            "grant": provider.grants.to_json(),
            "include": list(provider.include),
            "exclude": list(provider.exclude),
            "timeout": provider.timeout,
            "trustsAnnotations": provider.trusts_annotations,
            "tools": list(self.tools),
        }


@dataclass(frozen=True, slots=True)
class StartProposal:
    """What a person would let start."""

    server: ConfiguredServer
    text: str
    """The server as its file writes it, as TOML, without secrets."""
    files: Mapping[str, str]
    """The digests of the files that the trust would cover, by their paths."""
    difference: Sequence[str]
    """The lines of a diff from what was trusted before; empty if nothing was, or only files changed."""
    changed_files: Sequence[str]
    why_not: str | None
    """Why the server may not start now; None if it may."""
    inputs: Sequence[Input]
    """Values that the server still needs from the person."""


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """A server that was added to a haft.toml, or removed from it."""

    name: str
    file: str
    text: str
    """The table of the server in the file, without secrets."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "file": self.file}


@dataclass(frozen=True, slots=True)
class RemovedProvider:
    """A server that was removed from a haft.toml."""

    name: str
    file: str
    files: str | None
    """The directory with the files that the server kept for itself; None if it kept none."""
    purged: bool
    """Whether that directory was deleted."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "file": self.file, "files": self.files, "purged": self.purged}


class ProvidersFacade:
    """The MCP servers of one workspace and its user."""

    def __init__(self, workspace: str, home: StateHome) -> None:
        self._workspace = workspace
        self._home = home
        self.config: Config = load_config(workspace, os.environ, trust_home=home.path)
        self._host = Host(workspace, home, os.environ, None, None)
        self._host.configure(self.config)

    def servers(self) -> list[ConfiguredServer]:
        """All servers, in the order in which they get their names."""
        return configured_servers(self._host)

    def named(self, name: str) -> ConfiguredServer:
        """The server with this name. Raises `BadUsage` if there is none."""
        every = self.servers()
        for one in every:
            if name == one.provider.name or (name == one.written_name and one.provider.problem is None):
                return one
        names = [one.provider.name for one in every]
        near = near_miss(name, names)
        raise BadUsage(
            f"there is no MCP server `{shown(name)}`",
            hint=f"did you mean `{near}`?" if near else LIST if names else "`haft providers add` adds one",
        )

    def listed(self, thread: str | None = None) -> list[ListedProvider]:
        """All servers with their states and tools. Starts no server."""
        tools = ListedTools(self._workspace, self._home)
        tools.fill()
        by_server: dict[str, list[Listing]] = {}
        for listing in tools.listings(thread):
            about = listing.spec.meta.get("mcp")
            if isinstance(about, Mapping) and "server" in about:
                by_server.setdefault(str(about["server"]), []).append(listing)
        return [self._listed(one, by_server.get(one.provider.name, ())) for one in self.servers()]

    def _listed(self, server: ConfiguredServer, listings: Sequence[Listing]) -> ListedProvider:
        provider = server.provider
        if server.is_disabled:
            return ListedProvider(server, "disabled", f"{shown(provider.source)} turns it off", ())
        if provider.problem is not None:
            return ListedProvider(server, "broken", provider.problem, ())
        if (why := start_trust(self._host).why_not(provider)) is not None:
            return ListedProvider(server, "changed", why, ())
        tools = tuple(str(one.spec.name) for one in listings if "tool" in one.spec.meta["mcp"])
        whole = next((one for one in listings if "tool" not in one.spec.meta["mcp"]), None)
        if whole is not None and not tools:
            return ListedProvider(server, whole.state, whole.reason, ())
        if tools and not any(one.enabled for one in listings):
            return ListedProvider(server, listings[0].state, listings[0].reason, tools)
        return ListedProvider(server, "ready", None, tools)

    def proposal(self, name: str) -> StartProposal:
        """What a person would let start under this name. Raises `BadUsage` if the server cannot be used at all."""
        server = self.named(name)
        provider, written = server.provider, server.written
        if written is None or (provider.problem is not None and not server.missing_inputs):
            problem = provider.problem or f"`{name}` cannot be used"
            is_unset = problem.endswith("which is not set")
            raise BadUsage(problem, hint="set it, and try again" if is_unset else f"change {shown(provider.source)}")
        store = start_trust(self._host)
        kept = store.kept(provider)
        files = digests_of(provider)
        difference: Sequence[str] = ()
        changed: Sequence[str] = ()
        if kept is not None and kept.bound and kept.identity != provider.identity:
            before, now = (_lines(server, bound) for bound in (kept.bound, _masked(server)))
            difference = tuple(difflib.unified_diff(before, now, lineterm="", n=9))[3:]
        if kept is not None:
            changed = store.changed_files(provider, kept)
        text = table_text(("providers", provider.name), _without_empty(_masked(server)))
        return StartProposal(
            server, text, files, difference, changed, store.why_not(provider), tuple(server.missing_inputs)
        )

    def trust(self, proposal: StartProposal, principal: Principal, *, annotations: bool | None = None) -> None:
        """Let a server start, as it was shown. `annotations` says whether the person believes what the server says
        about the effects of its tools; None keeps what was said before. Raises `NeedsPerson` if the principal is an
        agent."""
        principal.must_be_person("providers trust")
        store = start_trust(self._host)
        server = proposal.server
        kept = store.kept(server.provider)
        believed = annotations if annotations is not None else kept is not None and kept.annotations
        store.trust(
            server.provider,
            _masked(server),
            principal.who,
            by_person=True,
            annotations=believed,
            files=proposal.files,
        )

    def revoke(self, name: str) -> bool:
        """End the trust in a server; False if nobody trusted it."""
        return start_trust(self._host).revoke(self.named(name).provider)

    def keep_input(self, server: ConfiguredServer, name: str, value: str, principal: Principal) -> None:
        """Keep a value that the person gave for a server."""
        principal.must_be_person("providers trust")
        InputStore(self._home.path).keep(server.provider.source, name, value)

    def read_tables(self, path: str, names: Sequence[str] = ()) -> dict[str, WrittenServer]:
        """The servers in a file of any agent, or those of them that are named. Raises `BadUsage` if one cannot be
        used."""
        path = os.path.abspath(os.path.expanduser(path))
        found = read_server_file(path, os.path.realpath(self._workspace))
        for name in names:
            if name not in found.servers:
                near = near_miss(name, map(str, found.servers))
                hint = f"did you mean `{near}`?" if near else f"it has {', '.join(map(str, found.servers))}"
                raise BadUsage(f"{path} names no MCP server `{shown(name)}`", hint=hint)
        servers: dict[str, WrittenServer] = {}
        for name, table in found.servers.items():
            if names and name not in names:
                continue
            try:
                written = read_server(table, is_own=found.is_own)
            except ValueError as error:
                what = f"the server `{shown(str(name))}` in {path} {error}"
                raise BadUsage(what, hint=None if names else "name the servers that you want") from None
            servers[server_name(str(name))] = with_inputs(written, found.inputs)
        return servers

    def written(self, name: str, table: Mapping[str, Any]) -> WrittenServer:
        """The server that a table means. Raises `BadUsage` if it cannot be used."""
        try:
            return read_server({key: value for key, value in table.items() if value not in (None, {}, [])}, is_own=True)
        except ValueError as error:
            raise BadUsage(f"the server `{shown(name)}` {error}") from None

    def log_of(self, server: ConfiguredServer) -> str:
        """What a server wrote to stderr, the oldest first."""
        from haft.sources.mcp import read_log

        return read_log(self._home.path, server.provider.name)

    def add(
        self, name: str, written: WrittenServer, principal: Principal, *, in_workspace: bool, replaces: bool
    ) -> ProviderChange:
        """Add a server to the user's haft.toml, or to the workspace's, and let it start: the person named it. Raises
        `BadUsage` if the name is taken."""
        principal.must_be_person("providers add")
        name = checked_name(name)
        file = OwnFile.of_workspace(self._workspace) if in_workspace else OwnFile.read()
        text = file.text
        section, tables = self._section(file)
        if name in tables:
            if not replaces:
                raise BadUsage(f"{file.path} already names a server `{name}`", hint="`--replace` replaces it")
            text = without_table(text, (section, name))
        elif in_workspace and (other := self._of_user(name)) is not None:
            raise BadUsage(f"{shown(other)} already names a server `{name}`", hint="give this one another name")
        table = written.table()
        text = with_table(text, (section, name), table)
        file.check(text, self._workspace)
        file.write(text)
        again = ProvidersFacade(self._workspace, self._home)
        server = again.named(name)
        if not server.missing_inputs and server.provider.problem is None:
            again.trust(again.proposal(name), principal)
        return ProviderChange(name, file.path, table_text((section, name), _without_empty(_masked(server))))

    def _of_user(self, name: str) -> str | None:
        """The place in which the user already has a server of this name, which would keep the name; None if none."""
        own = (one.provider for one in self.servers() if one.provider.provenance == "user" and not one.provider.skill)
        return next((each.source for each in own if each.name == name), None)

    def remove(self, name: str, principal: Principal, *, purges: bool = False) -> RemovedProvider:
        """Remove a server from the haft.toml that names it, and forget the trust in it and the values given for it.
        With `purges`, delete the files that the server kept for itself."""
        principal.must_be_person("providers remove")
        server = self.named(name)
        source = server.provider.source
        own = OwnFile.read()
        if source == own.path:
            file = own
        elif os.path.dirname(source) == os.path.realpath(self._workspace) and source.endswith("haft.toml"):
            file = OwnFile.of_workspace(self._workspace)
        else:
            raise BadUsage(f"`{name}` was not removed: {shown(source)} names it", hint="remove it from this file")
        section, _tables = self._section(file)
        text = without_table(file.text, (section, server.written_name))
        file.check(text, self._workspace)
        file.write(text)
        start_trust(self._host).revoke(server.provider)
        if server.written is not None:
            others = [one for one in self.servers() if one.provider.source == source and one is not server]
            InputStore(self._home.path).forget(source, _only_inputs(server, others))
        forget_login(server.provider.name, self._home.path)
        kept = own_files(self._home.path, server.provider)
        if not _has_files(kept):
            return RemovedProvider(server.provider.name, file.path, None, purged=False)
        if purges:
            try:
                shutil.rmtree(kept)
            except OSError as error:
                raise StorageFailed(f"the files of `{name}` in {kept} could not be deleted", error) from error
        return RemovedProvider(server.provider.name, file.path, kept, purged=purges)

    def _section(self, file: OwnFile) -> tuple[str, Mapping[str, Any]]:
        """The name under which a haft.toml has its servers, and the servers there."""
        tables = tomllib.loads(file.text)
        section = next((each for each in SECTIONS if each in tables), SECTIONS[0])
        found = tables.get(section, {})
        return section, found if isinstance(found, Mapping) else {}


def trust_of_file(workspace: str, home: StateHome, path: str, who: str) -> list[str]:
    """Let all servers start that a trusted haft.toml names. Returns their names; none if the file is no longer as it
    was trusted."""
    facade = ProvidersFacade(workspace, home)
    if not facade.config.trusted:
        return []
    store = start_trust(facade._host)
    found = [one for one in facade.servers() if one.provider.source == path and one.written is not None]
    for one in found:
        store.trust(one.provider, _masked(one), who, by_person=True, annotations=False)
    return [one.provider.name for one in found]


def revoke_file(workspace: str, home: StateHome) -> None:
    """End the trust in the servers that the configuration file of a workspace names."""
    facade = ProvidersFacade(workspace, home)
    store = start_trust(facade._host)
    for one in facade.servers():
        if one.provider.provenance == "workspace" and os.path.basename(one.provider.source) in WORKSPACE_FILES:
            store.revoke(one.provider)


def checked_name(name: str) -> str:
    """The name, if a server can have it. Raises `BadUsage` if not."""
    clean = server_name(name)
    if clean != name:
        raise BadUsage(
            f"`{shown(name)}` cannot be the name of an MCP server: a name has letters, digits, `-` and single `_`",
            hint=f"use `{clean}`",
        )
    return name


def address_of(server: ConfiguredServer) -> str:
    """The command or the address of a server, as it is written, without secrets."""
    provider, written = server.provider, server.written
    if written is None:
        return ""
    if written.url is not None:
        return str(provider.secrets.masked(written.url))
    words = [written.command or "", *written.args]
    return str(
        provider.secrets.masked(" ".join(word if word.startswith("${") else shlex.quote(word) for word in words))
    )


def provider_text(name: str, written: WrittenServer) -> str:
    """The table of a server as TOML, without secrets."""
    return table_text(("providers", name), Secrets(secrets_in(written)).masked(written.table()))


def with_inputs(written: WrittenServer, inputs: Iterable[Mapping[str, Any]]) -> WrittenServer:
    """A server with the declarations of the inputs that it needs."""
    wanted = inputs_in(written)
    known = [one for one in (*written.inputs, *inputs) if one.get("id") in wanted]
    keys = ("id", "description", "password", "default", "options")
    return replace(written, inputs=tuple({key: one[key] for key in keys if one.get(key) is not None} for one in known))


def _masked(server: ConfiguredServer) -> dict[str, Any]:
    """What the trust in a server is bound to, without secrets."""
    if server.written is None:
        return {}
    found: dict[str, Any] = server.provider.secrets.masked(server.written.bound())
    return found


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _lines(server: ConfiguredServer, bound: Mapping[str, Any]) -> list[str]:
    return table_text(("providers", server.provider.name), _without_empty(bound)).splitlines()


def _has_files(directory: str) -> bool:
    try:
        return bool(os.listdir(directory))
    except OSError:
        return False


def _only_inputs(server: ConfiguredServer, others: Sequence[ConfiguredServer]) -> list[str]:
    """The inputs that only this server of its file needs."""
    shared = {name for one in others if one.written is not None for name in inputs_in(one.written)}
    return [] if server.written is None else [name for name in inputs_in(server.written) if name not in shared]
