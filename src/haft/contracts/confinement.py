"""What confines a call: a value that the decision asks for, the sandbox builds, and the outcome shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from haft.values import dataclass, field

Profile = Literal["none", "read-only", "workspace"]
"""`read-only` may write nothing but private scratch places, `workspace` also the workspace; both have no network."""


@dataclass(frozen=True, slots=True)
class Grants:
    """What opens the sandbox for a call, beyond its profile. Nothing else does."""

    network: bool = False
    env: tuple[str, ...] = ()
    """Names of the host's variables that it gets."""
    path: tuple[str, ...] = ()
    """Directories put on its PATH, readable."""
    read: tuple[str, ...] = ()
    """Files and directories that it may read although they are hidden."""
    write: tuple[str, ...] = ()
    """Files and directories that it may write although they are outside the workspace, or protected in it."""
    scratch: bool = False
    """Whether it sees its thread's `/tmp` although it has network. Without network approved calls see it anyway."""

    def __or__(self, other: Grants) -> Grants:
        lists = (
            tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name))))
            for name in ("env", "path", "read", "write")
        )
        env, path, read, write = lists
        scratch = self.scratch or other.scratch
        return Grants(self.network or other.network, env, path, read, write, scratch=scratch)

    def exceeds(self, other: Grants) -> bool:
        """Whether it grants all that the other does, and more."""
        return self | other == self | self and other | self != other | other

    def to_json(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "env": list(self.env),
            "path": list(self.path),
            "read": list(self.read),
            "write": list(self.write),
            "scratch": self.scratch,
        }


NO_GRANTS = Grants()


@dataclass(frozen=True, slots=True)
class Layer:
    """Where the changes of one call are taken in, above the workspace. Made by `changes`, mounted by `sandbox`."""

    name: str
    """Of its directory, which holds `upper`, below the one that the sandbox was told of."""
    options: str
    """For the mount."""
    upper: tuple[int, int]
    """Which directory `upper` is: device and inode. Another one is not mounted."""
    lowers: tuple[tuple[str, int, int], ...] = ()
    """Finished layers that lie between it and the workspace, topmost first: their names in the same directory, and
    which directories they are."""
    is_readonly: bool = False
    """Whether nothing is taken in: the call only reads, and sees the workspace with the finished layers."""
    view: Callable[[int], None] | None = field(default=None, compare=False, repr=False)
    """Called with a descriptor of the workspace as the call sees it, where calls that it makes are to see it too."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """The confinement of one call."""

    profile: Profile = "none"
    network: bool = True
    writable: tuple[str, ...] = ()
    """What may be written of the host's files, absolute; scratch places are private and not among them."""
    readable: tuple[str, ...] = ()
    """What may be read although it lies in a place that is hidden."""
    hidden: tuple[str, ...] = ()
    """Places that are private and empty."""
    path: tuple[str, ...] = ()
    """Directories put on PATH."""
    env: tuple[str, ...] = ()
    """The host's variables that were granted."""
    identities: tuple[tuple[str, int, int], ...] = ()
    """Which file or directory each granted path was when it was looked at: device and inode."""
    found: tuple[tuple[str, int, int], ...] = ()
    """The same for paths that nobody granted, and that decide which code runs: those of the tool itself and of the
    activated environment."""
    root: tuple[int, int] = (0, 0)
    """Which directory the workspace was."""
    neutral: bool = False
    """Whether nobody looked at the command: PATH is fixed, and git, npm and pip run nothing on the side."""
    unasked: bool = False
    """Whether nobody approved the call, no person and no rule: it sees less of the host."""
    session: bool = False
    """Whether they stand around a process that outlives its calls, and cannot be opened for one of them."""
    layers: tuple[str, ...] = ()
    """What holds: `namespaces`, `landlock`. Empty where nothing does."""
    reason: str | None = None
    """Why there is no sandbox, or a weaker one than there should be."""
    layer: Layer | None = None
    """What lies over the workspace, where changes are taken in."""
    activated: str | None = None
    """The environment in the workspace, activated by a person, whose programs are on PATH."""
    activated_state: str | None = None
    """What these programs were when they were agreed to."""
    never_network: bool = False
    """Whether nothing opens the network to it, no flag and no grant."""
    scratch: str | None = None
    """The name of its thread's `/tmp`, where it sees that; else it has one of its own, which is removed with it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "network": self.network,
            "writable": list(self.writable),
            "readable": list(self.readable),
            "env": list(self.env),
            "path": list(self.path),
            "layers": list(self.layers),
            "scratch": None if "namespaces" not in self.layers else "call" if self.scratch is None else "thread",
            "reason": self.reason,
        }


NO_CONFINEMENT = Confinement()
NOT_RUN = Confinement(network=False, reason="it has not run")
"""Of a call that did not get as far as any."""


def grants_from(given: Mapping[str, Any] | Grants | None) -> Grants:
    """Grants as they are written in configuration and calls; `ValueError` with a sentence where they are none."""
    if given is None:
        return NO_GRANTS
    if isinstance(given, Grants):
        return given
    if not isinstance(given, Mapping):
        raise ValueError("must be a table of network, env, path, read, write, scratch")  # noqa: TRY004  all the same
    lists: dict[str, tuple[str, ...]] = {}
    network = scratch = False
    for name, value in given.items():
        if name in ("network", "scratch"):
            if not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false")
            network = value if name == "network" else network
            scratch = value if name == "scratch" else scratch
        elif name in ("env", "path", "read", "write"):
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise ValueError(f"{name} must be a list of texts")
            for word in value:
                if not isinstance(word, str) or not word or "\0" in word:
                    raise ValueError(f"{name} must be a list of texts, and {word!r} is none")
                if name == "env" and (why := _why_not_granted(word)) is not None:
                    raise ValueError(f"env: {why}")
            lists[name] = tuple(value)
        else:
            raise ValueError(f"there is no grant `{name}`; they are network, env, path, read, write, scratch")
    return Grants(network=network, scratch=scratch, **lists)


def _why_not_granted(name: str) -> str | None:
    from haft.contracts.variables import why_not_granted  # Few calls grant any.

    return why_not_granted(name)
