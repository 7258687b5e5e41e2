"""The confinement of a call: what it may reach. The decision determines it, the sandbox enforces it, the outcome shows
it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.contracts.host_grants import HostGrant
    from haft.contracts.limits import Limits

Network = bool | tuple[str, ...]
"""The network of a call: all of it, none of it, or the hosts in a tuple (see `host_grants`)."""

Profile = Literal["none", "read-only", "workspace"]
"""The basic form of a sandbox. `none`: there is no sandbox. `read-only`: the call may write only to private scratch
directories. `workspace`: the call may also write to the workspace. Neither of the last two has network."""


PLUGIN_ENTRY: Final = "on the plugin's entry in `plugins`"


def written_grant(key: str, values: str, entry: str) -> str:
    """A grant as a person writes it at `entry`, which may end with the path of a file: as JSON if the file is JSON, as
    TOML otherwise. `values` is the list of its values, in brackets."""
    if entry.endswith((".json", ".jsonc")):
        return f'`"grant": {{"{key}": {values}}}` {entry}'
    return f"grant = {{{key} = {values}}} {entry}"


@dataclass(frozen=True, slots=True)
class Grants:
    """What a call may reach in addition to its profile. Nothing but grants opens the sandbox."""

    network: Network = False
    env: tuple[str, ...] = ()
    """Names of environment variables of the host that the call gets."""
    path: tuple[str, ...] = ()
    """Directories that are readable and on the call's PATH."""
    read: tuple[str, ...] = ()
    """Files and directories that the call may read although the sandbox hides them by default."""
    write: tuple[str, ...] = ()
    """Files and directories that the call may write although they are outside the workspace, or protected in it."""
    scratch: bool = False
    """Whether the call sees its thread's `/tmp` although it has network. Approved calls without network see that `/tmp`
    without this grant."""

    def __or__(self, other: Grants) -> Grants:
        if self is NO_GRANTS and other is NO_GRANTS:
            return self  # Most calls have no grants.
        lists = (
            tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name))))
            for name in ("env", "path", "read", "write")
        )
        env, path, read, write = lists
        scratch = self.scratch or other.scratch
        if isinstance(self.network, tuple) or isinstance(other.network, tuple):
            from haft.contracts.host_grants import joined_network  # Imported here because few calls have such grants.

            network = joined_network(self.network, other.network)
        else:
            network = self.network or other.network
        return Grants(network, env, path, read, write, scratch=scratch)

    def exceeds(self, other: Grants) -> bool:
        """Whether these grants include all of `other`, and more."""
        return self | other == self | self and other | self != other | other

    def to_json(self) -> dict[str, Any]:
        return {
            "network": network_json(self.network),
            "env": list(self.env),
            "path": list(self.path),
            "read": list(self.read),
            "write": list(self.write),
            "scratch": self.scratch,
        }


NO_GRANTS = Grants()


@dataclass(frozen=True, slots=True)
class Layer:
    """A file system layer above the workspace, which collects the changes of one call. The package `changes` makes the
    layer, and the package `sandbox` mounts it."""

    name: str
    """The name of the layer's directory, which contains the directory `upper`. The sandbox knows the directory in which
    all layers lie."""
    options: str
    """The mount options."""
    upper: tuple[int, int]
    """The device and inode of the directory `upper`, which receives the writes. The sandbox refuses to mount any other
    directory."""
    lowers: tuple[tuple[str, int, int], ...] = ()
    """Finished layers between this layer and the workspace, the topmost first: the names of their directories, each
    with its device and inode."""
    is_readonly: bool = False
    """Whether the layer collects nothing: the call only reads, and sees the workspace with the finished layers."""
    view: Callable[[int], None] | None = field(default=None, compare=False, repr=False)
    """Called with a file descriptor of the workspace as the call sees it. Set if calls that this call makes must see
    the same files."""


@dataclass(frozen=True)
class Confinement:
    """What one call may reach."""

    profile: Profile = "none"
    network: Network = True
    """All of the network, none of it, or hosts; a group of hosts is replaced by its hosts."""
    hosts: tuple[HostGrant, ...] = ()
    """The hosts in `network`, as the sandbox compares them."""
    asks: bool = False
    """Whether a person is asked about connections to hosts that were not granted, while the connections wait."""
    writable: tuple[str, ...] = ()
    """Absolute paths of the host that the call may write. Private scratch directories are not among them."""
    readable: tuple[str, ...] = ()
    """Paths that the call may read although they lie in a hidden directory."""
    hidden: tuple[str, ...] = ()
    """Directories that the call sees as empty private directories."""
    path: tuple[str, ...] = ()
    """Directories that are added to PATH."""
    env: tuple[str, ...] = ()
    """The granted environment variables of the host."""
    identities: tuple[tuple[str, int, int], ...] = ()
    """Each granted path with the device and inode that it had when the confinement was resolved."""
    found: tuple[tuple[str, int, int], ...] = ()
    """The device and inode of paths that need no grant but decide which code runs: the files of the tool itself and of
    the activated environment."""
    root: tuple[int, int] = (0, 0)
    """The device and inode of the workspace."""
    neutral: bool = False
    """Whether neither a person nor a rule approved the command, which only reads according to haft's analysis. In that
    case PATH is fixed, and git, npm and pip run no hooks or scripts."""
    unasked: bool = False
    """Whether neither a person nor a rule approved the call. Such a call sees less of the host."""
    session: bool = False
    """Whether the process outlives its calls, so that the sandbox cannot be opened for one of them."""
    entry: str = PLUGIN_ENTRY
    """Where a person writes grants for a process that outlives its calls."""
    keeps_state: bool = False
    """Whether the process keeps state between its calls, so that no single call can get grants."""
    layers: tuple[str, ...] = ()
    """The mechanisms in force: `namespaces`, `landlock`. Empty if there is no sandbox."""
    reason: str | None = None
    """Why there is no sandbox, or one that is weaker than configured."""
    layer: Layer | None = None
    """The layer above the workspace that collects the changes."""
    activated: str | None = None
    """The environment in the workspace that a person activated and whose programs are on PATH."""
    activated_state: str | None = None
    """The digest that the programs of `activated` had when a person approved them."""
    never_network: bool = False
    """Whether no option and no grant can open the network to the call."""
    subagent: bool = False
    """Whether a sub-agent makes the call. Its programs find the variable `AGENT_IS_SUBAGENT`."""
    ungrantable: str | None = None
    """Who makes the call, if no grant can open anything to its calls; else None."""
    limits: Limits | None = None
    """The limits on the call's processes, if they are lower than those of the host."""
    scratch: str | None = None
    """The name of the thread's `/tmp` that the call sees; None if the call has a `/tmp` of its own, which is deleted
    after the call."""

    @property
    def is_by_host(self) -> bool:
        """Whether each connection of the call is decided by its host."""
        return isinstance(self.network, tuple) or self.asks

    def to_json(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "network": network_json(self.network),
            "writable": list(self.writable),
            "readable": list(self.readable),
            "env": list(self.env),
            "path": list(self.path),
            "layers": list(self.layers),
            "scratch": None if "namespaces" not in self.layers else "call" if self.scratch is None else "thread",
            "reason": self.reason,
            "connections": [],
        }


def network_json(network: Network) -> bool | list[str]:
    """The network of a call in JSON."""
    return network if isinstance(network, bool) else list(network)


NO_CONFINEMENT = Confinement()
NOT_RUN = Confinement(network=False, reason="it has not run")
"""The confinement in the outcome of a call that ended before its confinement was resolved."""


def grants_from(given: Mapping[str, Any] | Grants | None) -> Grants:
    """The grants from the form in which configuration files and callers write them; raises `ValueError` with an
    explanation if the grants are not valid."""
    if given is None:
        return NO_GRANTS
    if isinstance(given, Grants):
        return given
    if not isinstance(given, Mapping):
        raise ValueError("must be a table of network, env, path, read, write, scratch")  # noqa: TRY004  all the same
    lists: dict[str, tuple[str, ...]] = {}
    network: Network = False
    scratch = False
    for name, value in given.items():
        if name == "network":
            network = value if isinstance(value, bool) else _hosts(value)
        elif name == "scratch":
            if not isinstance(value, bool):
                raise ValueError("scratch must be true or false")
            scratch = value
        elif name in ("env", "path", "read", "write"):
            lists[name] = _texts(name, value)
        else:
            raise ValueError(f"there is no grant `{name}`; they are network, env, path, read, write, scratch")
    return Grants(network=network, scratch=scratch, **lists)


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{name} must be a list of texts")  # noqa: TRY004  all raise the same
    for word in value:
        if not isinstance(word, str) or not word or "\0" in word:
            raise ValueError(f"{name} must be a list of texts, and {word!r} is not one")
        if name == "env" and (why := _why_not_granted(word)) is not None:
            raise ValueError(f"env: {why}")
    return tuple(value)


def _hosts(value: object) -> Network:
    from haft.contracts.host_grants import network_from  # Imported here because few grants name hosts.

    return network_from(value)


def _why_not_granted(name: str) -> str | None:
    from haft.contracts.variables import why_not_granted  # Imported here because few calls grant variables.

    return why_not_granted(name)
