"""What this machine can do to hold a call, as the helper found out by trying."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from haft.contracts import PROCESS_LIMITS
from haft.values import dataclass, field

TCP_SINCE, SCOPES_SINCE = 4, 6


@dataclass(frozen=True, slots=True)
class Abilities:
    """One helper's answer."""

    namespaces: bool
    """Users, mounts, processes and ipc: what carries the promise."""
    problem: str | None
    """Why not, where not."""
    network: bool = False
    """Whether a call can be without network."""
    proc: bool = False
    landlock: int = 0
    """The version of Landlock; 0: none."""
    seccomp: bool = False
    """Whether system calls can be refused that reach past namespaces."""
    seccomp_problem: str | None = None
    """Why not, where not."""
    tracing: bool = False
    """Whether these refusals hold against a tracer: else no call may trace."""
    cgroups: Mapping[str, int] = field(default_factory=dict)
    """By controller, the version that counts it."""
    io: bool = False
    """Whether the kernel says how much a process wrote."""
    users: bool = False
    """Whether a user namespace was needed for it: for root it is not."""
    supervised: bool = True
    """Whether there is a helper at all."""

    @classmethod
    def from_hello(cls, words: Mapping[str, Any]) -> Abilities:
        return cls(
            namespaces=bool(words["namespaces"]),
            problem=_explained(words),
            network=bool(words.get("network")),
            proc=bool(words.get("proc")),
            landlock=words["landlock"],
            seccomp=words.get("seccomp_problem", "") is None,
            seccomp_problem=words.get("seccomp_problem"),
            tracing=bool(words.get("tracing")),
            cgroups=dict(words.get("cgroups") or {}),
            io=bool(words.get("accounts_io")),
            users=bool(words.get("user_namespace")),
        )

    @property
    def layers(self) -> tuple[str, ...]:
        found = {"namespaces": self.namespaces, "landlock": bool(self.landlock), "seccomp": self.seccomp}
        return tuple(name for name, there in found.items() if there and (name != "seccomp" or self.namespaces))

    def missing(self) -> list[str]:
        """What should hold and does not, in sentences."""
        found = []
        if not self.namespaces:
            found.append(f"no namespaces: {self.problem}")
        if not self.landlock:
            found.append("no Landlock, the second layer: this kernel does not have it, or it is turned off")
        elif self.landlock < SCOPES_SINCE:
            found.append(f"Landlock {self.landlock} is old: with network granted, abstract sockets are in reach")
        if self.namespaces and not self.seccomp:
            why = self.seccomp_problem
            found.append(f"no seccomp filters: {why}; kernel keyrings, rare sockets and host sockets are in reach")
        if self.namespaces and not self.network:
            held = "only TCP can be kept from a call" if self.landlock >= TCP_SINCE else "every call has the network"
            found.append(f"no network namespaces: {held}")
        if self.namespaces and not self.proc:
            found.append("no /proc of its own: calls have none, and only rlimits hold them")
        return found

    def enforced(self) -> dict[str, str]:
        """By which mechanism each limit on processes holds."""
        if not self.supervised:
            return dict.fromkeys(PROCESS_LIMITS, "nothing")
        watching = "watching" if self.proc or not self.namespaces else "nothing"
        found = dict.fromkeys(PROCESS_LIMITS, watching)
        found["max_written_file_bytes"] = found["max_open_files"] = "rlimit"
        if not self.io:
            found["max_written_bytes"] = "nothing"
        if "memory" in self.cgroups:
            found["memory_bytes"] = f"cgroup-v{self.cgroups['memory']}"
        if "pids" in self.cgroups:
            found["max_processes"] = f"cgroup-v{self.cgroups['pids']} and {watching}"
        return found


NOT_LINUX = Abilities(namespaces=False, problem="this is not Linux", supervised=False)


def _explained(words: Mapping[str, Any]) -> str | None:
    problem = words.get("problem")
    if problem is None:
        return None if words["namespaces"] else "they were not asked for"
    said = str(problem)
    number = words.get("errno")
    if "unshare" in said and number in (errno.EPERM, errno.EACCES):
        return f"{said}; a container, seccomp or `kernel.apparmor_restrict_unprivileged_userns` forbids them"
    if "unshare" in said and number in (errno.ENOSPC, errno.EUSERS):
        return f"{said}; `user.max_user_namespaces` is used up or 0"
    if number == errno.ENOSYS:
        return f"{said}; they need Linux 5.12 or newer"
    return said
