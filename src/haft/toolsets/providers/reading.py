"""The MCP servers of one workspace and its user, from all places that may name them.

In this order: the embedding program, the user's own haft.toml, the workspace's haft.toml, its `.mcp.json`, and the
`mcp.json` of skills. If two servers have the same name, the first keeps it, and the other one gets a problem that says
so. A server that cannot be used never disturbs the others: it has a problem, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.config import read_config
from haft.contracts import CallError, HaftError, Provenance, Secrets
from haft.files import digest_of, lies_inside, shown
from haft.lazy import regex
from haft.sources.mcp import Provider
from haft.toolsets.providers.finding import SERVERS_FILE, WORKSPACE_FILE, provider_tables, start_trust
from haft.toolsets.providers.inputs import Input, InputStore, declared
from haft.toolsets.providers.named_files import named_files
from haft.toolsets.providers.packages import why_not_installable
from haft.toolsets.providers.placeholders import Filler, MissingInput, inputs_in, secrets_in
from haft.toolsets.providers.server_files import parse_map, servers_in
from haft.toolsets.providers.spellings import WrittenServer, grants_of, read_server
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from haft.sources.skills import Skill
    from haft.toolsets.formats import Host

MOST_SERVERS: Final = 200
"""The most servers that haft reads from one file."""
LONGEST_NAME: Final = 40
LONGEST_PROBLEM: Final = 400
"""The most characters of a problem. It may quote a text of the file."""
_NOT_IN_NAME: Final = regex(r"[^A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """A server, and what is known about it besides the provider itself."""

    provider: Provider
    written_name: str
    written: WrittenServer | None = None
    """The server as its file writes it; None if the table cannot be understood."""
    missing_inputs: tuple[Input, ...] = ()
    """Values that a person must give before the server can be used."""
    is_disabled: bool = False
    """Whether its file turns it off."""
    is_file: bool = False
    """Whether it stands for a whole file that cannot be read."""


@dataclass(frozen=True, slots=True)
class _Place:
    """One file with servers."""

    source: str
    servers: Mapping[str, Any]
    provenance: Provenance
    inputs: tuple[Mapping[str, Any], ...] = ()
    skill: tuple[str, str] | None = None
    is_own: bool = False


def configured_servers(host: Host) -> list[ConfiguredServer]:
    """All MCP servers of a host, also those that are turned off or cannot be used."""
    reader = _Reader(host)
    found: list[ConfiguredServer] = []
    taken: dict[str, ConfiguredServer] = {}
    for place in reader.places():
        for number, (name, table) in enumerate(place.servers.items()):
            if number >= MOST_SERVERS:
                break
            one = reader.server(str(name), table, place)
            first = taken.get(one.provider.name)
            if first is not None:
                if first.provider.identity == one.provider.identity and one.provider.problem is None:
                    continue  # The same server in two files is one server.
                one = _displaced(one, first, taken)
            taken[one.provider.name] = one
            found.append(one)
    return found


def server_name(written: str) -> str:
    """The name of a server: letters, digits, `-` and single `_`. Other characters become `_`. A name that is too long
    is cut, with a hash of the whole name."""
    name = _NOT_IN_NAME.sub("_", written).strip("_")
    if not name:
        return f"server-{digest_of(written.encode('utf-8', 'surrogatepass'))[:6]}"
    if len(name) > LONGEST_NAME:
        cut = digest_of(written.encode("utf-8", "surrogatepass"))[:6]
        return f"{name[: LONGEST_NAME - 7].rstrip('_')}-{cut}"
    return name


def _displaced(
    one: ConfiguredServer, first: ConfiguredServer, taken: Mapping[str, ConfiguredServer]
) -> ConfiguredServer:
    """A server whose name is taken, under a name of its own and with a problem."""
    name = one.provider.name
    number = next(number for number in range(2, len(taken) + 3) if f"{name}-{number}" not in taken)
    problem = (
        f"{shown(first.provider.source)} already names a server `{name}`: "
        f"give the one in {shown(one.provider.source)} another name"
    )
    return replace(one, provider=replace(one.provider, name=f"{name}-{number}", problem=problem))


class _Reader:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._inputs = InputStore(host.state_home)
        self._trust = start_trust(host)

    def places(self) -> Iterator[_Place]:
        for one in sorted(provider_tables(self._host), key=lambda each: os.path.isabs(each.source)):
            base = os.path.dirname(one.source)
            inside = os.path.isabs(one.source) and os.path.realpath(base) == self._host.workspace
            yield _Place(one.source, one.tables, "workspace" if inside else "user", is_own=True)
        yield from self._of_workspace()
        for skill in self._host.skills.last_found():
            if skill.is_usable and skill.provenance != "builtin":
                yield from self._of_skill(skill)

    def _of_workspace(self) -> Iterator[_Place]:
        path = os.path.join(self._host.workspace, WORKSPACE_FILE)
        if not os.path.lexists(path):
            return
        try:
            found = servers_in(read_config(path), path)
        except HaftError as error:
            yield _Place(path, {"mcp.json": error}, "workspace")
            return
        yield _Place(path, found.servers, "workspace", found.inputs)

    def _of_skill(self, skill: Skill) -> Iterator[_Place]:
        path = os.path.join(skill.folder, SERVERS_FILE)
        if not os.path.lexists(path):
            return
        provenance: Provenance = "workspace" if skill.provenance == "workspace" else "user"
        whose = (skill.name, skill.folder)
        try:
            with skill.files().open(SERVERS_FILE) as file:
                data = file.read(1_000_001)
            servers = parse_map(data, path)
        except (HaftError, OSError) as error:
            message = error.message if isinstance(error, HaftError) else str(error)
            yield _Place(path, {skill.name: CallError(message)}, provenance, skill=whose)
            return
        yield _Place(path, servers, provenance, skill=whose)

    def server(self, name: str, table: Any, place: _Place) -> ConfiguredServer:
        """One server. Whatever is wrong with it becomes its problem."""
        bare = Provider(
            server_name(name),
            "stdio",
            provenance=place.provenance,
            source=place.source,
            skill=place.skill,
        )
        if isinstance(table, HaftError):
            return ConfiguredServer(replace(bare, problem=table.message), name, is_file=True)
        try:
            written = read_server(table, is_own=place.is_own)
        except ValueError as error:
            return ConfiguredServer(replace(bare, problem=_problem(name, place, str(error))), name)
        written = _beside_its_file(written, place)
        identity = digest_of(json.dumps(written.bound(), sort_keys=True).encode("utf-8", "surrogatepass"))
        bare = replace(bare, transport=written.transport, identity=identity, secrets=Secrets(secrets_in(written)))
        inputs = (*written.inputs, *place.inputs)
        filler = Filler(self._host.env, self._inputs.values(place.source), self._directories(place))
        missing: tuple[Input, ...] = ()
        try:
            filled = filler.filled(written)
            provider = self._provider(bare, filled, filler)
        except MissingInput as error:
            given = self._inputs.values(place.source)
            missing = tuple(declared(inputs, each) for each in inputs_in(written) if each not in given)
            cure = f"`haft providers trust {bare.name}` asks for it"
            provider = replace(bare, problem=_problem(name, place, f"{error}: {cure}"))
        except ValueError as error:
            provider = replace(bare, problem=_problem(name, place, str(error)))
        return ConfiguredServer(provider, name, written, missing, written.is_disabled)

    def _provider(self, bare: Provider, filled: WrittenServer, filler: Filler) -> Provider:
        base = os.path.dirname(bare.source) if os.path.isabs(bare.source) else self._host.workspace
        cwd = None if filled.cwd is None else os.path.normpath(os.path.join(base, os.path.expanduser(filled.cwd)))
        if cwd is not None and _leads_out(cwd, self._host.workspace):
            raise ValueError(
                f"has the `cwd` `{filled.cwd}`, a link that leads out of the workspace: write the directory itself"
            )
        files: tuple[str, ...] = ()
        if filled.command is not None:
            files = named_files(
                filled.command,
                filled.args,
                filled.env,
                cwd or self._host.workspace,
                self._host.workspace,
                self._host.env.get("PATH", os.defpath),
            )
        if (kept := next((each for each in files if self._is_state(each)), None)) is not None:
            raise ValueError(f"names {kept}, and no server may read the files that haft keeps for itself")
        provider = replace(
            bare,
            command=filled.command,
            args=filled.args,
            env=filled.env,
            cwd=cwd,
            url=filled.url,
            headers=filled.headers,
            grants=grants_of(filled.grant),
            include=filled.include,
            exclude=filled.exclude,
            timeout=filled.timeout,
            timeouts=filled.timeouts,
            files=files,
            secrets=Secrets(filler.secrets),
            oauth=filled.oauth,
        )
        provider = replace(provider, trusts_annotations=self._believes(provider, filled))
        return replace(provider, problem=why_not_installable(provider))

    def _is_state(self, path: str) -> bool:
        """Whether a path is one of haft's own files, such as a login."""
        home, workspace = (os.path.realpath(each) for each in (self._host.state_home, self._host.workspace))
        return lies_inside(path, home) and not lies_inside(path, workspace)

    def _believes(self, provider: Provider, filled: WrittenServer) -> bool:
        """Whether the person believes the server's annotations. A workspace or a skill cannot say so for the
        person."""
        if filled.trusts_annotations and provider.provenance != "workspace" and provider.skill is None:
            return True
        kept = self._trust.kept(provider)
        return kept is not None and kept.annotations and kept.identity == provider.identity

    def _directories(self, place: _Place) -> dict[str, str]:
        """The names that files use for directories."""
        workspace = self._host.workspace
        home = self._host.env.get("HOME") or os.path.expanduser("~")
        folder = os.path.dirname(place.source) if os.path.isabs(place.source) else workspace
        return {
            "CONFIG_DIR": folder,
            "WORKING_DIR": workspace,
            "workspaceFolder": workspace,
            "workspaceRoot": workspace,
            "workspaceFolderBasename": os.path.basename(workspace),
            "CLAUDE_PROJECT_DIR": workspace,
            "userHome": home,
            "pathSeparator": "/",
            "/": "/",
        }


def _beside_its_file(written: WrittenServer, place: _Place) -> WrittenServer:
    """A skill's server. A relative program of a skill lies in the skill's folder."""
    command = written.command
    if place.skill is None or command is None or "/" not in command or command.startswith(("/", "~", "$")):
        return written
    return replace(written, command=os.path.normpath(os.path.join(place.skill[1], command)))


def _leads_out(path: str, workspace: str) -> bool:
    """Whether a path is written as one of the workspace, and leads out of it through a link. A server can read the
    directory in which it starts, so a link of the workspace must not choose which one that is."""
    inside = os.path.realpath(workspace).rstrip("/") + "/"
    is_inside = any(f"{path}/".startswith(f"{each.rstrip('/')}/") for each in (workspace, inside))
    return is_inside and not f"{os.path.realpath(path)}/".startswith(inside)


def _problem(name: str, place: _Place, what: str) -> str:
    said = shown(what)
    said = said if len(said) <= LONGEST_PROBLEM else f"{said[:LONGEST_PROBLEM]}…"
    return f"the server `{shown(name)[:100]}` in {shown(place.source)} {said}"
